"""FP8 and tf32 operands as tensor cores read them: lines, k side by side."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .._runtime.backend import Kernel, current
from .tile_options import MOST, pieces

#: src/cuda/matmul/transpose.cu: the kernel of elements of so many bytes, and its tile's
#: side
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
    """A copy of matrices that is contiguous along k, filled up with zeros.

    Parameters
    ----------
    x : cupy.ndarray
        (s, lines, k) of 1-byte or 4-byte elements, of any strides.
    rows, depth : int
        How many lines and k the copy has; k a multiple of 4.

    Returns
    -------
    cupy.ndarray
        (s, rows, depth); of a stack that repeats one matrix (1, rows, depth).
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
