"""Make the inputs of results that are recorded only as digests: dots and conversions.

NumPy computes the same random inputs as src/cuda/recorder/record_inputs.cu, so that a
digest of dot products can be computed again without a GPU.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .instructions import Bits, Format, Unit, decode
from .operand_builder import assemble, mix

SEED = 0x7F32
#: the dot products of one digest, and the digests of a unit: 10 * 2**20 dot products
CHUNK, CHUNKS = 1 << 16, 160
#: the number of digests that are compared with the models
JUDGED = 8


class Draw(NamedTuple):
    """Random numbers of a matrix; the i-th of four tiles has the i-th exponents."""

    format: Format
    low: tuple[int, ...]
    span: tuple[int, ...]
    per_tile: int
    seed: int
    #: bits of the word in which a code is written
    width: int

    def codes(self, first: int, count: int) -> NDArray[Any]:
        """Return the codes that `fill` in record_inputs.cu writes."""
        i = first + np.arange(count, dtype=np.uint32)
        kind = i // np.uint32(self.per_tile) % np.uint32(4)
        r = mix(mix(i) ^ mix(np.array([self.seed], np.uint32)))
        low, span = (np.array(x, np.uint32)[kind] for x in (self.low, self.span))
        fields = low + ((mix(r) >> np.uint32(16)) * span >> np.uint32(16))
        return assemble(self.format, r, fields).astype(f"u{self.width // 8}")


def _fields(
    f: Format, *ranges: tuple[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first exponent field and the length of ranges, clipped to finite."""
    ends = [(max(low, 0), max(min(high, f.top_field), 0)) for low, high in ranges]
    return tuple(low for low, _ in ends), tuple(high - low + 1 for low, high in ends)


def draws(unit: Unit) -> tuple[Draw, Draw, Draw]:
    """Return the numbers of A, B, C: exponents near 0, farther, any, the smallest."""
    found = []
    for i, f in enumerate((unit.a, unit.b)):
        near, some = (f.bias - 1, f.bias + 1), (f.bias - 8, f.bias + 8)
        fields = _fields(f, near, some, (0, 255), (0, 3))
        rows = unit.rows if i == 0 else 8
        found.append(Draw(f, *fields, rows * unit.k, SEED + i, f.storage))
    f = unit.accumulator
    least = max(f.bias + unit.a.least_exponent + unit.b.least_exponent, 0)
    fields = _fields(
        f, (f.bias - 3, f.bias + 5), (f.bias - 16, f.bias + 16), (0, 255),
        (least - 4, least + 8),
    )  # fmt: skip
    return found[0], found[1], Draw(f, *fields, unit.rows * 8, SEED + 2, 32)


def chunk(unit: Unit, index: int) -> tuple[Bits, Bits, Bits]:
    """Return the operands of one chunk of dots: a and b (CHUNK, k), c (CHUNK,)."""
    tiles = CHUNK // (unit.rows * 8)
    a, b, c = (
        decode(d.format, d.codes(index * tiles * d.per_tile, tiles * d.per_tile))
        for d in draws(unit)
    )
    shape = tiles, unit.rows, 8, unit.k
    rows = np.broadcast_to(a.reshape(tiles, unit.rows, 1, unit.k), shape)
    columns = np.broadcast_to(b.reshape(tiles, 1, 8, unit.k), shape)
    return rows.reshape(CHUNK, unit.k), columns.reshape(CHUNK, unit.k), c


def digest(d: Bits) -> np.uint64:
    """Return 8 bytes of the SHA-256 of results, which have 32 bits, float16's too."""
    data = np.ascontiguousarray(d, "<u4").tobytes()
    return np.uint64(int.from_bytes(hashlib.sha256(data).digest()[:8], "little"))


# -- conversions -----------------------------------------------------------------------


class Conversion(NamedTuple):
    """A conversion of float32: PTX that converts %1 to %0, and the first capability."""

    name: str
    ptx: str
    capability: tuple[int, int]

    @property
    def options(self) -> tuple[str, ...]:
        """The options to compile src/cuda/recorder/record_inputs.cu for it."""
        return (f'-DCONVERSION="{self.ptx}"',)


def _conversion(name: str, capability: tuple[int, int], bits: int = 16) -> Conversion:
    """Return a conversion to a register of `bits` bits; a pair's upper value is 0."""
    first = "0f00000000, " if "x2" in name else ""
    ptx = f"{{.reg .b{bits} y; {name} y, {first}%1; cvt.u32.u{bits} %0, y;}}"
    return Conversion(name, ptx, capability)


CONVERSIONS = (
    _conversion("cvt.rn.f16.f32", (7, 0)),
    _conversion("cvt.rz.f16.f32", (7, 0)),
    _conversion("cvt.rna.tf32.f32", (8, 0), 32),
    _conversion("cvt.rn.tf32.f32", (9, 0), 32),
    _conversion("cvt.rz.tf32.f32", (9, 0), 32),
    _conversion("cvt.rn.bf16.f32", (8, 0)),
    _conversion("cvt.rz.bf16.f32", (8, 0)),
    _conversion("cvt.rn.satfinite.e4m3x2.f32", (8, 9)),
    _conversion("cvt.rn.satfinite.e5m2x2.f32", (8, 9)),
    _conversion("cvt.rn.satfinite.e2m3x2.f32", (10, 0)),
    _conversion("cvt.rn.satfinite.e3m2x2.f32", (10, 0)),
    _conversion("cvt.rn.satfinite.e2m1x2.f32", (10, 0), 8),
)


def conversions(capability: tuple[int, int]) -> list[Conversion]:
    """Return the conversions that a compute capability has."""
    return [c for c in CONVERSIONS if capability >= c.capability]


def boundaries() -> Bits:
    """Return about 5000 float32 values near ties of formats, and special values.

    For exponents at the ends of formats and for each width of the fraction, they are
    ties, and the values one below and one above; then zeros, Inf, the largest, and NaN.
    """
    fields = [*range(4), *range(100, 146), 253, 254]
    exponents = np.array(fields, np.uint32) << np.uint32(23)
    near: list[int] = [0, 1, 0x7FFFFF]
    for m in (10, 7, 3, 2, 1, 0):
        half = 1 << (22 - m)
        ties = (half, 3 * half if m else half, (1 << 23) - half)
        near += [tie + step for tie in ties for step in (-1, 0, 1)]
    x = (
        exponents[:, None] | np.array(sorted({n & 0x7FFFFF for n in near}), np.uint32)
    ).ravel()
    special = [0x7F800000, 0x7F7FFFFF, 0x7F800001, 0x7F801000, 0x7F801FFF, 0x7F802000,
               0x7FA00000, 0x7FC00000, 0x7FFFFFFF, 0x7FC01234]  # fmt: skip
    x = np.concatenate([x, np.array(special, np.uint32)])
    return np.concatenate([x, x | np.uint32(0x80000000)])
