"""FP8 operands as tensor cores read them: lines of bytes, k side by side."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .._runtime.backend import Kernel, current
from .tile_options import MOST, pieces

#: src/cuda/matmul/transpose.cu: lines and k of a tile, and threads for it
_SIDE, _THREADS = 128, 256
#: struct tf_bytes
_BYTES = np.dtype(
    [(name, np.int64) for name in ("matrix", "line", "step", "count", "lines", "k")]
)


def bytes_along_k(x: Any, rows: int, depth: int) -> Any:
    """A copy of matrices that is contiguous along k, filled up with zeros.

    Parameters
    ----------
    x : cupy.ndarray
        (s, lines, k) of uint8, of any strides.
    rows, depth : int
        How many lines and k the copy has; k a multiple of 4.

    Returns
    -------
    cupy.ndarray
        (s, rows, depth); of a stack that repeats one matrix (1, rows, depth).
    """
    stack, of_line, of_k = x.strides
    one = x[:1] if stack == 0 else x
    if abs(of_line) >= abs(of_k):
        filled = current().call("zeros", (len(one), rows, depth), np.uint8)
        current().call("copyto", filled[:, : x.shape[1], : x.shape[2]], one)
        return filled
    made = cupy.empty((len(one), rows, depth), np.uint8)
    if made.size:
        grid = pieces(depth, _SIDE), min(pieces(rows, _SIDE), MOST), min(len(one), MOST)
        current().launch(
            Kernel("cuda/matmul/transpose.cu", "transpose"), grid, (_THREADS,),
            one, made,
            np.array((stack, of_line, of_k, *one.shape), _BYTES), np.int64(rows),
            np.int64(depth),
        )  # fmt: skip
    return made
