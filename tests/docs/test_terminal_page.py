"""docs/how_to/terminal.md shows the output of its commands."""

import re
import shlex

import pytest

from tests.support.command_line import plain
from tests.support.paths import ROOT

pytestmark = pytest.mark.once

_SHOWN = re.compile(r"```sh\n(tf32dtype [^\n]*)\n```\n\n```text\n(.*?)```\n", re.DOTALL)
SHOWN = _SHOWN.findall((ROOT / "docs/how_to/terminal.md").read_text())


def test_every_output_is_shown_by_its_command():
    text = (ROOT / "docs/how_to/terminal.md").read_text()
    assert text.count("```text") == len(SHOWN) > 4


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_outputs(command, output, capsys):
    assert plain(capsys, *shlex.split(command)[1:]) == output
