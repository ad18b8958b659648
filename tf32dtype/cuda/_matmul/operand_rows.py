"""Read rows of float32 or float64 operands by kernels of src/cuda/exact: operand.h."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._runtime.backend import KEPT, Kernel, Shape, View, Words, current
from .tile_options import pieces

#: Rows and threads of a block.
ROWS, THREADS = 32, (32, 16)


@lru_cache(maxsize=KEPT)
def kernel(file: str, name: str, dtype: np.dtype[Any], *macros: str) -> Kernel:
    """Return a kernel of a file for operands of a dtype."""
    item = "double" if dtype == np.float64 else "float"
    options = tuple(f"-D{macro}" for macro in (f"ITEM={item}", *macros))
    return Kernel(f"cuda/exact/{file}", name, options)


def operand(extents: Shape, x: View) -> Words:
    """Return struct operand."""
    return Words(x.data.ptr, *extents)


def read(kernel: Kernel, extents: Shape, x: View, *arguments: Any) -> None:
    """Launch a kernel that reads all rows of an operand."""
    count, lines = extents[3:5]
    grid = pieces(lines, ROWS), count
    current().launch(kernel, grid, THREADS, operand(extents, x), *arguments)
