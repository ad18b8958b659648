"""Matrices and right sides that the functions take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.matrices import Shape, stack_of
from .._base.wording import cast_advice
from .._formats.table import format_of_dtype, own_array

Array = NDArray[Any]


def as_floats(x: ArrayLike, name: str) -> Array:
    """Return an array as float32 or float64, whichever holds its numbers.

    Raises
    ------
    TypeError
        For numbers that neither holds.
    """
    array = own_array(x)
    dtype = array.dtype
    if dtype.char in "fd":
        return array.astype(dtype.newbyteorder("="), copy=False)
    if dtype.char == "e" or format_of_dtype(dtype) is not None:
        return array.astype(np.float32)
    if dtype.kind in "biu":
        return array.astype(np.float64)
    raise TypeError(
        f"{name} must hold real numbers of at most 64 bits;"
        f" got {dtype}{cast_advice(dtype, 'float64', name)}"
    )


def as_square(x: ArrayLike, name: str = "a") -> Array:
    """Return a square matrix, or a stack of them, as float32 or float64.

    Raises
    ------
    ValueError
        For another shape.
    """
    array = as_floats(x, name)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(
            f"{name} must be a square matrix or a stack of them, (..., n, n); got shape"
            f" {array.shape}"
        )
    return array


def as_columns(x: ArrayLike, n: int, name: str) -> tuple[Array, bool]:
    """Return columns of length n, and whether `x` is only one, without its own axis.

    As for `numpy.linalg.solve`, only an array of one axis is a vector.
    """
    array = as_floats(x, name)
    is_vector = array.ndim == 1
    length = array.shape[-1 if is_vector else -2] if array.ndim else -1
    if length != n:
        raise ValueError(
            f"{name} must have the shape ({n},) or (..., {n}, m), as a has {n} rows;"
            f" got shape {array.shape}"
        )
    return (array[:, np.newaxis] if is_vector else array), is_vector


def check_finite(x: Array, name: str) -> None:
    """Refuse numbers that no solution has a backward error for."""
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must be finite; got an Inf or a NaN")


def common_stack(a: Array, *columns: Array) -> Shape:
    """Broadcast the stacks of matrices and of columns."""
    stack = a.shape[:-2]
    for x in columns:
        stack = stack_of(stack, x.shape[:-2], a.shape, x.shape)
    return stack


def flat(matrices: Array) -> Array:
    """Return a stack of any axes as one of one axis."""
    stack = math.prod(matrices.shape[:-2])
    return matrices.reshape(stack, *matrices.shape[-2:])
