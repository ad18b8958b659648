"""Build probes from products that are powers of two or nearly so.

No probe depends on a random generator of a library, which the library could change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .instructions import Bits, Format, Unit

#: float32's bits of Inf, of 1, and of the sign
INF, ONE, SIGN = 0x7F800000, 0x3F800000, 0x80000000


class Probes(NamedTuple):
    """Dot products of one unit: `a` and `b` are (n, k), `c` and `group` are (n,)."""

    a: Bits
    b: Bits
    c: Bits
    group: np.ndarray


def bits_of(x: float) -> int:
    """Return float32's bits of a number that float32 represents."""
    return int(np.float32(x).view(np.uint32))


def holds(f: Format, x: float) -> bool:
    """Return whether the format represents a finite number."""
    exponent = max(math.frexp(x)[1] - 1, f.least_exponent)
    return abs(x) <= f.max and math.ldexp(x, f.mantissa_bits - exponent).is_integer()


Pair = tuple[float, float]


@cache
def pair(fa: Format, fb: Format, exponent: int, x: float, y: float) -> Pair | None:
    """Return operands x * 2**i and y * 2**j with i + j = exponent and i near j."""
    middle = exponent // 2
    for distance in range(300):
        for i in {middle + distance, middle - distance}:
            j = exponent - i
            if _small(fa, i) and _small(fb, j):
                a, b = x * 2.0**i, y * 2.0**j
                if holds(fa, a) and holds(fb, b):
                    return a, b
    return None


def _small(f: Format, exponent: int) -> bool:
    return f.least_exponent - f.mantissa_bits <= exponent <= f.largest_exponent + 3


def mix(x: Bits) -> Bits:
    """Mix 32 bits by a bijection that looks random (Wellons' lowbias32)."""
    x = np.atleast_1d(np.asarray(x, np.uint32))  # scalars would warn of overflow
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def drawn(seed: int, shape: Sequence[int] | int) -> Bits:
    """Return random 32-bit words from a counter, the same on every machine."""
    counter = np.arange(np.prod(shape, dtype=int), dtype=np.uint32).reshape(shape)
    return mix(mix(counter) ^ mix(np.asarray(seed, np.uint32)))


def assemble(f: Format, random: Bits, fields: Bits) -> NDArray[Any]:
    """Return codes with these exponent fields and random signs and fractions."""
    m = f.mantissa_bits
    code = random >> 31 << (f.bits - 1) | fields << m | random & ((1 << m) - 1)
    return (code << f.shift).astype(f.unsigned)


class Builder:
    """Collect the probes of one unit."""

    def __init__(self, unit: Unit) -> None:
        a, b = unit.a, unit.b
        self.fa, self.fb, self.fc, self.k = a, b, unit.accumulator, unit.k
        self.rows: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []
        self.groups: list[str] = []
        self.group = ""
        least = a.least_exponent + b.least_exponent - a.mantissa_bits - b.mantissa_bits
        largest = a.largest_exponent + b.largest_exponent
        #: the exponent of large terms, with 39 binades below it if the formats allow
        self.high = 8 if least <= -31 else min(13, largest - 1)
        self.least, self.largest = least, largest

    def product(self, exponent: int, x: float = 1.0, y: float = 1.0) -> Pair | None:
        """Return operands with the product x * y * 2**exponent, or None."""
        return pair(self.fa, self.fb, exponent, x, y)

    def power(self, exponent: int, sign: int = 1) -> Pair | None:
        """Return operands with the product sign * 2**exponent, or None."""
        return self.product(exponent, float(sign))

    def add(self, terms: Mapping[int, Pair | None], c: float = 0.0) -> None:
        """Add a probe with products by k, others 0 * 0, if the formats allow it."""
        if not holds(self.fc, c):
            return
        a, b = [0] * self.k, [0] * self.k
        for k, operands in terms.items():
            if operands is None or not all(map(holds, (self.fa, self.fb), operands)):
                return
            a[k], b[k] = map(bits_of, operands)
        self.add_bits(a, b, bits_of(c))

    def add_bits(self, a: list[int], b: list[int], c: int) -> None:
        """Add a probe by its float32 bits."""
        self.rows.append((tuple(a), tuple(b), c))
        self.groups.append(self.group)

    def finish(self) -> Probes:
        """Return all probes, without duplicates in a group."""
        probes = dict.fromkeys(zip(self.groups, self.rows, strict=True))
        groups, rows = zip(*probes, strict=True)
        a, b, c = (np.array(x, np.uint32) for x in zip(*rows, strict=True))
        return Probes(a, b, c, np.array(groups))
