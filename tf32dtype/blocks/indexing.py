"""Indices of an array of blocks: which of its lines they take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.wording import brief


def take(
    key: object, shape: tuple[int, ...], axis: int
) -> tuple[NDArray[np.intp], tuple[int, ...], int]:
    """The lines that a key takes, and the shape and the block axis of the result.

    Any index that NumPy knows will do that takes the block axis whole.

    Returns
    -------
    lines : ndarray of intp
        Numbers of lines, in C order of the axes that are not the block axis; of the
        result's shape without its block axis.
    shape : tuple of int
    axis : int

    Raises
    ------
    IndexError
        If the key takes part of the block axis or adds an axis, or as NumPy's.
    """
    entries = _with_whole_axis(key, shape, axis)
    others = shape[:axis] + shape[axis + 1 :]
    numbers = np.expand_dims(np.arange(math.prod(others)).reshape(others), axis)
    # Find the new place of the block axis: index two arrays that differ only in it.
    one = numbers[entries]
    two = np.broadcast_to(np.int8(0), (*shape[:axis], 2, *shape[axis + 1 :]))[entries]
    to = next(i for i, length in enumerate(one.shape) if length != two.shape[i])
    result = (*one.shape[:to], shape[axis], *one.shape[to + 1 :])
    return np.squeeze(one, to), result, to


def _with_whole_axis(key: object, shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """Return the key as a tuple, with an entry for each axis."""
    entries: list[Any] = []
    for entry in key if isinstance(key, tuple) else (key,):
        if entry is None:
            raise IndexError(
                "an array of blocks cannot be indexed with None (a new axis); use"
                " dequantize() first"
            )
        is_scalar = entry is Ellipsis or isinstance(entry, slice)
        entries.append(entry if is_scalar else _index_array(entry))
    takes = [_axes_of(entry) for entry in entries]
    if takes.count(-1) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    given = sum(n for n in takes if n >= 0)
    if given > len(shape):
        raise IndexError(
            f"too many indices: array must have at least {given} axes; got {len(shape)}"
        )
    if -1 not in takes:
        entries.append(Ellipsis)
        takes.append(-1)
    at = takes.index(-1)
    missing = len(shape) - given
    if missing:  # else it stays: NumPy moves the axes of arrays on both sides of one
        entries[at : at + 1] = [slice(None)] * missing
        takes[at : at + 1] = [1] * missing
    else:
        takes[at] = 0
    first = 0
    for i, (entry, count) in enumerate(zip(entries, takes, strict=True)):
        if first <= axis < first + count:
            length = shape[axis]
            if not isinstance(entry, slice) or not _is_whole(entry, length):
                raise IndexError(
                    f"axis {axis} is the block axis, whose values share scales, and"
                    " must be taken whole; to index it, use dequantize() first"
                )
            entries[i] = slice(None)
        first += count
    return tuple(entries)


def _index_array(entry: object) -> Any:
    """Return an integer, or an array of integers or bools."""
    array = np.asarray(entry)
    if array.size == 0 and not isinstance(entry, np.ndarray):
        array = array.astype(np.intp)  # NumPy's own rule for an empty list
    if array.dtype.kind not in "biu" or (array.dtype.kind == "b" and array.ndim == 0):
        raise IndexError(
            "an index must be an integer, a slice, ... or an array of integers or"
            f" booleans; got {brief(entry)}"
        )
    return int(array) if array.ndim == 0 else array


def _axes_of(entry: Any) -> int:
    """How many axes an entry takes; -1 for an ellipsis."""
    if entry is Ellipsis:
        return -1
    return entry.ndim if isinstance(entry, np.ndarray) and entry.dtype == bool else 1


def _is_whole(entry: slice, length: int) -> bool:
    return range(length)[entry] == range(length)
