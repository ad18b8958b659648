"""The instructions that a golden run records, and how their operands are stored.

A unit is one instruction with its formats. Operands are spoken of as float32's bits, of
values that their format holds. Codes are what the instruction is given, one an element,
in 8, 16 or 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..tensor_core.models import MODELS, Model

Bits = NDArray[np.uint32]

# -- formats ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """A format of operands or accumulators, as instructions take it."""

    name: str
    #: its name in PTX
    ptx: str
    exponent_bits: int
    mantissa_bits: int
    #: bits of an element in a register
    storage: int
    #: what has the highest exponent: Inf and NaN; numbers and one NaN; numbers
    specials: Literal["inf", "nan", "none"] = "inf"
    #: unused bits below a code
    shift: int = 0

    @property
    def bias(self) -> int:
        """What is subtracted from an exponent field."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def least_exponent(self) -> int:
        """That of the smallest normal number, and of the subnormal ones."""
        return 1 - self.bias

    @property
    def largest_exponent(self) -> int:
        """That of the largest number."""
        return self.bias + (self.specials != "inf")

    @property
    def dtype(self) -> np.dtype[Any]:
        """What a code is kept in."""
        return np.dtype(f"u{self.storage // 8}")


#: tf32 is passed as float32's bits, low ones included: what is done with them is asked.
FORMATS = {
    f.name: f
    for f in (
        Format("float16", "f16", 5, 10, 16),
        Format("bfloat16", "bf16", 8, 7, 16),
        Format("tf32", "tf32", 8, 10, 32),
        Format("float8_e4m3fn", "e4m3", 4, 3, 8, "nan"),
        Format("float8_e5m2", "e5m2", 5, 2, 8),
        # In a byte each: 4 bits in its middle, 6 are its low ones. (CUTLASS,
        # fp4_shift_A in mma_traits_sm120.hpp.)
        Format("float6_e3m2fn", "e3m2", 3, 2, 8, "none"),
        Format("float6_e2m3fn", "e2m3", 2, 3, 8, "none"),
        Format("float4_e2m1fn", "e2m1", 2, 1, 8, "none", shift=2),
        Format("float32", "f32", 8, 23, 32),
    )
}


@cache
def magnitudes(f: Format) -> Bits:
    """The bits of all that is not negative and no NaN, by code."""
    m = f.mantissa_bits
    codes = np.arange(1 << (f.exponent_bits + m), dtype=np.int64)
    fields, fractions = codes >> m, codes & ((1 << m) - 1)
    significands = fractions + np.where(fields > 0, 1 << m, 0)
    with np.errstate(over="ignore"):
        exponents = np.maximum(fields, 1) - f.bias - m
        values = np.ldexp(significands.astype(np.float64), exponents).astype(np.float32)
    if f.specials == "inf":
        top = ((1 << f.exponent_bits) - 1) << m
        values[top] = np.inf
        values = values[: top + 1]
    elif f.specials == "nan":
        values = values[:-1]
    return np.asarray(values.view(np.uint32))


def encode(f: Format, bits: Bits) -> NDArray[Any]:
    """Codes of float32's bits. A NaN keeps its sign, and of its payload what fits.

    Raises
    ------
    ValueError
        For a value that the format does not hold.
    """
    bits = np.asarray(bits, np.uint32)
    if f.storage == 32:
        return bits
    known = magnitudes(f)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    code = np.searchsorted(known, magnitude)
    nan = magnitude > 0x7F800000
    wrong = ~nan & (known[np.minimum(code, len(known) - 1)] != magnitude)
    if f.specials == "none":
        wrong |= nan
    if wrong.any():
        first = int(bits[wrong].flat[0])
        raise ValueError(f"{f.name} does not hold what float32 has as {first:#010x}")
    if f.specials == "inf":
        # A payload that does not fit would leave Inf.
        payload = np.maximum((magnitude & 0x7FFFFF) >> (23 - f.mantissa_bits), 1)
        code = np.where(nan, len(known) - 1 + payload, code)
    code = code | (
        (bits >> np.uint32(31)) << np.uint32(f.exponent_bits + f.mantissa_bits)
    )
    return (code << f.shift).astype(f.dtype)


def decode(f: Format, codes: NDArray[Any]) -> Bits:
    """Float32's bits of codes. A NaN's payload is in the high bits of theirs."""
    if f.storage == 32:
        return np.asarray(codes, np.uint32)
    width = f.exponent_bits + f.mantissa_bits
    code = np.asarray(codes, np.uint32) >> np.uint32(f.shift)
    sign = (code >> np.uint32(width) & np.uint32(1)) << np.uint32(31)
    code = code & np.uint32((1 << width) - 1)
    known = magnitudes(f)
    nan = (code << np.uint32(23 - f.mantissa_bits)) | np.uint32(0x7F800000)
    if f.specials == "nan":
        nan = np.full_like(code, 0x7FC00000)
    bits = np.where(code < len(known), known[np.minimum(code, len(known) - 1)], nan)
    return bits.astype(np.uint32) | sign


def pack(codes: NDArray[Any]) -> Bits:
    """The last axis as 32-bit words, the first code lowest."""
    return np.ascontiguousarray(codes).view("<u4").astype(np.uint32, copy=False)


# -- units -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit:
    """One instruction of one architecture."""

    #: "mma.sync" or "wgmma"
    instruction: str
    rows: int
    k: int
    a: Format
    b: Format
    accumulator: Format
    #: whether it is of kind::f8f6f4
    kind: bool = False

    @property
    def name(self) -> str:
        """Shape, formats and accumulator, as in `mma.m16n8k8.tf32.tf32.f32`."""
        instruction = "mma" if self.instruction == "mma.sync" else "wgmma"
        formats = f"{self.a.ptx}.{self.b.ptx}.{self.accumulator.ptx}"
        return f"{instruction}.m{self.rows}n8k{self.k}.{formats}"

    @property
    def ptx(self) -> str:
        """What follows `...sync.aligned.` in PTX."""
        shape, d = f"m{self.rows}n8k{self.k}", self.accumulator.ptx
        if self.instruction == "wgmma":
            return f"{shape}.{d}.{self.a.ptx}.{self.b.ptx}"
        kind = ".kind::f8f6f4" if self.kind else ""
        return f"{shape}.row.col{kind}.{d}.{self.a.ptx}.{self.b.ptx}.{d}"

    @property
    def options(self) -> tuple[str, ...]:
        """How kernels/golden.cu is compiled for it."""
        wgmma = self.instruction == "wgmma"
        return (
            f"-DWGMMA={int(wgmma)}",
            f'-DUNIT="{self.ptx}"',
            f"-DROWS={self.rows}",
            f"-DWORDS={self.words}",
            f"-DHALF={int(self.half)}",
            f'-DTAIL="{", 0, 0" if wgmma and self.a.storage == 16 else ""}"',
        )

    @property
    def half(self) -> bool:
        """Whether its accumulators are float16."""
        return self.accumulator.storage == 16

    @property
    def words(self) -> int:
        """32-bit words of a row's k."""
        return self.k * self.a.storage // 32

    @property
    def threads(self) -> int:
        """Threads that execute it together."""
        return 128 if self.instruction == "wgmma" else 32

    def opcodes(self, capability: tuple[int, int]) -> tuple[str, ...]:
        """The instructions of the GPU, in nvdisasm's words, that it should become."""
        shape = f"{self.rows}8{self.k}"
        if self.instruction == "wgmma":
            letter = "Q" if self.a.storage == 8 else "H"
            return (f"{letter}GMMA.{self.rows}x8x{self.k}",)
        if self.rows == 8:
            return ("HMMA.884",)
        if self.a.storage != 8:
            return (f"HMMA.{shape}",)
        if capability[0] in (9, 10, 11):
            add = "HADD2" if self.half else "FADD"
            return ("F2FP", f"HMMA.{self.rows}8{self.k // 2}", add)
        return (f"QMMA.{shape}",)

    def model(self, device: str | None) -> Model | None:
        """What is modelled of it, for its own depth.

        What is modelled of emulated fp8 is for a k of 32. The assembler of CUDA 13 does
        the same for 16, by blocks of 8.
        """
        key = (
            device,
            self.instruction,
            self.a.name,
            self.b.name,
            self.accumulator.name,
        )
        for m in MODELS:
            if (m.device, m.instruction, m.a, m.b, m.accumulator) == key:
                depth = self.k // 2 if m.emulated else min(m.depth, self.k)
                return replace(m, depth=depth, instruction_depth=self.k)
        return None


_FP8 = ("float8_e4m3fn", "float8_e5m2")
_FP4 = "float4_e2m1fn"
_FP6 = ("float6_e3m2fn", "float6_e2m3fn")

_DEVICES = {
    (7, 0): "V100", (7, 2): "V100", (7, 5): "T4", (8, 0): "A100", (8, 6): "A100",
    (8, 7): "A100", (8, 9): "L40S", (9, 0): "H100", (10, 0): "B200", (10, 3): "B200",
    (12, 0): "RTX Blackwell", (12, 1): "RTX Blackwell",
}  # fmt: skip


def device_of(capability: tuple[int, int]) -> str | None:
    """The device whose models are those of a compute capability."""
    return _DEVICES.get(capability)


def architecture(capability: tuple[int, int]) -> str:
    """The architecture to compile for; from 9.0 on with what it alone has."""
    major, minor = capability
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def _shapes(
    capability: tuple[int, int],
) -> Iterator[tuple[str, int, int, str, str, str]]:
    """Instruction, rows, k, formats and accumulators ("f32", "f16" or both)."""
    both = "f32 f16"
    if capability < (8, 0):  # Ampere and later do it without tensor cores
        yield "mma.sync", 8, 4, "float16", "float16", both
    if capability >= (7, 5):
        yield "mma.sync", 16, 8, "float16", "float16", both
    if capability >= (8, 0):
        yield "mma.sync", 16, 16, "float16", "float16", both
        for name, depths in (("bfloat16", (8, 16)), ("tf32", (4, 8))):
            for k in depths:
                yield "mma.sync", 16, k, name, name, "f32"
    if capability >= (8, 9):
        for k, (a, b) in product((16, 32), product(_FP8, repeat=2)):
            yield "mma.sync", 16, k, a, b, both
    if capability[0] == 12:
        for name in _FP8:
            yield "mma.sync", 16, 32, name, _FP4, both
            yield "mma.sync", 16, 32, _FP4, name, both
        for name in (_FP4, *_FP6):
            yield "mma.sync", 16, 32, name, name, both
    if capability == (9, 0):
        yield "wgmma", 64, 8, "tf32", "tf32", "f32"
        yield "wgmma", 64, 16, "bfloat16", "bfloat16", "f32"
        yield "wgmma", 64, 16, "float16", "float16", both
        for a, b in product(_FP8, repeat=2):
            yield "wgmma", 64, 32, a, b, both


def units(capability: tuple[int, int]) -> list[Unit]:
    """All units of a compute capability; none below 7.0."""
    if capability < (7, 0):
        return []
    accumulators = {"f32": FORMATS["float32"], "f16": FORMATS["float16"]}
    return [
        Unit(
            instruction,
            rows,
            k,
            FORMATS[a],
            FORMATS[b],
            accumulators[accumulator],
            kind="none" in (FORMATS[a].specials, FORMATS[b].specials),
        )
        for instruction, rows, k, a, b, names in _shapes(capability)
        for accumulator in names.split()
    ]
