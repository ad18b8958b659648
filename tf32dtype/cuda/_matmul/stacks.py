"""Views and copies of stacks of matrices, as kernels need them."""

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
    """Undo `plain`: return storage as an array of a dtype, other arrays unchanged."""
    return wrap(x, dtype) if is_ours(dtype) else x


def reshape(x: Any, shape: Shape) -> Any:
    """Return a reshaped view if the array is C-contiguous, otherwise a copy."""
    if x.flags.c_contiguous:
        return x.reshape(shape)
    return like(backend.current().call("reshape", plain(x), shape), x.dtype)


def stack_of_one(x: Any) -> Any:
    """Return a view of a matrix as a stack of one matrix."""
    return cupy.ndarray((1, *x.shape), x.dtype, x.data, (0, *x.strides))


def of_stack(x: Any, count: int, part: slice) -> Any:
    """Return some of `count` matrices, or `x` itself if it is one matrix for all."""
    return x[part] if x.ndim == 3 and len(x) == count else x


def stacks(*arrays: Any) -> Iterator[tuple[Any, ...]]:
    """Yield views with three axes that together are all matrices of the arrays.

    The axes before the last two have the same lengths in all arrays. They are joined if
    their strides allow it. The longest joined axis becomes the axis of the stack. Each
    position along the other axes yields one view per array.
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


#: An axis: its length, and its stride in each array in bytes.
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
    """Yield the offsets in bytes of each position along the axes, one per array."""
    if not axes:  # the usual case
        yield (0,) * arrays
        return
    for place in np.ndindex(*(n for n, _ in axes)):
        each = [(i, steps) for i, (_, steps) in zip(place, axes, strict=True)]
        yield tuple(sum(i * steps[j] for i, steps in each) for j in range(arrays))
