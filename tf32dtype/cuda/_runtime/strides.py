"""Kernels over arrays of any strides: `struct tf_walk` of src/cuda/common/strides.h."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from . import backend
from .backend import KEPT, Constant, Kernel
from .storage import plain

#: As TF_AXES: what still has more axes is copied to C order first.
AXES = 8
THREADS = 256
#: Blocks that a multiprocessor is given; the rest is the grid's loop.
BLOCKS = 16


class Launch(NamedTuple):
    """How many threads a kernel over elements is given."""

    threads: int = THREADS  #: of a block
    blocks: int = BLOCKS  #: of a multiprocessor, at most
    shared: int = 0  #: bytes of a block's shared memory


LAUNCH = Launch()


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
        Whether axes may change places, so that neighbors in the first array follow
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


def blocks(
    elements: int,
    per_thread: int = 1,
    processors: int | None = None,
    launch: Launch = LAUNCH,
) -> int:
    """Return how many blocks share so many elements.

    The device is the current one, or one of so many multiprocessors.
    """
    needed = -(-elements // (launch.threads * per_thread))
    processors = processors or backend.current().processors()
    return max(1, min(needed, launch.blocks * processors))


#: Of an array: shape, strides and itemsize.
Layout = tuple[tuple[int, ...], tuple[int, ...], int]


class _Plan(NamedTuple):
    """How a kernel goes over arrays, whatever they hold and wherever they are."""

    grid: tuple[int]  #: none if there is no element
    walk: Constant


@lru_cache(maxsize=KEPT)
def _plan(
    outputs: int,
    layouts: tuple[Layout, ...],
    per_thread: int,
    processors: int,
    launch: Launch,
) -> _Plan | None:
    """None: there are too many axes. The first layouts are those of the outputs."""
    shape = layouts[0][0]
    size = math.prod(shape)
    strides = [spread(x, shape) for x in layouts]
    if size == 0:
        return _Plan((0,), Constant(0))
    extents, steps = collapse(shape, strides)
    if len(extents) > AXES:
        return None
    walk = describe(extents, steps, [itemsize for *_, itemsize in layouts])
    return _Plan((blocks(size, per_thread, processors, launch),), Constant(walk))


def spread(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array that is broadcast to a shape.

    Raises
    ------
    ValueError
        If it cannot be.
    """
    own, strides, _ = layout
    if own == shape:
        return strides
    if np.broadcast_shapes(own, shape) != shape:
        raise ValueError(f"array of shape {own} cannot be broadcast to {shape}")
    steps = (0 if n == 1 else step for n, step in zip(own, strides, strict=True))
    return (*(0,) * (len(shape) - len(own)), *steps)


def elementwise(
    kernel: Kernel,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    *arguments: Any,
    per_thread: int = 1,
    launch: Launch = LAUNCH,
) -> None:
    """Start a kernel on the elements of arrays, each at its place.

    The kernel is given a `struct tf_walk` of the outputs and then the inputs, pointers
    to their first elements, and `arguments`.

    Parameters
    ----------
    outputs, inputs : sequences of cupy.ndarray
        The outputs have one shape, to which the inputs are broadcast. An input may
        overlap an output in any way: it is read as it was.
    per_thread : int
        How many elements a thread handles at a time.
    launch : Launch
        Where a kernel needs other blocks.
    """
    machine = backend.current()
    given = [*outputs, *(_apart(x, outputs) for x in inputs)]
    plan = _plan(
        len(outputs),
        tuple([(x.shape, x.strides, x.itemsize) for x in given]),
        per_thread,
        machine.processors(),
        launch,
    )
    if plan is None:
        _in_c_order(kernel, outputs, given, arguments, per_thread, launch)
    elif plan.grid != (0,):
        machine.launch(
            kernel, plan.grid, (launch.threads,), plan.walk, *given, *arguments,
            shared=launch.shared,
        )  # fmt: skip


def _in_c_order(
    kernel: Kernel,
    outputs: Sequence[Any],
    given: list[Any],
    arguments: tuple[Any, ...],
    per_thread: int,
    launch: Launch,
) -> None:
    """Arrays of many axes, by way of others that have one."""
    shape, call = outputs[0].shape, backend.current().call
    inputs = [plain(cupy.broadcast_to(x, shape)) for x in given[len(outputs) :]]
    targets = [cupy.empty(shape, plain(x).dtype) for x in outputs]
    copies = [call("ascontiguousarray", x) for x in inputs]
    elementwise(
        kernel, targets, copies, *arguments, per_thread=per_thread, launch=launch
    )
    for target, output in zip(targets, outputs, strict=True):
        call("copyto", plain(output), target)


def _apart(x: Any, outputs: Sequence[Any]) -> Any:
    """An input, or a copy of it where writing an output would change it."""
    for output in outputs:
        if not cupy.may_share_memory(x, output):
            continue
        same = (
            x.data.ptr == output.data.ptr
            and x.shape == output.shape
            and x.strides == output.strides
            and x.dtype.itemsize == output.dtype.itemsize
            # Else an element may be written before it is read once more.
            and all(step or n < 2 for n, step in zip(x.shape, x.strides, strict=True))
        )
        if not same:
            return backend.current().call("ndarray.copy", plain(x))
    return x
