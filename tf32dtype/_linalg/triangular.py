"""Solutions of triangular systems.

Each step multiplies and subtracts element by element, so that results do not depend on
the machine's BLAS. Columns of the matrix are read one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def by_columns(a: Array) -> Array:
    """Return float64 matrices whose columns are contiguous."""
    return np.ascontiguousarray(a.swapaxes(-1, -2), np.float64).swapaxes(-1, -2)


def solve_lower(a: Array, x: Array, *, unit: bool) -> None:
    """Replace columns x by the solutions of a lower triangular system.

    With `unit`, the diagonal is taken as ones. Elements above it are not read.
    """
    for i in range(a.shape[-1]):
        if not unit:
            x[..., i, :] /= a[..., i, i, np.newaxis]
        x[..., i + 1 :, :] -= a[..., i + 1 :, i, np.newaxis] * x[..., np.newaxis, i, :]


def solve_upper(a: Array, x: Array) -> None:
    """Replace columns x by the solutions of an upper triangular system."""
    for i in reversed(range(a.shape[-1])):
        x[..., i, :] /= a[..., i, i, np.newaxis]
        x[..., :i, :] -= a[..., :i, i, np.newaxis] * x[..., np.newaxis, i, :]
