"""Three pages show the output of their commands."""

import re
import shlex

import pytest

from tests.support.documents import DOCS, blocks, check_block
from tf32dtype._cli.main import main

pytestmark = pytest.mark.once

SHOWN = re.compile(r"```sh\n(tf32dtype [^\n]*)\n```\n.*?```text\n(.*?)```\n", re.S)
#: The exit codes of the commands, by their last word.
CODES = {
    "how_to/diff.md": {"other.safetensors": 1, "weight": 0},
    "how_to/check_result.md": {"H100": 0, "check.html": 1},
    "reference/emulated_precisions.md": {
        "exact,crt7,crt8,crt10,crt11,int8x4,int8x7": 0
    },
}


@pytest.mark.parametrize("name", CODES)
def test_the_page(name, tmp_path, monkeypatch, capsys):
    page = DOCS / name
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks(page, "python"):
        check_block(code, names)
    shown = SHOWN.findall(page.read_text())
    assert len(shown) == page.read_text().count("```text") == len(CODES[name])
    for command, output in shown:
        words = shlex.split(command)[1:]
        assert main(words) == CODES[name][words[-1]]
        printed = capsys.readouterr().out
        begin, cut, end = output.partition("...\n")
        assert printed.startswith(begin)
        assert printed.endswith(end)
        assert cut or printed == output
    for line in "".join(blocks(page, "sh")).splitlines():
        if "small" in line:
            assert main(shlex.split(line)[1:]) == 0
