"""Start kernels over arrays of any strides, with `struct tf_walk` of strides.h."""

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

#: Largest number of axes in a kernel, TF_AXES. Arrays that need more are copied first.
AXES = 8
THREADS = 256
#: Blocks per multiprocessor. Kernels loop over the elements that remain.
BLOCKS = 16


class Launch(NamedTuple):
    """The number of threads and blocks of a kernel over elements."""

    threads: int = THREADS  #: threads per block
    blocks: int = BLOCKS  #: most blocks per multiprocessor
    shared: int = 0  #: bytes of shared memory per block


LAUNCH = Launch()


def collapse(
    shape: Sequence[int], strides: Sequence[Sequence[int]], *, reorder: bool = True
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Describe the elements of arrays by as few axes as possible, outermost first.

    Parameters
    ----------
    shape : sequence of int
        Shape of the arrays, without a length of 0.
    strides : sequence of sequences of int
        Strides of each array along these axes, in bytes.
    reorder : bool
        Whether to sort the axes by the strides of the first array, so that neighbors in
        memory follow one another. Without it the elements keep their C order.

    Returns
    -------
    tuple
        The shape and the arrays' strides; without axes if there is one element.
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
    """Return multiplier and shift of `tf_quotient`, for indices below 2^(width - 1)."""
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
    """Return a `struct tf_walk`, a kernel's argument, for the axes from `collapse`.

    `itemsizes` are the strides of the arrays if they have only one element.
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
    """Return the number of blocks that share `elements` elements.

    Without `processors`, the number of multiprocessors is that of the current device.
    """
    needed = -(-elements // (launch.threads * per_thread))
    processors = processors or backend.current().processors()
    return max(1, min(needed, launch.blocks * processors))


#: Shape, strides and itemsize of an array.
Layout = tuple[tuple[int, ...], tuple[int, ...], int]


class _Plan(NamedTuple):
    """A plan to go over arrays of given layouts, without their addresses."""

    grid: tuple[int]  #: number of blocks; 0 if there are no elements
    walk: Constant


@lru_cache(maxsize=KEPT)
def _plan(
    outputs: int,
    layouts: tuple[Layout, ...],
    per_thread: int,
    processors: int,
    launch: Launch,
) -> _Plan | None:
    """Return a plan for layouts, those of the outputs first; None for too many axes."""
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
    """Return the strides of an array that is broadcast to a shape.

    Raises
    ------
    ValueError
        If the array cannot be broadcast to the shape.
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
    """Start a kernel that computes each element of outputs from those of inputs.

    The kernel's arguments are a `struct tf_walk` of the outputs and then the inputs,
    pointers to their first elements, and `arguments`.

    Parameters
    ----------
    outputs, inputs : sequences of cupy.ndarray
        The outputs have one shape, to which the inputs are broadcast. An input may
        overlap an output in any way, because it is copied if necessary.
    per_thread : int
        Number of elements that a thread handles at a time.
    launch : Launch
        Threads and blocks, if the kernel does not use the default.
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
    """Compute arrays with too many axes, through copies in C order."""
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
    """Return an input, or a copy if writing an output would change it."""
    for output in outputs:
        if not cupy.may_share_memory(x, output):
            continue
        same = (
            x.data.ptr == output.data.ptr
            and x.shape == output.shape
            and x.strides == output.strides
            and x.dtype.itemsize == output.dtype.itemsize
            # With a stride of 0, an element could be written before its next read.
            and all(step or n < 2 for n, step in zip(x.shape, x.strides, strict=True))
        )
        if not same:
            return backend.current().call("ndarray.copy", plain(x))
    return x
