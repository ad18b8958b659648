"""Read README and docs, and run the code in them."""

import ast
import re

import numpy as np

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
HOW_TO, REFERENCE = DOCS / "how_to", DOCS / "reference"
DOCUMENTS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
README, NUMPY = ROOT / "README.md", REFERENCE / "numpy.md"
GGUF, FORMATS = HOW_TO / "gguf.md", DOCS / "concepts" / "formats.md"
COMMAND, ML_DTYPES = REFERENCE / "command.md", HOW_TO / "from_ml_dtypes.md"
#: Each page needs one library. tests/docs/test_recipes.py runs these pages.
RECIPES = [
    *(
        HOW_TO / f"{name}.md"
        for name in "arrow hdf5 jax onnx safetensors torch torch_layers zarr".split()
    ),
    DOCS / "benchmarks" / "torch_training.md",
]


def blocks(path, language):
    return blocks_of(path.read_text(), language)


def blocks_of(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def section(path, title):
    """Return the text under a second-level heading of a page."""
    [text] = re.findall(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", path.read_text(), re.M | re.S
    )
    return text


def table(path, first_header):
    """Return the rows, without backticks, of the table with this first header."""
    rows, inside = [], False
    for line in path.read_text().splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            inside = False
        elif inside and set(cells[0]) != {"-"}:
            rows.append([c.strip("`").replace("\\|", "|") for c in cells])
        elif cells[0] == first_header:
            inside = True
    assert rows
    return rows


def run(code, names):
    """Execute code, and return the value of its last statement if it has one."""
    *statements, last = ast.parse(code).body
    exec(compile(ast.Module(statements, []), "<code>", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "<code>", "eval"), names)
    return exec(compile(ast.Module([last], []), "<code>", "exec"), names)


def check_block(block, names):
    """Run a block, and compare each value with the string after `# ->` on its line."""
    lines = block.splitlines()
    for node in ast.parse(block).body:
        value = run(ast.get_source_segment(block, node), names)
        claim = re.search(r"# -> (.*)", lines[node.end_lineno - 1])
        if claim:
            assert str(value) == claim[1], lines[node.end_lineno - 1]


CLASSES = ["DTypePromotionError", "OverflowError", "BufferError", "AssertionError"]
CLASSES += ["TypeError", "ValueError", "Exception"]


def check_page(path, names):
    """Run all blocks of a page."""
    found = blocks(path, "python")
    assert found
    for block in found:
        check_block(block, names)


def outcome(code, names):
    """Return the str of a value, or the name of the exception's class."""
    try:
        with np.errstate(all="ignore"):
            return str(run(code, names))
    except Exception as error:
        # NumPy has subclasses of TypeError that differ between its versions.
        kinds = (kind.__name__ for kind in type(error).__mro__)
        return next(kind for kind in kinds if kind in CLASSES)
