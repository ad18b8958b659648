"""Kernels over arrays of any strides: `struct tf_walk` of src/cuda/strides.h."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import cupy
import numpy as np

from . import backend
from .backend import Kernel

#: As TF_AXES: what still has more axes is copied to C order first.
AXES = 8
THREADS = 256
#: Blocks that a multiprocessor is given; the rest is the grid's loop.
BLOCKS = 16


def collapse(
    shape: Sequence[int], strides: Sequence[Sequence[int]], *, reorder: bool = True
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The same elements in as few axes as possible, the outermost first.

    Parameters
    ----------
    shape : sequence of int
        No length is 0.
    strides : sequence of sequences of int
        Those of each array along the axes.
    reorder : bool
        Whether axes may change places, so that neighbours in the first array follow
        one another. Without it the elements keep their C order.

    Returns
    -------
    tuple
        The shape and the arrays' strides; no axes if there is one element.
    """
    axes = [
        (length, tuple(x[axis] for x in strides))
        for axis, length in enumerate(shape)
        if length != 1
    ]
    if reorder:
        axes.sort(key=lambda axis: tuple(-abs(stride) for stride in axis[1]))
    merged: list[tuple[int, tuple[int, ...]]] = []
    for length, steps in axes:
        if merged and merged[-1][1] == tuple(length * step for step in steps):
            length *= merged.pop()[0]
        merged.append((length, steps))
    return (
        tuple(length for length, _ in merged),
        tuple(tuple(steps[k] for _, steps in merged) for k in range(len(strides))),
    )


def divider(length: int, width: int) -> tuple[int, int]:
    """Multiplier and shift of `tf_quotient`, for indices below 2^(width - 1)."""
    shift = (length - 1).bit_length() - 1
    return -(-(1 << (width + shift)) // length), shift


@cache
def _walk_dtype(arrays: int) -> np.dtype[Any]:
    return np.dtype(
        [
            ("size", np.int64),
            ("axes", np.int64),
            ("shape", np.int64, (AXES,)),
            ("multipliers", np.uint64, (AXES,)),
            ("shifts", np.int64, (AXES,)),
            ("strides", np.int64, (arrays, AXES)),
        ]
    )


def describe(
    shape: Sequence[int],
    strides: Sequence[Sequence[int]],
    itemsizes: Sequence[int],
) -> Any:
    """A `struct tf_walk`, a kernel's argument, of axes as `collapse` gives them.

    `itemsizes` are the strides of what has one element alone.
    """
    size = math.prod(shape)
    width = 32 if size < 2**31 else 64
    walk = np.zeros((), _walk_dtype(len(strides)))
    walk["size"] = size
    walk["axes"] = max(1, len(shape))
    for axis, length in enumerate(shape[::-1]):
        walk["shape"][axis] = length
        walk["multipliers"][axis], walk["shifts"][axis] = divider(length, width)
    for k, steps in enumerate(strides):
        walk["strides"][k, : max(1, len(shape))] = steps[::-1] or (itemsizes[k],)
    return walk


def blocks(elements: int, per_thread: int = 1) -> int:
    """How many blocks of THREADS share that many elements."""
    needed = -(-elements // (THREADS * per_thread))
    return max(1, min(needed, BLOCKS * backend.current().processors()))


def elementwise(
    kernel: Kernel,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    *arguments: Any,
    per_thread: int = 1,
) -> None:
    """Start a kernel on the elements of arrays, each at its place.

    The kernel is given a `struct tf_walk` of the outputs and then the inputs, pointers
    to their first elements, and `arguments`.

    Parameters
    ----------
    outputs, inputs : sequences of cupy.ndarray
        Plain arrays, of storage. The outputs have one shape, to which the inputs are
        broadcast. An input may overlap an output in any way: it is read as it was.
    per_thread : int
        How many elements a thread handles at a time.
    """
    shape = outputs[0].shape
    inputs = [cupy.broadcast_to(x, shape) for x in inputs]
    if math.prod(shape) == 0:
        return
    inputs = [_apart(x, outputs) for x in inputs]
    given = [*outputs, *inputs]
    extents, strides = collapse(shape, [x.strides for x in given])
    targets = list(outputs)
    if len(extents) > AXES:
        targets = [cupy.empty(shape, x.dtype) for x in outputs]
        call = backend.current().call
        given = [*targets, *(call("ascontiguousarray", x) for x in inputs)]
        extents, strides = collapse(shape, [x.strides for x in given])
    walk = describe(extents, strides, [x.dtype.itemsize for x in given])
    backend.current().launch(
        kernel, (blocks(math.prod(shape), per_thread),), (THREADS,), walk, *given,
        *arguments,
    )  # fmt: skip
    for target, output in zip(targets, outputs, strict=True):
        if target is not output:
            backend.current().call("copyto", output, target)


def _apart(x: Any, outputs: Sequence[Any]) -> Any:
    """An input, or a copy of it where writing an output would change it."""
    for output in outputs:
        same = (
            x.data.ptr == output.data.ptr
            and x.strides == output.strides
            and x.dtype.itemsize == output.dtype.itemsize
            # Else an element may be written before it is read once more.
            and all(step or n < 2 for n, step in zip(x.shape, x.strides, strict=True))
        )
        if not same and cupy.may_share_memory(x, output):
            return backend.current().call("ndarray.copy", x)
    return x
