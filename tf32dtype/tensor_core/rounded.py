"""Instructions that round in other ways than NVIDIA's aligned sums: a row for each.

AMD's matrix cores, the dot products of CPUs, and chains of fused multiply-adds. See
:doc:`/benchmarks/verification` for sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal

from .models import (
    LEAST_EXPONENTS,
    Accumulator,
    Board,
    Instruction,
    Model,
    Operand,
    Verified,
)

#: The arithmetic of a group of products. "fused": the exact sum of the products and the
#: accumulator is rounded once. "stepwise": each product is rounded, and each sum of two
#: products, neighbors first. "two stages": products are truncated to the unit of the
#: largest product and added. That sum is aligned downward with the accumulator, rounded
#: downward to 31 fraction bits, then rounded to nearest.
Arithmetic = Literal["fused", "stepwise", "two stages"]
#: The treatment of subnormal operands and accumulators. "+0": numbers that are
#: subnormal in their format become +0. "zero of their sign": operands are converted to
#: float32 first, and float32 subnormals become a zero of their sign.
Flushed = Literal["kept", "+0", "zero of their sign"]


@dataclass(frozen=True)
class Rounded(Model):
    """The model of an instruction that does not add aligned terms and round once.

    See Also
    --------
    Aligned : A model that aligns, truncates and adds exactly.

    Examples
    --------
    >>> import tf32dtype as td
    >>> model = td.tensor_core.devices["MI100"].models[0]
    >>> model.depth, model.arithmetic, model.rounding
    (4, 'fused', 'ties_to_even')
    """

    #: how a group is added. "fused": the exact sum of the products and the accumulator
    #: is rounded once. "stepwise": each product and each sum of two are rounded. "two
    #: stages": the truncated products are added first, then the accumulator
    arithmetic: Arithmetic = "fused"
    #: "to_odd": the last bit of inexact results is 1, and results are then flushed
    rounding: Literal["ties_to_even", "to_odd"] = "ties_to_even"
    #: number of separate sums, each of k, k + lanes and so on. In two stages they are
    #: sums of a group's products. Fused, they are chains that begin at `start`, and
    #: their sum is added to the accumulator. 0: one chain of groups and the accumulator
    lanes: int = 0
    #: initial value of the fused chains of `lanes`
    start: float = 0.0
    #: whether the second one of each two k is added first
    odd_first: bool = False
    #: treatment of subnormal operands and accumulators
    flushed: Flushed = "kept"
    #: whether subnormal results become zeros of their sign; not in two stages
    flushes_results: bool = False

    @property
    def least_exponents(self) -> tuple[int, int]:
        """The exponents of the smallest normal numbers of both operands."""
        if self.flushed == "zero of their sign":  # they become float32 numbers
            return -126, -126
        a, b = (LEAST_EXPONENTS[name] for name in (self.a, self.b))
        return a, b


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


def _models(
    devices: tuple[Board, ...],
    instruction: Instruction,
    formats: tuple[Operand, ...],
    depth: int,
    instruction_depth: int,
    verified: Verified,
    **how: Any,
) -> Iterator[Rounded]:
    """Those of devices, and of any formats times any, that differ in nothing else."""
    for device, (a, b) in product(devices, product(formats, repeat=2)):
        accumulator: Accumulator = "float64" if a == "float64" else "float32"
        what = device, instruction, a, b, accumulator
        yield Rounded(*what, depth, instruction_depth, verified, **how)


_FLUSHING: Final = {"flushed": "zero of their sign", "flushes_results": True}
_CDNA2: Final = {"arithmetic": "stepwise", "flushed": "+0", "flushes_results": True}
_CDNA3: Final = {"arithmetic": "two stages", "lanes": 1}
_ARM: Final = {"arithmetic": "stepwise", "rounding": "to_odd", **_FLUSHING}

#: All such models. Sources: microsoft/MMA-Sim 2.1 for AMD and float64; Intel's Software
#: Developer's Manual and Instruction Set Extensions reference; Arm's Architecture
#: Reference Manual and QEMU.
ROUNDED = (
    # NVIDIA's float64.
    *_models(("A100", "L40S", "H100", "B200", "RTX Blackwell"), "mma.sync", _F64, 1, 4,
             "one source"),
    # AMD: the exact sum (CDNA1); in steps (CDNA2); in two stages (CDNA3).
    *_models(_MI100, "mfma", _F16, 4, 4, "one source"),
    *_models(_MI100, "mfma", _BF16, 2, 2, "one source"),
    *_models(_MI250X, "mfma", _F16, 4, 4, "one source", **_CDNA2),
    *_models(_MI250X, "mfma_1k", _BF16, 4, 4, "one source", **_CDNA2),
    *_models(_MI250X, "mfma", _BF16, 2, 2, "one source", **_CDNA2),
    *_models(_MI300X, "mfma", _F16, 8, 8, "one source", **_CDNA3),
    *_models(_MI300X, "mfma", _BF16, 8, 8, "one source", **_CDNA3),
    *_models(_MI300X, "mfma", _TF32, 4, 4, "one source", **_CDNA3),
    *_models(_MI300X, "mfma", _FNUZ, 16, 16, "one source", **_CDNA3 | {"lanes": 2}),
    *_models(_BOARDS, "mfma", _F32, 1, 1, "one source"),
    *_models(("MI250X", "MI300X"), "mfma", _F64, 1, 4, "one source"),
    # CPUs.
    *_models(("AVX512_BF16",), "vdpbf16ps", _BF16, 1, 2, "recorded", odd_first=True,
             **_FLUSHING),
    *_models(("AMX",), "tdpbf16ps", _BF16, 1, 32, "recorded", lanes=2, **_FLUSHING),
    *_models(("AMX",), "tdpfp16ps", _F16, 1, 32, "recorded", lanes=2, **_FLUSHING),
    *_models(("Arm BF16",), "bfdot", _BF16, 2, 2, "documented", **_ARM),
    *_models(("Arm BF16",), "bfmmla", _BF16, 2, 4, "documented", **_ARM),
    *_models(("Arm BF16",), "bfdot_ebf", _BF16, 2, 2, "documented", lanes=1,
             start=-0.0),
)  # fmt: skip
