"""The layers of the code, for docs/project/architecture.md.

`python benchmarks/readme.py` writes it.
"""

from __future__ import annotations

from svg import box, page, text

#: From the top: the language, and the rooms of each layer, which use those below.
LAYERS = (
    ("Python", ["_cli"]),
    ("", ["cuda", "interop", "safetensors, hdf5", "typing"]),
    ("", ["_programs", "_files"]),
    ("", ["_matmul", "_functions", "_measures", "_checks", "_linalg"]),
    ("", ["_integer_products"]),
    ("", ["tensor_core", "blocks", "_exact"]),
    ("", ["_formats", "_base"]),
    ("Cython", ["_core"]),
    ("C", ["programs/blas, arithmetic", "cuda"]),
    ("", ["programs/hooks", "programs/call_sites"]),
    ("", ["tensor_core", "blocks"]),
    ("", ["ufuncs", "matmul", "exact"]),
    ("", ["formats"]),
    ("", ["runtime"]),
)
LEFT, WIDTH, HEIGHT, GAP = 80, 640, 30, 6


def layer(y: float, language: str, rooms: list[str]) -> list[str]:
    """Draw the rooms of a layer side by side, each with a bar under its name."""
    width = (WIDTH - LEFT - GAP * (len(rooms) - 1)) / len(rooms)
    drawn = [text(0, y + 20, language, "orange", "head")] if language else []
    for number, room in enumerate(rooms):
        x = LEFT + number * (width + GAP)
        drawn.append(box(x, y + HEIGHT - 2, width, 2, "faint"))
        drawn.append(text(x + width / 2, y + 20, room, "ink", "middle"))
    return drawn


def picture() -> str:
    """Return the file."""
    drawn, y = [], 0.0
    for language, rooms in LAYERS:
        drawn += layer(y, language, rooms)
        y += HEIGHT + GAP
    return page(WIDTH, y, drawn)
