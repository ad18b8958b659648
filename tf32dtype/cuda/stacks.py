"""Stacks of matrices: their shapes, their memory, and what kernels take of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np

from . import backend
from .array import is_ours, plain, wrap

Shape = tuple[int, ...]


def like(x: Any, dtype: np.dtype[Any]) -> Any:
    """What `plain` made, as an array of its dtype again."""
    return wrap(x, dtype) if is_ours(dtype) else x


def reshape(x: Any, shape: Shape) -> Any:
    """A view if the array is contiguous, else a copy."""
    if x.flags.c_contiguous:
        return x.reshape(shape)
    return like(backend.current().call("reshape", plain(x), shape), x.dtype)


class View:
    """Matrices in an array's memory, where only their place and layout is asked for:
    quicker to make than an array."""

    __slots__ = "data", "dtype", "itemsize", "shape", "strides"
    ndim = 3

    def __init__(self, dtype: Any, data: Any, shape: Shape, strides: Shape) -> None:
        self.data = data
        self.dtype = dtype
        self.itemsize = dtype.itemsize
        self.shape = shape
        self.strides = strides

    @property
    def array(self) -> Any:
        """For what asks for more."""
        return cupy.ndarray(self.shape, self.dtype, self.data, self.strides)

    @property
    def flipped(self) -> View:
        """Rows as columns, of a stack."""
        (s, m, n), (stack, down, across) = self.shape, self.strides
        return View(self.dtype, self.data, (s, n, m), (stack, across, down))


def view_of(x: Any) -> View:
    """A matrix or a stack of them, as a stack."""
    shape, strides = x.shape, x.strides
    if len(shape) == 2:
        shape, strides = (1, *shape), (0, *strides)
    return View(x.dtype, x.data, shape, strides)


def stack_of_one(x: Any) -> Any:
    """A matrix as a stack, a view."""
    return cupy.ndarray((1, *x.shape), x.dtype, x.data, (0, *x.strides))


def of_stack(x: Any, count: int, part: slice) -> Any:
    """Some of `count` matrices; of one that stands for all of them, this one."""
    return x[part] if x.ndim == 3 and len(x) == count else x


def stacks(*arrays: Any) -> Iterator[tuple[Any, ...]]:
    """Views with three axes that are all of arrays of matrices together.

    Axes before the last two, of equal lengths in all arrays, become one where their
    strides allow it; the longest is the stack's, and each place in the others yields
    views of its own.
    """
    axes: list[tuple[int, Shape]] = []  # lengths, and the strides of each array
    for axis, length in enumerate(arrays[0].shape[:-2]):
        strides = tuple(x.strides[axis] for x in arrays)
        if length == 1:
            continue
        if axes and axes[-1][1] == tuple(length * stride for stride in strides):
            axes[-1] = axes[-1][0] * length, strides
        else:
            axes.append((length, strides))
    stack = max(range(len(axes)), key=lambda i: axes[i][0], default=None)
    length, strides = (1, (0,) * len(arrays)) if stack is None else axes.pop(stack)
    for place in np.ndindex(*(n for n, _ in axes)):
        yield tuple(
            cupy.ndarray(
                (length, *x.shape[-2:]),
                x.dtype,
                x.data + sum(i * s[j] for i, (_, s) in zip(place, axes, strict=True)),
                (strides[j], *x.strides[-2:]),
            )
            for j, x in enumerate(arrays)
        )
