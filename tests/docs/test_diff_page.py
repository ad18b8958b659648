"""docs/how_to/diff.md shows the output of its commands."""

import re
import shlex

import pytest

from tests.support.documents import HOW_TO, blocks, check_block
from tf32dtype._cli.main import main

pytestmark = pytest.mark.once

PAGE = HOW_TO / "diff.md"
SHOWN = re.compile(r"```sh\n(tf32dtype [^\n]*)\n```\n\n```text\n(.*?)```\n", re.S)
CODES = {"other.safetensors": 1, "weight": 0}


def test_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks(PAGE, "python"):
        check_block(code, names)
    shown = SHOWN.findall(PAGE.read_text())
    assert len(shown) == PAGE.read_text().count("```text") == 2
    for command, output in shown:
        words = shlex.split(command)[1:]
        assert main(words) == CODES[words[-1]]
        assert capsys.readouterr().out == output
    for line in "".join(blocks(PAGE, "sh")).splitlines():
        if "small" in line:
            assert main(shlex.split(line)[1:]) == 0
