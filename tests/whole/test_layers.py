"""Modules import each other one way, imports within functions counted."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PACKAGE = "tf32dtype.cuda"
#: Each imports those before it alone.
LAYERS = ["_runtime", "_arrays", "_functions", "_matmul", "blocks", "dispatch"]


def imports(folder: Path, package: str) -> dict[str, set[str]]:
    """The modules of a package that each of its modules imports."""
    files = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        files[".".join([package, *parts]).removesuffix(".__init__")] = path
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        own = name if path.stem == "__init__" else name.rpartition(".")[0]
        found[name] = set()
        tree = ast.parse(path.read_text())
        typing = [x for x in ast.walk(tree) if isinstance(x, ast.If)
                  and "TYPE_CHECKING" in ast.unparse(x.test)]  # fmt: skip
        skipped = {y for x in typing for y in ast.walk(x)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or node in skipped:
                continue
            parts = own.split(".")[: len(own.split(".")) - node.level + 1]
            base = [*(parts if node.level else []), *(node.module or "").split(".")]
            start = ".".join(x for x in base if x)
            for each in (f"{start}.{alias.name}" for alias in node.names):
                found[name].add(each if each in files else start)
        found[name] &= set(files) - {name}
    return found


def check(graph: dict[str, set[str]]) -> None:
    """Raise for a circle, or an import of a layer above."""
    TopologicalSorter(graph).prepare()
    for name, imported in graph.items():
        for other in imported:
            one, two = (
                x.removeprefix(f"{PACKAGE}.").split(".")[0] for x in (name, other)
            )
            if one in LAYERS and two in LAYERS:
                assert LAYERS.index(two) <= LAYERS.index(one), (name, other)


def test_cuda() -> None:
    graph = imports(ROOT / "tf32dtype" / "cuda", PACKAGE)
    assert f"{PACKAGE}._arrays.ndarray" in graph[f"{PACKAGE}._arrays.casts"]
    check(graph)
    graph[f"{PACKAGE}._arrays.ndarray"].add(f"{PACKAGE}._arrays.casts")
    with pytest.raises(CycleError):
        check(graph)
