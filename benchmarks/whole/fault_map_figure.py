"""A map of the errors of a product with a fault, for docs/how_to/test_kernel.md.

`python benchmarks/readme.py` writes it.
"""

from __future__ import annotations

import numpy as np
from svg import box, page, text

import tf32dtype as td
from tf32dtype._checks.fault_map import cells

SIDE, LEFT, TOP = 8, 70, 24  # pixels of a cell, and of the margins
SIZE = 256
ROWS, COLUMNS, LAST = slice(64, 128), slice(128, 160), 224


def shares() -> np.ndarray:
    """Return the errors of a product whose last k are missing in a tile."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, SIZE, SIZE)).astype(td.bfloat16)
    d = td.tensor_core.matmul(a, b, device="H100")
    d[ROWS, COLUMNS] = td.tensor_core.matmul(
        a[ROWS, :LAST], b[:LAST, COLUMNS], device="H100"
    )
    return td.testing.check_matmul(d, a, b, unit="H100").worst_matrix


def picture() -> str:
    """Return the file."""
    _, wrong, _ = cells(shares(), (32, 32))
    drawn = [
        box(
            LEFT + SIDE * j,
            TOP + SIDE * i,
            SIDE - 1,
            SIDE - 1,
            "orange" if wrong[i, j] else "blue light",
        )
        for i, j in np.ndindex(wrong.shape)
    ]
    end = TOP + SIDE * len(wrong)
    drawn += [
        text(LEFT, TOP - 8, "column 0"),
        text(LEFT + SIDE * len(wrong) - 24, TOP - 8, str(SIZE - 1)),
        text(0, TOP + 14, "row 0"),
        text(0, end - 2, str(SIZE - 1)),
        text(LEFT + SIDE * len(wrong) + 16, TOP + 100, "wrong", "orange", "head"),
        text(LEFT + SIDE * len(wrong) + 16, TOP + 124, "within the bound", "blue"),
    ]
    return page(LEFT + SIDE * len(wrong) + 160, end + 6, drawn)
