"""Convert real numbers to float32, in lines: the lines are the rows of a matrix.

Numbers that are not exact in float32 are rounded to odd. Rounding them a second time
then gives the same result as rounding once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._formats.table import find, own_array


def checked(x: object) -> NDArray[Any]:
    """Return an array of real numbers that has at least one axis.

    Raises
    ------
    TypeError
        For complex numbers, and for items that are not numbers.
    ValueError
        For an array without axes.
    """
    array = own_array(x)
    if not _is_real(array.dtype):
        raise TypeError(f"x must be an array of real numbers; got {array.dtype}")
    if array.ndim == 0:
        raise ValueError(
            "x must have at least one axis, which blocks are along; got a scalar"
        )
    return array


def as_lines(x: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return a matrix of x's dtype with the axis moved last.

    It is C-contiguous and aligned, as C's loops need it.
    """
    moved = np.moveaxis(x, axis, -1)
    *others, length = moved.shape
    return np.require(moved.reshape(math.prod(others), length), requirements=["C", "A"])


def from_lines(lines: NDArray[Any], shape: tuple[int, ...], axis: int) -> NDArray[Any]:
    """Return the array of that shape whose `as_lines` these are: a view."""
    others = shape[:axis] + shape[axis + 1 :]
    return np.moveaxis(lines.reshape(*others, shape[axis]), -1, axis)


def to_float32(x: NDArray[Any], overflow: str = "saturate") -> NDArray[np.float32]:
    """Convert numbers to float32 in native byte order, rounded to odd if not exact.

    A number above float32's range becomes float32's largest number if `overflow` is
    "saturate", else Inf.
    """
    native = x.astype(x.dtype.newbyteorder("="), copy=False)
    kind, size = native.dtype.kind, native.dtype.itemsize
    if kind in "iu" and size == 8:
        native = _to_float64(native)
        kind = "f"
    if kind == "b" or (kind in "iu" and size <= 2) or (kind == "f" and size <= 4):
        return native.astype(np.float32, copy=False)
    if kind in "iu":
        native = native.astype(np.float64)
    elif kind != "f":  # a format of ours: all of them lie within float32
        return native.astype(np.float32)
    with np.errstate(all="ignore"):
        nearest = native.astype(np.float32)
        inexact = np.not_equal(nearest, native) & ~np.isnan(native)
        beyond = np.abs(nearest) > np.abs(native)
    if overflow != "saturate":
        kept = np.isfinite(nearest)
        inexact &= kept
        beyond &= kept
    items = nearest.view(np.uint32)
    items -= beyond.view(np.uint8)  # one step to zero; from Inf to the maximum
    items |= inexact.view(np.uint8)
    return nearest


def _to_float64(x: NDArray[Any]) -> NDArray[np.float64]:
    """Integers of 64 bits, those beyond 2^53 to odd."""
    low = x.dtype.type((1 << 11) - 1)
    sticky = (x & ~low) | ((x & low != 0).astype(x.dtype) << x.dtype.type(11))
    fits = (x < 1 << 53) & (x > -(1 << 53)) if x.dtype.kind == "i" else x < 1 << 53
    return np.where(fits, x, sticky).astype(np.float64)


def _is_real(dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "biuf" and dtype.isbuiltin != 2:
        return True
    try:
        find(dtype)
    except TypeError:
        return False
    return True
