"""Includes and calls in src/ follow the layers, without circles.

    runtime <- formats <- {ufuncs, matmul, exact} <- {tensor_core, blocks} <- programs

    programs: hooks <- call_sites <- blas <- arithmetic

src/cuda has the same layers on top of all these, and of src/cuda/common.
"""

from __future__ import annotations

import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain

import pytest

from tests.support.paths import SRC

pytestmark = pytest.mark.once

LAYERS = {
    "runtime": 0,
    "formats": 1,
    "ufuncs": 2,
    "matmul": 2,
    "exact": 2,
    "tensor_core": 3,
    "blocks": 3,
    "programs/hooks": 4,
    "programs/call_sites": 5,
    "programs/blas": 6,
    "programs/arithmetic": 7,
    "cuda/common": 4,
    "cuda/recorder": 5,
    "cuda/formats": 5,
    "cuda/ufuncs": 6,
    "cuda/matmul": 6,
    "cuda/exact": 7,
    "cuda/tensor_core": 7,
    "cuda/blocks": 7,
}
Graph = dict[str, set[str]]


def subject_of(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[:2]) if parts[0] in ("cuda", "programs") else parts[0]


@cache
def texts() -> dict[str, str]:
    """Return our C and CUDA files by name in src/, without comments and strings."""
    return {
        path.relative_to(SRC).as_posix(): bare(path.read_text())
        for path in sorted(SRC.rglob("*.*"))
        if path.suffix in (".c", ".h", ".cu")
    }


def bare(text: str) -> str:
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    text = text.replace("\\\n", " ")
    return re.sub(r"(?m)^(?!\s*#\s*include)(.*)$", without_strings, text)


def without_strings(line: re.Match[str]) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'", '""', line[0])


def includes() -> Graph:
    """Return the includes of our files in each file, as they are written."""
    pattern = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
    return {file: set(pattern.findall(text)) for file, text in texts().items()}


def braced(text: str) -> list[tuple[str, str]]:
    """Return the code before each pair of outermost braces, and the code in it."""
    found, depth, start, head = [], 0, 0, ""
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            if depth == 0:
                head, start = text[start : brace.start()], brace.end()
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                found.append((head, text[start : brace.start()]))
                start = brace.end()
        assert depth >= 0, text[start : brace.end()]
    assert depth == 0, head
    return found


def functions(text: str) -> tuple[dict[str, bool], set[str]]:
    """Return the functions that a file defines, and whether others may call them.
    Return also all names in its functions, tables and macros."""
    plain = re.sub(r"TF_NAME\((\w+)\)", r"TF_NAME_\1", text)
    plain = re.sub(r'extern\s+""\s*\{', "", plain)
    macros = re.findall(r"(?m)^\s*#\s*define\s+\w+(?:\([^)]*\))?(.*)$", plain)
    code = re.sub(r"(?m)^\s*#.*$", "", plain)
    defined, mentioned = {}, set(re.findall(r"[A-Za-z_]\w*", " ".join(macros)))
    for head, body in braced(code):
        last = re.split(r"[;}]", head)[-1]
        mentioned.update(re.findall(r"[A-Za-z_]\w*", body))
        if name := re.search(r"\b(\w+)\s*\((?:[^()]|\([^()]*\))*\)\s*$", last):
            defined[name[1]] = not re.search(r"static|inline|INLINE", last)
    return defined, mentioned


def calls() -> Graph:
    """Return the files of the functions that a file calls, or whose address it takes.

    Functions of a .c file that are not static are known to all files, and those of a
    header to the files that include it. Calls between a .c file and the header of its
    name do not count.
    """
    known = {file: functions(text) for file, text in texts().items()}
    direct = includes()
    everyones = {
        name: file
        for file, (defined, _) in known.items()
        for name, is_shared in defined.items()
        if is_shared and file.endswith(".c")
    }

    @cache
    def reach(file: str) -> frozenset[str]:
        return frozenset(direct[file]).union(*(reach(x) for x in direct[file]))

    graph: Graph = {}
    for file, (own, mentioned) in known.items():
        seen = everyones | {name: x for x in reach(file) for name in known[x][0]}
        found = {seen[x] for x in mentioned - own.keys() if x in seen}
        graph[file] = found - {f"{stem(file)}.c", f"{stem(file)}.h"}
    return graph


def stem(file: str) -> str:
    return file.rpartition(".")[0]


def rooms(*graphs: Graph) -> Graph:
    """Join these graphs; a file and the header of its name are one room."""
    joined: Graph = {}
    for file, others in chain(*(graph.items() for graph in graphs)):
        one = stem(file)
        found = set(map(stem, others))
        joined.setdefault(one, set()).update(found - {one})
    return joined


def above(graph: Graph) -> list[str]:
    """Return the edges that do not go to a lower layer."""
    return [
        f"{file} -> {other}"
        for file, others in graph.items()
        for other in others
        if subject_of(file) != subject_of(other)
        and LAYERS[subject_of(other)] >= LAYERS[subject_of(file)]
    ]


def test_includes_are_written_from_src() -> None:
    wrong = [
        f"{file} includes {name}"
        for file, names in includes().items()
        for name in names
        if ".." in name or "/" not in name or not (SRC / name).is_file()
    ]
    assert not wrong


@pytest.mark.parametrize("graph_of", [includes, calls])
def test_layers(graph_of) -> None:
    graph = graph_of()
    assert not above(graph)
    graph["formats/casts.c"].add("ufuncs/binary.c")
    assert above(graph) == ["formats/casts.c -> ufuncs/binary.c"]


def test_no_circle() -> None:
    """Check files, and rooms: a .c file and the header of its name."""
    graph = rooms(includes(), calls())
    for acyclic in (includes(), calls(), graph):
        TopologicalSorter(acyclic).prepare()
    graph["matmul/pack"].add("matmul/tile")
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    ("function", "callers"),
    [
        ("tf_kernel_of", {"matmul/plan.c"}),
        ("tf_are_pairs", {"matmul/plan.c", "blocks/block_matmul.c"}),
        ("tf_way_of_tile", {"matmul/plan.c", "matmul/tile.c"}),
        ("tf_threads_for", {"matmul/tiles.c"}),
    ],
)
def test_who_decides_about_products(function: str, callers: set[str]) -> None:
    """Choose kernels for all products in plan.c, and split them in tiles.c."""
    subjects = ("matmul/", "tensor_core/", "blocks/block_matmul")
    call = re.compile(rf"\b{function}\(")
    found = {
        file
        for file, text in texts().items()
        if file.startswith(subjects) and file.endswith(".c") and call.search(text)
    }
    assert found == callers


def test_calls_are_found() -> None:
    graph = calls()
    assert sum(map(len, graph.values())) > 400
    for file, other in (
        ("ufuncs/binary.c", "ufuncs/few.c"),  # a call
        ("matmul/matmul.c", "matmul/tile.c"),  # an address
        (
            "ufuncs/kernels/table.c",
            "ufuncs/kernels/elementwise.c",
        ),  # TF_NAME, in a table
        ("matmul/tile.c", "matmul/workspace.h"),  # a function in a header
        ("cuda/ufuncs/arithmetic.h", "cuda/common/map.h"),
    ):
        assert other in graph[file], file
