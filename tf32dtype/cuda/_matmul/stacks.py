"""Stacks of matrices: their shapes, their memory, and what kernels take of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np

from .._arrays.ndarray import wrap
from .._runtime import backend
from .._runtime.backend import Shape
from .._runtime.storage import is_ours, plain


def like(x: Any, dtype: np.dtype[Any]) -> Any:
    """What `plain` made, as an array of its dtype again."""
    return wrap(x, dtype) if is_ours(dtype) else x


def reshape(x: Any, shape: Shape) -> Any:
    """A view if the array is contiguous, else a copy."""
    if x.flags.c_contiguous:
        return x.reshape(shape)
    return like(backend.current().call("reshape", plain(x), shape), x.dtype)


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
