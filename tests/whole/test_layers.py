"""Modules import each other in one direction, also within functions."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

#: Each layer of a package imports the layers before it. Modules of a layer do not
#: import each other. docs/project/architecture.md describes them; `__init__` is the
#: package's own file.
LAYERS = {
    "tf32dtype": """
        _base
        _core
        _formats _config
        tensor_core blocks _exact
        _integer_products
        _matmul
        _functions _measures _checks _linalg
        _files
        _programs
        interop safetensors hdf5 linalg testing
        cuda typing __init__
        _cli
        __main__
    """,
    "tf32dtype._files": """
        file_kinds layer_plans scaled_arrays tensor_names
        npy
        arrays safetensors hdf5 gguf onnx
        readers
        convert
        __init__
    """,
    "tf32dtype._programs": """
        variables source_folders plan_lines numpy_patch notebooks
        plans
        context arithmetic
        program streams preload
        report
        reached tune
        __init__
    """,
    "tf32dtype.cuda": """
        _requirements
        _runtime
        _arrays
        _functions
        _matmul
        blocks
        dispatch
        __init__
    """,
}
ORDER = {
    package: {
        name: number
        for number, layer in enumerate(text.strip().splitlines())
        for name in layer.split()
    }
    for package, text in LAYERS.items()
}


def part_of(package: str, module: str) -> str:
    return (module + ".__init__").removeprefix(package + ".").split(".")[0]


def imports(graph: grimp.ImportGraph) -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    return {x: graph.find_modules_directly_imported_by(x) for x in graph.modules}


def out_of_layer(graph: grimp.ImportGraph, package: str) -> list[str]:
    """Return the imports of a layer above, or of a neighbor."""
    order = ORDER[package]
    inside = {
        name: found
        for name, found in imports(graph).items()
        if f"{name}.".startswith(f"{package}.")
    }
    assert {part_of(package, x) for x in inside} == set(order), "the layers' names"
    return [
        f"{name} imports {other}"
        for name, found in inside.items()
        for other in found & inside.keys()
        if part_of(package, name) != part_of(package, other)
        and order[part_of(package, name)] <= order[part_of(package, other)]
    ]


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> grimp.ImportGraph:
    """Return all imports of the checkout's files except for those for type checkers."""
    monkeypatch.syspath_prepend(ROOT)
    return grimp.build_graph(
        "tf32dtype", cache_dir=None, exclude_type_checking_imports=True
    )


def test_imports_go_in_no_circle(graph: grimp.ImportGraph) -> None:
    TopologicalSorter(imports(graph)).prepare()
    arrays = "tf32dtype.cuda._arrays"
    graph.add_import(importer=f"{arrays}.ndarray", imported=f"{arrays}.casts")
    with pytest.raises(CycleError):
        TopologicalSorter(imports(graph)).prepare()


@pytest.mark.parametrize(
    ("package", "importer", "imported"),
    [
        ("tf32dtype", "_formats.table", "interop.torch"),
        ("tf32dtype", "blocks.base", "tensor_core.models"),
        ("tf32dtype.cuda", "_arrays.casts", "_matmul.mode"),
    ],
)
def test_imports_follow_the_layers(
    graph: grimp.ImportGraph, package: str, importer: str, imported: str
) -> None:
    assert not out_of_layer(graph, package)
    fault = f"{package}.{importer}", f"{package}.{imported}"
    graph.add_import(importer=fault[0], imported=fault[1])
    assert out_of_layer(graph, package) == [" imports ".join(fault)]


def test_imports_within_functions_count(graph: grimp.ImportGraph) -> None:
    precisions = imports(graph)["tf32dtype._matmul.precisions"]
    assert "tf32dtype.tensor_core.look_up" in precisions
    assert "tf32dtype.tensor_core.models" not in precisions, "for type checkers alone"
