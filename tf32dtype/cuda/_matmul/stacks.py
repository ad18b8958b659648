"""Views and copies of stacks of matrices, as kernels need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._arrays.ndarray import wrap
from .._runtime import backend
from .._runtime.backend import Shape
from .._runtime.storage import is_ours, plain
from .._runtime.strides import spread
from .tile_options import CHUNK, Matrices


def like(x: Any, dtype: np.dtype[Any]) -> Any:
    """Undo `plain`: return storage as an array of a dtype, other arrays unchanged."""
    return wrap(x, dtype) if is_ours(dtype) else x


def reshape(x: Any, shape: Shape) -> Any:
    """Return a reshaped view if the array is C-contiguous, otherwise a copy."""
    if x.flags.c_contiguous:
        return x.reshape(shape)
    return like(backend.current().call("reshape", plain(x), shape), x.dtype)


#: An axis: its length, and its stride in each array in bytes.
Axis = tuple[int, Shape]


def stacked(
    arrays: Sequence[Matrices], stack: Shape
) -> tuple[tuple[Matrices, ...], tuple[Axis, ...]]:
    """Plan to go over arrays whose axes before the last two broadcast to `stack`.

    These axes are joined if the strides of all arrays allow it. The longest joined axis
    becomes that of a stack. Return the layouts of the stacks and the other axes, at
    each position of which there is a stack.
    """
    ahead = [spread((x.shape[:-2], x.strides[:-2], 0), stack) for x in arrays]
    axes: list[Axis] = []
    for length, steps in zip(stack, zip(*ahead, strict=True), strict=True):
        if length == 1:
            continue
        if axes and axes[-1][1] == tuple(length * step for step in steps):
            axes[-1] = axes[-1][0] * length, steps
        else:
            axes.append((length, steps))
    longest = max(range(len(axes)), key=lambda i: axes[i][0], default=None)
    length, steps = (1, (0,) * len(arrays)) if longest is None else axes.pop(longest)
    layouts = (
        x._replace(
            shape=(length, *x.shape[-2:]),
            strides=(step, *x.strides[-2:]),
            aligned=x.aligned and all(axis[1][i] % CHUNK == 0 for axis in axes),
        )
        for i, (x, step) in enumerate(zip(arrays, steps, strict=True))
    )
    return tuple(layouts), tuple(axes)


def places(axes: tuple[Axis, ...], arrays: int) -> Iterator[Shape]:
    """Yield the offsets in bytes of each position along the axes, one per array."""
    if not axes:  # the usual case
        yield (0,) * arrays
        return
    for place in np.ndindex(*(n for n, _ in axes)):
        each = [(i, steps) for i, (_, steps) in zip(place, axes, strict=True)]
        yield tuple(sum(i * steps[j] for i, steps in each) for j in range(arrays))
