"""Run each recipe from beginning to end if its library is installed."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import RECIPES, blocks, check_block

pytestmark = pytest.mark.once


def imported(code: str) -> set[str]:
    """Return the packages that code imports."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
    return found


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_code(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks(path, "python")
    assert sum(block.count("# -> ") for block in found) >= 2
    for library in sorted(imported("\n".join(found))):
        pytest.importorskip(library)
    names: dict[str, Any] = {}
    for block in found:
        check_block(block, names)
