"""Correctly rounded dot products of rows: by exact sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core

Array = NDArray[Any]

#: Results that are computed between two checks for Ctrl-C.
_AT_A_TIME = 1 << 20


def multiply_rows(x: Array, y: Array, dtype: np.dtype[Any], rounding: int) -> Array:
    """Return the products of all rows of x and of y, each rounded once.

    Parameters
    ----------
    x, y : ndarray of float64, (m, k) and (n, k)
        Contiguous rows.
    dtype : dtype
        float32 or float64.
    rounding : int
        A value of `enum tf_rounding`.
    """
    result = np.empty((len(x), len(y)), dtype)
    flat = result.reshape(-1)
    for start in range(0, flat.size, _AT_A_TIME):
        part = flat[start : start + _AT_A_TIME]
        places = np.arange(start, start + len(part), dtype=np.int64)
        pairs = np.stack(np.divmod(places, len(y)), axis=1)
        _core.exact_dots(x, y, pairs, part, rounding)
    return result
