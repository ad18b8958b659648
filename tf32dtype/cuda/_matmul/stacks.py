"""Stacks of matrices: their shapes, their memory, and what kernels take of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from .._arrays.ndarray import wrap
from .._runtime import backend
from .._runtime.backend import KEPT, Shape
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
    ahead = tuple(x.strides[:-2] for x in arrays)
    length, steps, others = joined(arrays[0].shape[:-2], ahead)
    for starts in places(others, len(arrays)):
        yield tuple(
            cupy.ndarray(
                (length, *x.shape[-2:]),
                x.dtype,
                x.data + start,
                (step, *x.strides[-2:]),
            )
            for x, start, step in zip(arrays, starts, steps, strict=True)
        )


#: An axis: its length, and its stride in each array.
Axis = tuple[int, Shape]


@lru_cache(maxsize=KEPT)
def joined(
    lengths: Shape, strides: tuple[Shape, ...]
) -> tuple[int, Shape, tuple[Axis, ...]]:
    """Return the length of the stack's axis, its strides, and the other axes."""
    axes: list[Axis] = []
    for length, steps in zip(lengths, zip(*strides, strict=True), strict=True):
        if length == 1:
            continue
        if axes and axes[-1][1] == tuple(length * step for step in steps):
            axes[-1] = axes[-1][0] * length, steps
        else:
            axes.append((length, steps))
    longest = max(range(len(axes)), key=lambda i: axes[i][0], default=None)
    length, steps = (1, (0,) * len(strides)) if longest is None else axes.pop(longest)
    return length, steps, tuple(axes)


def places(axes: tuple[Axis, ...], arrays: int) -> Iterator[Shape]:
    """Where each place begins in each of so many arrays, in bytes."""
    if not axes:  # as nearly always
        yield (0,) * arrays
        return
    for place in np.ndindex(*(n for n, _ in axes)):
        each = [(i, steps) for i, (_, steps) in zip(place, axes, strict=True)]
        yield tuple(sum(i * steps[j] for i, steps in each) for j in range(arrays))
