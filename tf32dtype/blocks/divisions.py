"""Divide numbers by a scale, exactly or in float32 as kernels do."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

#: The divisions for blocks: kernels divide by the rounded scales of blocks.
Division = Literal["exact", "divide", "reciprocal"]
TileDivision = Literal["exact", "divide", "reciprocal", "amax"]

DIVISIONS = get_args(Division)
TILE_DIVISIONS = get_args(TileDivision)


class Divisor(NamedTuple):
    """An operation, and its second operands in the dtype that it computes in."""

    operation: np.ufunc
    factors: NDArray[np.floating[Any]]


def divisor_of(scales: NDArray[Any], division: str) -> Divisor:
    """Divide by these scales in one of `DIVISIONS`.

    A quotient of float32 numbers in float64 equals a tie or a value of a format only if
    the exact quotient does.
    """
    if division == "exact":
        return Divisor(np.divide, scales.astype(np.float64))
    single = scales.astype(np.float32)
    if division == "divide":
        return Divisor(np.divide, single)
    with np.errstate(over="ignore", divide="ignore"):
        inverse = np.float32(1) / single
    inverse[single == 0] = 0
    return Divisor(np.multiply, checked_factors(inverse, division))


def checked_factors(x: NDArray[np.float32], division: str) -> NDArray[np.float32]:
    """Raise for a factor beyond the range of float32."""
    if np.isinf(x).any():
        raise ValueError(
            f"division={division!r} must have factors within the range of float32; got"
            " inf. Use division='divide' for such small numbers"
        )
    return x
