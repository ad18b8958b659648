"""Powers of two that bring a matrix into the range of a precision.

Higham, Pranesh and Zounon, "Squeezing a matrix into half precision, with an application
to solving linear systems", SIAM J. Sci. Comput. 41(4), 2019. Powers of two are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def exponents(x: Array, axis: int) -> Array:
    """Return e with 2^(e-1) <= max |x| < 2^e along an axis, or 0 for zeros."""
    largest = np.abs(x).max(axis=axis, initial=0)
    found: Array = np.frexp(largest)[1]
    return found


def scaled(a: Array, rows: Array, columns: Array) -> Array:
    """Return matrices whose rows and columns are multiplied by powers of two."""
    powers = rows[..., :, np.newaxis] + columns[..., np.newaxis, :]
    result: Array = np.ldexp(a, powers)
    return result


def powers_of_columns(a: Array) -> Array:
    """Return exponents that bring the largest element of each column to 0.5 or more."""
    return -exponents(a, -2)


def powers_of_rows(a: Array, reach: int) -> Array:
    """Return exponents that bring the largest element of each row to 0.5 or more.

    They are zero for a matrix that does not need them: the largest element of each row
    is at least 2^-reach.
    """
    found = -exponents(a, -1)
    needed = found.max(axis=-1, keepdims=True, initial=0) > reach
    return np.where(needed, found, 0)


def powers_of_diagonal(a: Array) -> Array:
    """Return exponents of rows and columns that bring the diagonal near to 1."""
    diagonal = np.abs(np.diagonal(a, axis1=-2, axis2=-1))
    found: Array = -(np.frexp(diagonal)[1] // 2)
    return found
