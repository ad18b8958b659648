"""Copy FP8 and tf32 operands so that k is contiguous, as tensor cores need them."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .._runtime.backend import Kernel, current
from .tile_options import MOST, pieces

#: Kernels of src/cuda/matmul/transpose.cu and sides of their tiles, by element size.
_KERNELS = {
    size: (Kernel("cuda/matmul/transpose.cu", name), side)
    for size, name, side in ((1, "transpose", 128), (4, "transpose_words", 64))
}
_THREADS = 256
#: struct tf_operand_lines
_LINES = np.dtype(
    [(name, np.int64) for name in ("matrix", "line", "step", "count", "lines", "k")]
)


def lines_along_k(x: Any, rows: int, depth: int) -> Any:
    """Copy matrices so that they are contiguous along k, padded with zeros.

    Parameters
    ----------
    x : cupy.ndarray
        Array of shape (s, lines, k), with 1-byte or 4-byte elements and any strides.
    rows, depth : int
        Number of lines and of k in the copy; `depth` is a multiple of 4.

    Returns
    -------
    cupy.ndarray
        Array of shape (s, rows, depth), or (1, rows, depth) if the stack repeats one
        matrix.
    """
    stack, of_line, of_k = x.strides
    one = x[:1] if stack == 0 else x
    count = one.shape[0]
    if abs(of_line) >= abs(of_k):
        filled = current().call("zeros", (count, rows, depth), x.dtype)
        current().call("copyto", filled[:, : x.shape[1], : x.shape[2]], one)
        return filled
    made = cupy.empty((count, rows, depth), x.dtype)
    if made.size:
        kernel, side = _KERNELS[x.dtype.itemsize]
        grid = pieces(depth, side), min(pieces(rows, side), MOST), min(count, MOST)
        current().launch(
            kernel, grid, (_THREADS,),
            one, made,
            np.array((stack, of_line, of_k, *one.shape), _LINES), np.int64(rows),
            np.int64(depth),
        )  # fmt: skip
    return made
