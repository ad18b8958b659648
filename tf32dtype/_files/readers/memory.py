"""Large arrays a piece at a time, and their memory given back."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..._base.mapping import exporter
from .tensor import Array


def release(array: Any) -> None:
    """Let the system take back the memory of an array that is mapped from a file."""
    memory = exporter(array)
    if isinstance(memory, mmap.mmap) and hasattr(memory, "madvise"):
        with suppress(OSError, ValueError):
            memory.madvise(mmap.MADV_DONTNEED)


def lines(array: Any, size: int) -> Iterator[tuple[slice, ...]]:
    """Yield indices that divide an array of blocks or tiles.

    Each piece has about so many numbers, in whole blocks and tiles.
    """
    if array.ndim == 1:
        yield (slice(None),)
        return
    tile = getattr(array, "tile", None)
    along = int(tile is None and array.axis == 0)
    length = array.shape[along]
    step = max(1, size * length // max(1, math.prod(array.shape)))
    if tile is not None and array.ndim == 2:
        step = -(-step // tile[0]) * tile[0]
    for start in range(0, length, step):
        yield (*[slice(None)] * along, slice(start, start + step))


def values(array: Any, size: int) -> Iterator[Array]:
    """The numbers of blocks or tiles in float32, about so many at a time."""
    for index in lines(array, size):
        yield array[index].dequantize()
