"""The floating-point errors of results, as NumPy reports them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_OVERFLOW, _INVALID = 2, 8  # as in src/runtime/fp_flags.h


def flags_of(result: Array, had_nan: Any, had_infinity: Any) -> int:
    """Return overflow and invalid operations of results, by facts of the operands.

    A NaN is not reported if an operand has one, nor an Inf if an operand has one or a
    NaN.
    """
    overflows = np.isinf(result) & ~(had_nan | had_infinity)
    invalid = np.isnan(result) & ~had_nan
    return _OVERFLOW * bool(overflows.any()) | _INVALID * bool(invalid.any())


def flags_of_product(result: Array, a: Array, b: Array) -> int:
    """Return those of a product of two matrices, or of chosen elements of it."""
    if np.isfinite(result).all():
        return 0
    one, other = (
        [np.isnan(x).any(axis), np.isinf(x).any(axis)] for x, axis in ((a, 1), (b, 0))
    )
    had_nan, had_infinity = (
        p[:, None] | q if result.ndim == 2 else p.any() | q.any()  # chosen elements
        for p, q in zip(one, other, strict=True)
    )
    return flags_of(result, had_nan, had_infinity)
