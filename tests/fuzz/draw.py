"""Arrays with every kind of memory layout, for the fuzzer."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
BUILTINS = ("?", *INTEGERS, "q", "Q", "f2", "f4", "f8", "g", "F", "D", "G")


class Draw:
    """Draw random shapes, dtypes and arrays."""

    def __init__(self, scalar_types: Sequence[Any]) -> None:
        self.random = random.Random()
        self.ours = [np.dtype(t) for t in scalar_types]
        self.builtins = [np.dtype(c) for c in BUILTINS]
        self.builtins += [d.newbyteorder() for d in self.builtins if d.itemsize > 1]
        rng = np.random.default_rng(12345)
        self.memory = {d: self._memory(rng, d) for d in self.ours + self.builtins}

    @staticmethod
    def _memory(rng: np.random.Generator, dtype: np.dtype) -> bytes:
        """Return elements to view: first random codes (but not of bool and long
        double), then small numbers, of which the second half are finite."""
        count = 1 << 16
        values = rng.normal(0, 3, count)
        values[::3] = rng.integers(-4, 5, len(values[::3]))
        if dtype.name == "float8_e8m0fnu":  # has only positive numbers
            values = np.abs(values) + 0.1
        specials = np.repeat([np.nan, np.inf, -np.inf], 300)
        values[rng.integers(0, count // 2, 900)] = specials
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            small = values.astype(dtype).tobytes()
        if dtype.kind in "iufcV" and dtype.char not in "gG":
            return rng.bytes(count * dtype.itemsize) + small
        return small + small

    def shape(self, dimensions: int | None = None) -> tuple[int, ...]:
        r = self.random
        if dimensions is None:
            dimensions = r.choice((0, 1, 1, 1, 2, 2, 2, 3, 4))
        if dimensions == 1 and r.random() < 0.01:
            return (r.randrange(8000, 20000),)
        if dimensions == 1:
            return (r.choice((0, 1, 2, 3, 7, 16, 31, 64, 100, 257)),)
        return tuple(r.choice((0, 1, 2, 3, 3, 4, 5, 9)) for _ in range(dimensions))

    def dtype(self) -> np.dtype:
        pick = self.random.choice
        return pick(self.ours) if self.random.random() < 0.75 else pick(self.builtins)

    def strides(
        self, shape: tuple[int, ...], item: int, repeat: bool
    ) -> tuple[list[int], int, int]:
        """Draw strides, and the lowest and highest byte offset from element zero."""
        r = self.random
        style = r.random()
        axes = list(range(len(shape)))
        strides = [0] * len(shape)
        step = item
        if style > 0.4:
            r.shuffle(axes)
            step *= r.choice((1, 1, 2, 3))
        low = high = 0
        for axis in reversed(axes):
            n = shape[axis]
            strides[axis] = step
            step *= max(n, 1)
            if style > 0.4 and r.random() < 0.35:
                strides[axis] = -strides[axis]
            if style > 0.4 and repeat and r.random() < 0.1:
                strides[axis] = 0
            reach = strides[axis] * max(n - 1, 0)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return strides, low, high + item

    def view(self, memory: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """Draw a view of the shape in `memory`, at any offset and with any strides."""
        r = self.random
        item = dtype.itemsize
        writable = isinstance(memory, bytearray)
        room = 0
        while room < item:  # some strides of large shapes do not fit
            strides, low, high = self.strides(shape, item, not writable)
            room = len(memory) - (high - low) - item
        offset = r.randrange(room // item) * item - low
        if r.random() < 0.15 and dtype.kind != "b":
            offset += r.randrange(item)
        return np.ndarray(shape, dtype, memory, offset, strides)

    def array(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        return self.view(self.memory[dtype], dtype, shape)

    def output(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """Draw a writable array."""
        size = 4 * (math.prod(max(n, 1) for n in shape) + 2) * dtype.itemsize
        return self.view(bytearray(self.memory[dtype][-size:]), dtype, shape)

    def mask(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.array(np.dtype("?"), shape)

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Draw a shape that broadcasts to the given one."""
        r = self.random
        if r.random() < 0.6:
            return shape
        lower = shape[r.randrange(len(shape) + 1) :]
        return tuple(1 if r.random() < 0.2 else n for n in lower)
