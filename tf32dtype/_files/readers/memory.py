"""Process large arrays in pieces, and release their memory."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..._base.mapping import exporter
from .tensor import Array


def release(array: Any) -> None:
    """Let the system free the memory of an array that is mapped from a file."""
    memory = exporter(array)
    if isinstance(memory, mmap.mmap) and hasattr(memory, "madvise"):
        with suppress(OSError, ValueError):
            memory.madvise(mmap.MADV_DONTNEED)


def lines(array: Any, size: int) -> Iterator[tuple[slice, ...]]:
    """Yield indices that divide an array of blocks or tiles.

    Each piece has about `size` values, in whole blocks and tiles.
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
    """Yield the values of blocks or tiles in float32, about `size` at a time."""
    for index in lines(array, size):
        yield array[index].dequantize()
