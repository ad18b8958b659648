"""The examples in the docstrings of the public API run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

#: Examples of these modules need a GPU, or programs that are not installed everywhere.
LEFT_OUT = ("tf32dtype.cuda", "tf32dtype.interop.torch")
#: Packages that modules import only when they use them.
NEEDS = {"tf32dtype.hdf5": "h5py", "tf32dtype.interop.gguf": "gguf"}


def documented() -> dict[str, list[str]]:
    """Return the functions and classes of each module in the reference pages."""
    found: dict[str, list[str]] = {}
    module = ""
    for page in sorted((ROOT / "docs/reference").glob("*.rst")):
        for line in page.read_text().splitlines():
            if match := re.match(r"\.\. (?:auto)?module:: (\S+)", line):
                module = match[1]
                found.setdefault(module, [])
            elif match := re.match(r"\.\. auto(?:function|class):: (\S+)", line):
                found[module].append(match[1])
    return {name: x for name, x in found.items() if not name.startswith(LEFT_OUT)}


DOCUMENTED = documented()


def test_modules_are_found() -> None:
    assert "quantize" in DOCUMENTED["tf32dtype"]
    assert len(DOCUMENTED) > 10


@pytest.mark.parametrize("module", DOCUMENTED)
def test_examples(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if module in NEEDS:
        pytest.importorskip(NEEDS[module])
    try:
        imported: Any = importlib.import_module(module)
    except ImportError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    parser, finder = doctest.DocTestParser(), doctest.DocTestFinder(exclude_empty=True)
    tests = [parser.get_doctest(inspect.getdoc(imported) or "", {}, module, None, 0)]
    for name in DOCUMENTED[module]:
        tests += finder.find(getattr(imported, name), name, module=False, globs={})
    for test in tests:
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert runner.run(test).failed == 0, test.name
