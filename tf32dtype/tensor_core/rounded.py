"""Instructions that round in other ways than NVIDIA's aligned sums: a row for each.

AMD's matrix cores, the dot products of CPUs, and chains of fused multiply-adds. See
docs/tensor_cores.md for sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, NamedTuple

from .models import (
    LEAST_EXPONENTS,
    Board,
    Instruction,
    Model,
    Operand,
    Verified,
)

#: What a group of products does. "fused": the exact sum of the products and the
#: accumulator, rounded once. "stepwise": each product is rounded, and each sum of two,
#: neighbours first. "two stages": products are cut to the unit of the greatest of them
#: and added; that sum is aligned with the accumulator downward, and rounded downward to
#: 31 fraction bits, then to nearest.
Arithmetic = Literal["fused", "stepwise", "two stages"]
#: What subnormal operands and accumulators become: of their formats, +0; of float32,
#: which operands become before that, a zero of their sign.
Flushed = Literal["kept", "+0", "zero of their sign"]


@dataclass(frozen=True)
class Rounded(Model):
    """What an instruction computes that is no aligned sum rounded once."""

    arithmetic: Arithmetic = "fused"
    #: "to_odd": what is not exact gets a last bit of one; results are flushed then
    rounding: Literal["ties_to_even", "to_odd"] = "ties_to_even"
    #: sums side by side, of k, k + lanes and so on. In two stages: of a group's
    #: products. Fused: chains that begin at `start`, whose sum is added to the
    #: accumulator. 0: the accumulator goes through all groups
    lanes: int = 0
    start: float = 0.0
    #: whether of each two k the second one comes first
    odd_first: bool = False
    #: what subnormal operands and accumulators become
    flushed: Flushed = "kept"
    #: whether subnormal results become zeros of their sign; not in two stages
    flushes_results: bool = False

    @property
    def least_exponents(self) -> tuple[int, int]:
        """The exponents of the least normal numbers of both operands."""
        if self.flushed == "zero of their sign":  # they become float32 numbers
            return -126, -126
        a, b = (LEAST_EXPONENTS[name] for name in (self.a, self.b))
        return a, b


class _Row(NamedTuple):
    """Models that differ in devices and formats alone."""

    devices: tuple[Board, ...]
    instruction: Instruction
    formats: tuple[Operand, ...]  # any of them times any
    depth: int
    instruction_depth: int
    verified: Verified
    arithmetic: Arithmetic = "fused"
    rounding: Literal["ties_to_even", "to_odd"] = "ties_to_even"
    lanes: int = 0
    start: float = 0.0
    odd_first: bool = False
    flushed: Flushed = "kept"
    flushes_results: bool = False


_F16: Final = ("float16",)
_BF16: Final = ("bfloat16",)
_TF32: Final = ("tf32",)
_F32: Final = ("float32",)
_F64: Final = ("float64",)
_FNUZ: Final = ("float8_e4m3fnuz", "float8_e5m2fnuz")

_MI100: Final = ("MI100",)
_MI250X: Final = ("MI250X",)
_MI300X: Final = ("MI300X",)
_BOARDS: Final = ("MI100", "MI250X", "MI300X")

# Sources: microsoft/MMA-Sim 2.1 for AMD and float64; Intel's Software Developer's
# Manual and Instruction Set Extensions reference; Arm's Architecture Reference Manual
# and QEMU.
_ROWS = (
    # NVIDIA's float64.
    _Row(("A100", "L40S", "H100", "B200", "RTX Blackwell"), "mma.sync", _F64, 1, 4,
         "one source"),
    # AMD: the exact sum (CDNA1); in steps (CDNA2); in two stages (CDNA3).
    _Row(_MI100, "mfma", _F16, 4, 4, "one source"),
    _Row(_MI100, "mfma", _BF16, 2, 2, "one source"),
    _Row(_MI250X, "mfma", _F16, 4, 4, "one source", "stepwise", flushed="+0",
         flushes_results=True),
    _Row(_MI250X, "mfma_1k", _BF16, 4, 4, "one source", "stepwise", flushed="+0",
         flushes_results=True),
    _Row(_MI250X, "mfma", _BF16, 2, 2, "one source", "stepwise", flushed="+0",
         flushes_results=True),
    _Row(_MI300X, "mfma", _F16, 8, 8, "one source", "two stages", lanes=1),
    _Row(_MI300X, "mfma", _BF16, 8, 8, "one source", "two stages", lanes=1),
    _Row(_MI300X, "mfma", _TF32, 4, 4, "one source", "two stages", lanes=1),
    _Row(_MI300X, "mfma", _FNUZ, 16, 16, "one source", "two stages", lanes=2),
    _Row(_BOARDS, "mfma", _F32, 1, 1, "one source"),
    _Row(("MI250X", "MI300X"), "mfma", _F64, 1, 4, "one source"),
    # CPUs.
    _Row(("AVX512_BF16",), "vdpbf16ps", _BF16, 1, 2, "documented", odd_first=True,
         flushed="zero of their sign", flushes_results=True),
    _Row(("AMX",), "tdpbf16ps", _BF16, 1, 32, "documented", lanes=2,
         flushed="zero of their sign", flushes_results=True),
    _Row(("AMX",), "tdpfp16ps", _F16, 1, 32, "documented", lanes=2,
         flushed="zero of their sign", flushes_results=True),
    _Row(("Arm BF16",), "bfdot", _BF16, 2, 2, "documented", "stepwise", "to_odd",
         flushed="zero of their sign", flushes_results=True),
    _Row(("Arm BF16",), "bfmmla", _BF16, 2, 4, "documented", "stepwise", "to_odd",
         flushed="zero of their sign", flushes_results=True),
    _Row(("Arm BF16",), "bfdot_ebf", _BF16, 2, 2, "documented", lanes=1, start=-0.0),
)  # fmt: skip


def _models(row: _Row) -> Iterator[Rounded]:
    for device, (a, b) in product(row.devices, product(row.formats, repeat=2)):
        yield Rounded(
            device,
            row.instruction,
            a,
            b,
            "float64" if a == "float64" else "float32",
            row.depth,
            row.instruction_depth,
            row.verified,
            row.arithmetic,
            row.rounding,
            row.lanes,
            row.start,
            row.odd_first,
            row.flushed,
            row.flushes_results,
        )


#: All such models.
ROUNDED = tuple(model for row in _ROWS for model in _models(row))
