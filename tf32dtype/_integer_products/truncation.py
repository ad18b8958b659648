"""The moduli that two matrices need, so that no number is truncated."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .schemes import COUNTS, Scheme

Array = NDArray[Any]

_FAR = 1 << 20  # more than any exponent


def span(rows: Array) -> int:
    """Return the largest difference of exponents in a row, without zeros."""
    exponents, counts = np.frexp(rows)[1], rows != 0
    top = exponents.max(1, where=counts, initial=-_FAR)
    low = exponents.min(1, where=counts, initial=_FAR)
    return int((top - low).max(where=counts.any(1), initial=0))


def moduli_needed(x: Array, y: Array) -> int | None:
    """Return the smallest number of moduli that truncates no number of x and y.

    Parameters
    ----------
    x, y : ndarray of float64, (m, k) and (n, k)
        Finite rows of the first operand, and columns of the second one.

    Returns
    -------
    int or None
        None if even the largest number of moduli truncates numbers.
    """
    units = _last_bits(x), _last_bits(y)

    def suffices(count: int) -> bool:
        scales = Scheme("crt", count).scales(x, y, False)
        return all(
            bool((own + unit >= 0).all())
            for own, unit in zip(scales, units, strict=True)
        )

    found = bisect_left(COUNTS, True, key=suffices)
    return COUNTS[found] if found < len(COUNTS) else None


def _last_bits(rows: Array) -> Array:
    """Return the exponents of the smallest set bits in rows; 0 for rows of zeros."""
    mantissas, exponents = np.frexp(rows)
    integers = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = np.frexp((integers & -integers).astype(np.float64))[1] - 1
    units = (lowest + exponents - 53).min(1, where=rows != 0, initial=_FAR)
    return np.where(units == _FAR, 0, units)
