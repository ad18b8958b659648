"""Count the numbers of an array: range, exponents, zeros, subnormals, Inf and NaN.

Arrays are counted in pieces: an array mapped from a file is read once, and little of it
is in memory. Numbers of 16 bits or fewer are counted by their codes, which are few. For
wider numbers the exponent fields are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._formats.codes import from_bits
from .._formats.table import formats
from .format_facts import facts

Array = NDArray[Any]

PIECE = 1 << 22  # numbers per piece, for callers that use the pieces


@dataclass
class Counts:
    """The counts and the range of some numbers."""

    size: int = 0
    zeros: int = 0
    subnormals: int = 0
    infinities: int = 0
    nans: int = 0
    #: range of finite numbers; None: there are none
    least: float | None = None
    greatest: float | None = None
    #: count of numbers with a magnitude from 2^e to below 2^(e + 1), by e
    exponents: dict[int, int] = field(default_factory=dict)

    def widen(self, finite: Array) -> None:
        """Take in the range of numbers."""
        if finite.size:
            # -0 would be the range of zeros.
            least, greatest = finite.min().item() + 0, finite.max().item() + 0
            self.least = least if self.least is None else min(self.least, least)
            self.greatest = max(
                greatest, greatest if self.greatest is None else self.greatest
            )

    def add_exponents(self, exponents: Array, counts: Array) -> None:
        """Take in so many numbers of these exponents."""
        for e, many in zip(exponents.tolist(), counts.tolist(), strict=True):
            self.exponents[e] = self.exponents.get(e, 0) + many

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        first = min(self.exponents, default=0)
        last = max(self.exponents, default=first - 1)
        return {
            "values": self.size,
            "min": self.least,
            "max": self.greatest,
            "zeros": self.zeros,
            "subnormals": self.subnormals,
            "infinities": self.infinities,
            "nans": self.nans,
            "exponents": {
                "first": first,
                "counts": [self.exponents.get(e, 0) for e in range(first, last + 1)],
            },
        }


def is_countable(dtype: np.dtype[Any]) -> bool:
    """Return whether `count` takes arrays of a dtype."""
    return dtype.kind in "biuf"


def count(x: Iterable[Array], dtype: np.dtype[Any]) -> Counts:
    """Count the numbers of arrays.

    Parameters
    ----------
    x : iterable of numpy.ndarray
        Pieces of one array, contiguous and of any shape.
    dtype : dtype
        Theirs: a format's, or one of NumPy's floats, integers or bool. Integers count
        as float64 has them, longdouble too.

    Returns
    -------
    Counts
    """
    way: type[_Codes | _Fields] = (
        _Codes if dtype.kind == "f" and dtype.itemsize <= 2 else _Fields
    )
    native = dtype if _is_ours(dtype) else dtype.newbyteorder("=")
    counter = way(native)
    with np.errstate(all="ignore"):
        for array in x:
            for piece in pieces(array, counter.step):
                counter.add(piece.astype(native, copy=False))
        return counter.counts()


def _is_ours(dtype: np.dtype[Any]) -> bool:
    return dtype.isbuiltin == 2


def pieces(x: Array, size: int = PIECE) -> Iterator[Array]:
    """Yield the numbers of an array, so many at a time, in the order of memory."""
    flat = x.reshape(-1) if x.flags.c_contiguous else x.ravel(order="K")
    for start in range(0, flat.size, size):
        yield flat[start : start + size]


class _Codes:
    """Numbers of 8 or 16 bits, by their codes."""

    step = 1 << 19  # numbers at a time: the fastest, measured

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.pairs = np.zeros(1 << 16, np.int64)  # of 16 bits: a code, or two
        self.odd = np.zeros(1 << 8, np.int64)  # the one that has no second

    def add(self, piece: Array) -> None:
        codes = piece.view(np.uint8)
        even = codes.size & ~1
        pairs = codes[:even].view(np.uint16)
        self.pairs += np.bincount(pairs.astype(np.intp), minlength=1 << 16)
        if even < codes.size:
            self.odd[codes[even]] += 1

    def counts(self) -> Counts:
        many = self.pairs
        if self.dtype.itemsize == 1:
            pairs = many.reshape(256, 256)
            many = pairs.sum(0) + pairs.sum(1) + self.odd
        values, normal = _codes(self.dtype)
        counts = Counts(int(many.sum()))
        there = many > 0
        finite = np.isfinite(values)
        counts.nans = int(many[np.isnan(values)].sum())
        counts.infinities = int(many.sum(where=np.isinf(values)))
        counts.zeros = int(many[values == 0].sum())
        small = (values != 0) & (np.abs(values) < normal)
        counts.subnormals = int(many[small].sum())
        counts.widen(values[there & finite])
        kept = there & finite & (values != 0)
        counts.add_exponents(np.frexp(values[kept])[1] - 1, many[kept])
        return counts


@cache
def _codes(dtype: np.dtype[Any]) -> tuple[Array, float]:
    """Return all values of a dtype in float64, and its smallest normal number."""
    codes = np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}")
    ours = _is_ours(dtype)
    numbers = from_bits(codes, dtype, dirty="ignore") if ours else codes.view(dtype)
    return numbers.astype(np.float64), facts(dtype.name).smallest_normal


class _Fields:
    """Wider numbers, by their exponent fields."""

    step = 1 << 15

    def __init__(self, dtype: np.dtype[Any]) -> None:
        single = dtype.kind == "f" and dtype.itemsize == 4
        self.work = np.dtype(np.float32 if single else np.float64)
        # The unused low bits of tf32 codes are ignored.
        self.unused = formats[dtype].unused_low_bits if _is_ours(dtype) else 0
        info = np.finfo(np.float32 if single else np.float64)
        self.mantissa, self.bias = info.nmant, 1 - info.minexp
        self.fields = np.zeros(1 << info.nexp, np.int64)
        self.found = Counts()

    def add(self, piece: Array) -> None:
        found = self.found
        x = piece if piece.dtype.kind != "f" else self._floats(piece)
        floats = x.astype(self.work, copy=False)
        codes = floats.view(f"u{self.work.itemsize}")
        fields = codes >> self.mantissa & (self.fields.size - 1)
        many = np.bincount(fields.astype(np.intp), minlength=self.fields.size)
        if many[-1]:
            found.nans += int(np.count_nonzero(np.isnan(floats)))
            x = x[np.isfinite(floats)]
        found.widen(x)
        found.size += piece.size
        if many[0]:
            small = np.abs(floats[fields == 0])
            small = small[small > 0]
            found.zeros += int(many[0]) - small.size
            found.subnormals += small.size
            exponents, each = np.unique(np.frexp(small)[1] - 1, return_counts=True)
            found.add_exponents(exponents, each)
        self.fields += many

    def _floats(self, piece: Array) -> Array:
        if not self.unused:
            return piece.astype(self.work, copy=False)
        clean: Array = piece.view(np.uint32) & ~np.uint32((1 << self.unused) - 1)
        return clean.view(np.float32)

    def counts(self) -> Counts:
        found = self.found
        found.infinities = int(self.fields[-1]) - found.nans
        normal = np.flatnonzero(self.fields[1:-1]) + 1
        found.add_exponents(normal - self.bias, self.fields[normal])
        return found
