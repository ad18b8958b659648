"""Describe the recorded instructions, and how their operands are stored.

A unit is one instruction with its formats. Most functions take and return operands as
float32's bits of values that the format has. Codes are the elements in the form that
the instruction takes, in 8, 16 or 32 bits each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tf32dtype import formats
from tf32dtype.tensor_core.look_up import devices
from tf32dtype.tensor_core.models import ALIGNED, Aligned

Bits = NDArray[np.uint32]

# -- formats ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """A format of operands or accumulators, and how instructions take it."""

    name: str
    dtype: np.dtype[Any]
    #: the total of sign, exponent and mantissa
    bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    has_infinity: bool
    has_nan: bool
    max: float
    smallest_normal: float
    smallest_subnormal: float
    #: the format's name in PTX
    ptx: str
    #: the number of unused bits below a code
    shift: int

    @property
    def storage(self) -> int:
        """Bits of an element in a register."""
        return 8 * self.dtype.itemsize

    @property
    def unsigned(self) -> np.dtype[Any]:
        """The unsigned integer type of a code."""
        return np.dtype(f"u{self.dtype.itemsize}")

    @property
    def least_exponent(self) -> int:
        """The exponent of the smallest normal number, and of subnormal numbers."""
        return 1 - self.bias

    @property
    def largest_exponent(self) -> int:
        """The exponent of the largest number."""
        return math.frexp(self.max)[1] - 1

    @property
    def top_field(self) -> int:
        """The highest exponent field whose codes are all finite."""
        return (1 << self.exponent_bits) - 1 - self.has_nan


def _format(name: str, ptx: str, shift: int = 0) -> Format:
    """Return the description of a format of this package."""
    f = formats[name]
    return Format(
        f.name, f.dtype, f.bits, f.exponent_bits, f.mantissa_bits, f.bias,
        f.has_infinity, f.has_nan, f.max, f.smallest_normal, f.smallest_subnormal,
        ptx, f.unused_low_bits + shift,
    )  # fmt: skip


def _numpy_format(name: str, ptx: str) -> Format:
    """Return the description of a NumPy dtype."""
    f = np.finfo(name)
    return Format(
        name, np.dtype(name), f.bits, f.iexp, f.nmant, f.maxexp - 1,
        True, True, float(f.max), float(f.smallest_normal),
        float(f.smallest_subnormal), ptx, 0,
    )  # fmt: skip


#: tf32 is passed as float32's bits with the low bits, to record what becomes of them.
#: 4-bit codes are in the middle of a byte, 6-bit codes are in its low bits (CUTLASS,
#: fp4_shift_A in mma_traits_sm120.hpp).
FORMATS = {
    f.name: f
    for f in (
        _numpy_format("float16", "f16"),
        _format("bfloat16", "bf16"),
        _format("tf32", "tf32"),
        _format("float8_e4m3fn", "e4m3"),
        _format("float8_e5m2", "e5m2"),
        _format("float6_e3m2fn", "e3m2"),
        _format("float6_e2m3fn", "e2m3"),
        _format("float4_e2m1fn", "e2m1", 2),
        _numpy_format("float32", "f32"),
    )
}


def encode(f: Format, bits: Bits) -> NDArray[Any]:
    """Return the codes of float32's bits. A NaN keeps its sign and its high payload.

    Raises
    ------
    ValueError
        If the format does not have a value.
    """
    bits = np.ascontiguousarray(bits, np.uint32)
    if f.storage == 32:
        return bits
    with np.errstate(all="ignore"):
        rounded = bits.view(np.float32).astype(f.dtype)
        held = rounded.astype(np.float32).view(np.uint32) == bits
    nan = np.isnan(bits.view(np.float32))
    wrong = np.where(nan, not f.has_nan, ~held)
    if wrong.any():
        first = int(bits[wrong][0])
        raise ValueError(f"{f.name} does not hold what float32 has as {first:#010x}")
    codes = rounded.view(f.unsigned)
    if f.has_infinity:  # casts drop payloads; a payload of 0 would be Inf
        m = f.mantissa_bits
        infinity = ((1 << f.exponent_bits) - 1) << m
        payload = np.maximum((bits & 0x7FFFFF) >> (23 - m), 1)
        with_payload = bits >> 31 << (f.bits - 1) | infinity | payload
        codes = np.where(nan, with_payload, codes)
    return (codes << f.shift).astype(f.unsigned)


def decode(f: Format, codes: NDArray[Any]) -> Bits:
    """Return float32's bits of codes. A NaN's payload becomes the high payload bits."""
    if f.storage == 32:
        return np.asarray(codes, np.uint32)
    codes = (np.asarray(codes) >> f.shift).astype(f.unsigned)
    with np.errstate(invalid="ignore"):
        values = codes.view(f.dtype).astype(np.float32)
    bits = values.view(np.uint32)
    if f.has_infinity:
        payload = codes.astype(np.uint32) << (23 - f.mantissa_bits) & 0x7FFFFF
        bits = np.where(np.isnan(values), bits & 0xFF800000 | payload, bits)
    return bits


def pack(codes: NDArray[Any]) -> Bits:
    """Pack the last axis into 32-bit words, with the first code in the lowest bits."""
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

    @property
    def name(self) -> str:
        """The shape, formats and accumulator, as in `mma.m16n8k8.tf32.tf32.f32`."""
        instruction = "mma" if self.instruction == "mma.sync" else "wgmma"
        formats = f"{self.a.ptx}.{self.b.ptx}.{self.accumulator.ptx}"
        return f"{instruction}.m{self.rows}n8k{self.k}.{formats}"

    @property
    def ptx(self) -> str:
        """The part of the PTX instruction that follows `...sync.aligned.`."""
        shape, d = f"m{self.rows}n8k{self.k}", self.accumulator.ptx
        if self.instruction == "wgmma":
            return f"{shape}.{d}.{self.a.ptx}.{self.b.ptx}"
        narrow = not (self.a.has_nan and self.b.has_nan)
        kind = ".kind::f8f6f4" if narrow else ""
        return f"{shape}.row.col{kind}.{d}.{self.a.ptx}.{self.b.ptx}.{d}"

    @property
    def options(self) -> tuple[str, ...]:
        """The options to compile src/cuda/recorder/record_mma.cu for the unit."""
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
        """Whether the accumulators are float16."""
        return self.accumulator.storage == 16

    @property
    def words(self) -> int:
        """The number of 32-bit words of the k elements of a row."""
        return self.k * self.a.storage // 32

    @property
    def threads(self) -> int:
        """The number of threads that execute the instruction together."""
        return 128 if self.instruction == "wgmma" else 32

    def opcodes(self, capability: tuple[int, int]) -> tuple[str, ...]:
        """Return the start of nvdisasm's names of the expected machine instructions."""
        if self.instruction == "wgmma":
            letter = "Q" if self.a.storage == 8 else "H"
            return (f"{letter}GMMA.{self.rows}x8x{self.k}",)
        if self.rows == 8:
            return ("HMMA.884",)
        if self.a.storage != 8:
            return (f"HMMA.{self.rows}8{self.k}",)
        if capability[0] in (9, 10, 11):
            add = "HADD2" if self.half else "FADD"
            return ("F2FP", f"HMMA.{self.rows}8{self.k // 2}", add)
        return (f"QMMA.{self.rows}8{self.k}",)

    def model(self, device: str | None) -> Aligned | None:
        """Return the model of the unit on a device, for the unit's depth, or None.

        The model of emulated fp8 is for a k of 32. The assembler of CUDA 13 emulates a
        k of 16 in the same way, by blocks of 8.
        """
        formats = self.a.name, self.b.name, self.accumulator.name
        key = device, self.instruction, *formats
        for m in ALIGNED:
            if (m.device, m.instruction, m.a, m.b, m.accumulator) == key:
                depth = self.k // 2 if m.emulated else min(m.depth, self.k)
                return replace(m, depth=depth, instruction_depth=self.k)
        return None


_FP8 = ("float8_e4m3fn", "float8_e5m2")
_FP4 = "float4_e2m1fn"
_FP6 = ("float6_e3m2fn", "float6_e2m3fn")


def device_of(capability: tuple[int, int]) -> str | None:
    """Return the device whose models are those of a compute capability, or None."""
    found = devices.get("sm_{}{}".format(*capability))
    return None if found is None else found.name


def architecture(capability: tuple[int, int]) -> str:
    """Return the architecture to compile for; from 9.0 on, the specific one ("a")."""
    major, minor = capability
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def _shapes(
    capability: tuple[int, int],
) -> Iterator[tuple[str, int, int, str, str, tuple[str, ...]]]:
    """Yield instruction, rows, k, formats of operands, and formats of accumulators."""
    single = ("float32",)
    both = ("float32", "float16")
    if (7, 0) <= capability < (8, 0):  # from Ampere on it does not use tensor cores
        yield "mma.sync", 8, 4, "float16", "float16", both
    if capability >= (7, 5):
        yield "mma.sync", 16, 8, "float16", "float16", both
    if capability >= (8, 0):
        yield "mma.sync", 16, 16, "float16", "float16", both
        for name, depths in (("bfloat16", (8, 16)), ("tf32", (4, 8))):
            for k in depths:
                yield "mma.sync", 16, k, name, name, single
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
        yield "wgmma", 64, 8, "tf32", "tf32", single
        yield "wgmma", 64, 16, "bfloat16", "bfloat16", single
        yield "wgmma", 64, 16, "float16", "float16", both
        for a, b in product(_FP8, repeat=2):
            yield "wgmma", 64, 32, a, b, both


def units(capability: tuple[int, int]) -> list[Unit]:
    """Return all units of a compute capability; there are none below 7.0."""
    return [
        Unit(instruction, rows, k, FORMATS[a], FORMATS[b], FORMATS[accumulator])
        for instruction, rows, k, a, b, accumulators in _shapes(capability)
        for accumulator in accumulators
    ]
