"""The emulated precisions: their names, their moduli, and the scales of rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .. import _core

Array = NDArray[Any]

IntegerPrecision = Literal[
    "crt2", "crt3", "crt4", "crt5", "crt6", "crt7", "crt8", "crt9", "crt10", "crt11",
    "crt12", "crt13", "crt14", "crt15", "crt16", "crt17", "crt18", "crt19", "crt20",
    "crt2_fast", "crt3_fast", "crt4_fast", "crt5_fast", "crt6_fast", "crt7_fast",
    "crt8_fast", "crt9_fast", "crt10_fast", "crt11_fast", "crt12_fast", "crt13_fast",
    "crt14_fast", "crt15_fast", "crt16_fast", "crt17_fast", "crt18_fast", "crt19_fast",
    "crt20_fast",
    "int8x2", "int8x3", "int8x4", "int8x5", "int8x6", "int8x7", "int8x8", "int8x9",
    "int8x10", "int8x11", "int8x12", "int8x13", "int8x14", "int8x15", "int8x16",
    "int8x17", "int8x18", "int8x19", "int8x20",
]  # fmt: skip

#: The moduli of GEMMul8 for INT8, in their order: the first N are used.
MODULI = (
    256, 255, 253, 251, 247, 241, 239, 233, 229, 227,
    223, 217, 211, 199, 197, 193, 191, 181, 179, 173,
)  # fmt: skip
COUNTS = range(2, len(MODULI) + 1)

_NAME = re.compile(r"(crt|int8x)([1-9]\d?)(_fast)?", re.IGNORECASE)
_SIMILAR = re.compile(r"(crt|int8x)\d*(_?fast)?", re.IGNORECASE)
#: Bits of the upper bounds of magnitudes in accurate and in fast mode.
_BOUND_BITS, _NORM_BITS = 5, 16


def advice(name: str) -> str:
    """Return which names exist near a name that `Scheme.of` does not know, or ""."""
    if _SIMILAR.fullmatch(name) is None:
        return ""
    return f"Use crtN, crtN_fast or int8xN with N from {COUNTS[0]} to {COUNTS[-1]}"


class Scheme(NamedTuple):
    """An emulated precision."""

    kind: str
    #: the number of moduli, or of slices
    number: int
    #: whether moduli have the scales of GEMMul8's fast mode
    is_fast: bool = False

    @classmethod
    def of(cls, name: object) -> Self | None:
        """Return the precision of a name, or None."""
        found = _NAME.fullmatch(name) if isinstance(name, str) else None
        if found is None:
            return None
        kind, count, fast = found[1].lower(), int(found[2]), found[3] is not None
        if count not in COUNTS or (fast and kind != "crt"):
            return None
        return cls(kind, count, fast)

    @property
    def name(self) -> str:
        return f"{self.kind}{self.number}{'_fast' * self.is_fast}"

    @property
    def product(self) -> int:
        """The product of the moduli."""
        return math.prod(MODULI[: self.number])

    def scales(self, x: Array, y: Array, is_double: bool) -> tuple[Array, Array]:
        """Return the exponents of the powers of two that rows of x and y are scaled by.

        Parameters
        ----------
        x, y : ndarray of float64, (m, k) and (n, k)
            Finite rows of the first operand, and columns of the second one.
        is_double : bool
            Whether the operands are float64.
        """
        if self.kind == "int8x":
            return self._fixed_point(x), self._fixed_point(y)
        if self.is_fast:
            return self._fast(x, is_double), self._fast(y, is_double)
        return self._accurate(x, y)

    def _fixed_point(self, x: Array) -> Array:
        """Scale to magnitudes below 2^(8 N - 1), so that N slices hold each number."""
        return 8 * self.number - 2 - _tops(x)

    def _accurate(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Scale by the largest sums of products of upper bounds, as GEMMul8 does."""
        tops = _tops(x), _tops(y)
        u, v = (_bounds(z, _BOUND_BITS - t) for z, t in zip((x, y), tops, strict=True))
        largest = np.zeros(len(x)), np.zeros(len(y))
        height = max((1 << 20) // max(len(y), 1), 64)
        for start in range(0, len(x), height):
            part = slice(start, start + height)
            sums = np.empty((len(u[part]), len(v)))
            _core.float64_matmul(u[part], v.T, sums)
            largest[0][part] = sums.max(1, initial=0)
            np.maximum(largest[1], sums.max(0, initial=0), out=largest[1])

        def correction(h: float) -> int:
            return _log4(self.product - 1, 2 * int(h)) if h else 0

        one, other = (
            _BOUND_BITS - t + _each(correction, h)
            for t, h in zip(tops, largest, strict=True)
        )
        return one, other

    def _fast(self, x: Array, is_double: bool) -> Array:
        """Scale by the norms of rows, as GEMMul8 3.0 does.

        GEMMul8 halves the whole logarithm of float32's sum of squares, but only that of
        the mantissa of float64's sum.
        """
        tops = _tops(x)
        bounds = _bounds(x, _NORM_BITS - tops).astype(np.int64)
        squares = np.einsum("ij,ij->i", bounds, bounds)

        def scale(square: int, top: int) -> int:
            if square == 0:
                return 0
            shift = 2 * (top - _NORM_BITS)  # the sum of squares is square * 2^shift
            if is_double:
                shift += square.bit_length() - 1 + shift
            norm, unit = square << max(shift, 0), 1 << max(-shift, 0)
            if norm < 4 * unit:
                norm, unit = 4, 1
            return _log4((self.product - 1) * unit, 32 * norm) - top

        pairs = zip(squares.tolist(), tops.tolist(), strict=True)
        return np.array([scale(*pair) for pair in pairs], np.int64)

    def truncate(self, x: Array, scales: Array) -> Array:
        """Return rows as integers."""
        scaled = np.ldexp(x, scales[:, None])
        if self.kind == "crt":
            return np.trunc(scaled)
        found = np.floor(scaled)
        found[(x < 0) & (found == 0)] = -1  # scaled became 0, as it is that small
        return found


def _tops(x: Array) -> Array:
    """Return the exponents of the leading bits of the rows' largest magnitudes.

    A row of zeros has 0.
    """
    largest = np.abs(x).max(1, initial=0)
    return np.where(largest > 0, np.frexp(largest)[1] - 1, 0).astype(np.int64)


def _bounds(x: Array, exponents: Array) -> Array:
    """Return magnitudes times 2^exponents, rounded up to integers."""
    found = np.ceil(np.ldexp(np.abs(x), exponents[:, None]))
    found[(x != 0) & (found == 0)] = 1  # scaled became 0, as it is that small
    return found


def _log4(numerator: int, denominator: int) -> int:
    """Return the largest integer c with 4^c <= numerator / denominator."""
    c = (numerator.bit_length() - denominator.bit_length()) // 2
    above, below = max(2 * c, 0), max(-2 * c, 0)
    return c if denominator << above <= numerator << below else c - 1


def _each(function: Callable[[float], int], x: Array) -> Array:
    values, places = np.unique(x, return_inverse=True)
    return np.array([function(value) for value in values], np.int64)[places]
