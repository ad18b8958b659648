"""The models of instructions: their common fields, and the rows of aligned sums.

An instruction multiplies exactly and adds in groups of `depth` products. On NVIDIA
devices, a group aligns its products and the accumulator to the largest exponent among
them. It truncates each to `fraction` bits below that exponent, adds the rest exactly,
and rounds once. The result is the accumulator of the next group. rounded.py has the
instructions that round otherwise. See :doc:`/benchmarks/verification` for sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, NamedTuple, cast

from .. import _core
from .._formats.quantize import Tf32Rounding

#: The best known board with a matrix unit; for CPUs, the instruction set extension.
Board = Literal[
    "V100", "T4", "A100", "L40S", "H100", "B200", "RTX Blackwell",
    "MI100", "MI250X", "MI300X",
    "AVX512_BF16", "AMX", "Arm BF16",
]  # fmt: skip
Instruction = Literal[
    "mma.sync", "mma.sync.m8n8k4", "wgmma", "tcgen05",
    "mfma", "mfma_1k",
    "vdpbf16ps", "tdpbf16ps", "tdpfp16ps", "bfdot", "bfmmla", "bfdot_ebf",
]  # fmt: skip
#: Formats of operands.
Operand = Literal[
    "float16", "bfloat16", "tf32", "float8_e4m3fn", "float8_e5m2", "float6_e3m2fn",
    "float6_e2m3fn", "float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float32",
    "float64",
]  # fmt: skip
Accumulator = Literal["float32", "float16", "float64"]
Verified = Literal["recorded", "two simulators", "one source", "documented"]

#: How a row was verified.
VERIFIED = {
    "recorded": "equal to results that were recorded on the device",
    "two simulators": "two independent public simulators agree; nothing recorded",
    "one source": "one public simulator",
    "documented": "as its vendor's manual has it; nothing recorded",
}

# -- contested points ------------------------------------------------------------------


class Contested(NamedTuple):
    """A point on which sources differ, with the value used here and the reason.

    See Also
    --------
    Model : The model of one instruction.

    Examples
    --------
    >>> import tf32dtype as td
    >>> point = td.tensor_core.CONTESTED["scale_input_d"]
    >>> point.value, point.alternatives
    ('before', ('inside',))
    """

    #: name of the point, and its key in `CONTESTED`
    name: str
    #: value that the models use
    value: object
    #: values of other sources
    alternatives: tuple[object, ...]
    #: meaning of the value, and reason for its choice
    reason: str
    #: the device whose recorded results settle it, or a simulator that its authors
    #: verified on hardware; "" if neither exists
    settled_by: str = ""


_MMA_SIM = "MMA-Sim 2.1"

#: Points on which sources differ. Each is a parameter of `Aligned`, or of the way that
#: operands reach it. If results of a device settle a point, only its value here has to
#: change. The values are read when the table is made.
POINTS = {
    point.name: point
    for point in (
        Contested(
            "zero_c_exponent",
            None,
            (-126,),
            "exponent that an accumulator of zero adds to the exponents of its group."
            " The models use none, like the source that measured the floors. The -126"
            " of the other source is probably the exponent that a simulator decodes"
            " from zero",
            "H100",
        ),
        Contested(
            "floor",
            {
                ("float32", 24): -132,
                ("float32", 25): -133,
                ("float32", 35): -139,
                ("float16", 23): -19,
                ("float16", 24): -20,
                ("float16", 25): -21,
            },
            ({},),
            "smallest exponent that a group is aligned to, by accumulator and number F"
            " of fraction bits. Recorded on H100 for F=25. It matters for bfloat16 and"
            " tf32 products below 2^-126, for small scales of blocks, and for ties at"
            " the smallest float16 value",
            _MMA_SIM,
        ),
        Contested(
            "zero_products",
            False,
            (True,),
            "whether a product with a zero counts with the exponents of its operands,"
            " where zero has the exponent -126. The models use no, because 0 * 2^15"
            " would otherwise erase an accumulator below 2^-135",
            "H100",
        ),
        Contested(
            "negative_zero",
            False,
            (True,),
            "whether a negative sum that is truncated to zero becomes -0. The simulator"
            " that compares signs returns +0",
            "H100",
        ),
        Contested(
            "depth of tf32 on Hopper and Blackwell",
            8,
            (4,),
            "number of products that are added in one group. Earlier recordings have"
            " only four products. Both simulators now use 8; one of them used 4 before",
            "H100",
        ),
        Contested(
            "low_bits_nan",
            False,
            (True,),
            "whether a float32 NaN stays a NaN if its only nonzero mantissa bits are"
            " among the 13 low bits, which tf32 does not have. The models use no: the"
            " unit ignores these bits and reads an Inf",
            "H100",
        ),
        Contested(
            "scale_input_d",
            "before",
            ("inside",),
            "whether tcgen05 rounds an accumulator that it scales by 2^-8 before the"
            " sum, or scales it inside the sum without rounding. The results differ"
            " only for accumulators below 2^-118",
        ),
        Contested(
            "block of Turing",
            (8, 24),
            ((4, 23), (4, 24)),
            "depth and number of fraction bits of m16n8k8 on T4. One simulator has"
            " these values, and nothing was recorded",
            _MMA_SIM,
        ),
        Contested(
            "wgmma fp8 into float16",
            "float16",
            ("e8m13, then float16",),
            "how wgmma rounds FP8 sums to float16 accumulators. One simulator rounds"
            " once. Earlier recordings used mma.sync",
            "H100",
        ),
        Contested(
            "float4_subnormals",
            0,
            (-1,),
            "exponent of 0.5, the subnormal number of float4_e2m1fn. The models use 0,"
            " the exponent of the smallest normal number, as for all other formats; -1"
            " is the exponent of 0.5 itself. The results differ only for an accumulator"
            " more than 25 bits below the products",
            _MMA_SIM,
        ),
        Contested(
            "zero_terms",
            "canceled",
            ("never", "always"),
            "which terms of value zero count with the exponent of their scales in"
            " block-scaled instructions. The models count a term whose products cancel."
            " They do not count a term whose products are all zero, or whose scale is"
            " zero",
            _MMA_SIM,
        ),
    )
}

#: Points on which sources differ, and which nothing settles yet.
CONTESTED = {name: point for name, point in POINTS.items() if not point.settled_by}

#: The exponents of subnormal numbers, by format.
LEAST_EXPONENTS = {
    **{name: 1 - _core.facts(i)["bias"] for i, name in enumerate(_core.names)},
    "float16": -14,
    "float32": -126,
    "float64": -1022,
    "float4_e2m1fn": cast(int, POINTS["float4_subnormals"].value),
}

# -- models ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """The model of one instruction of a device for operands of two formats.

    See Also
    --------
    Aligned : A model that aligns, truncates and adds exactly.
    Rounded : A model that rounds in other ways.
    explain : Explain how a model computes one element.

    Examples
    --------
    >>> import tf32dtype as td
    >>> model = td.tensor_core.devices["A100"].models[0]
    >>> model.name, model.depth, model.verified
    ('A100 mma.sync float16 -> float32', 8, 'recorded')
    """

    #: name of the device, as `devices` has it
    device: Board
    #: name of the instruction
    instruction: Instruction
    #: format of the first operand
    a: Operand
    #: format of the second operand
    b: Operand
    #: format of the accumulators and of the result
    accumulator: Accumulator
    #: products that are added in one group, to which the accumulator belongs
    depth: int
    #: k that an instruction takes; matrices are padded with zeros to a multiple of it
    instruction_depth: int
    #: how the model was verified: "recorded" (equal to results of the device), "two
    #: simulators", "one source" or "documented" (by the vendor)
    verified: Verified

    @property
    def name(self) -> str:
        """Device, instruction, formats and accumulator in words."""
        formats = self.a if self.a == self.b else f"{self.a} x {self.b}"
        return f"{self.title} {formats} -> {self.accumulator}"

    @property
    def title(self) -> str:
        """Device and instruction in words."""
        return f"{self.device} {self.instruction}"

    @property
    def scales_inside(self) -> bool:
        """Whether the unit scales an accumulator without a rounding."""
        return False

    @property
    def adds_components(self) -> bool:
        """Whether libraries emulate float32 by components on the unit (bf16x9)."""
        return False

    @property
    def library_rounding(self) -> Tf32Rounding:
        """How the vendor's library rounds float32 operands to tf32 before the unit.

        AMD's hipBLASLt does not: the unit ignores their low 13 bits
        (ROCm/rocm-libraries, pull request 9176).
        """
        return "toward_zero"


@dataclass(frozen=True)
class Aligned(Model):
    """A model whose groups are aligned, truncated, added exactly and rounded once.

    See Also
    --------
    Rounded : A model that rounds in other ways.
    BlockScaled : A model of an instruction that takes scales.

    Examples
    --------
    >>> import tf32dtype as td
    >>> model = td.tensor_core.devices["H100"].models[0]
    >>> model.depth, model.fraction, model.kept, model.rounding
    (16, 25, 23, 'toward_zero')
    """

    #: bits kept below the largest exponent of a group
    fraction: int
    #: fraction bits of a group's result
    kept: int
    #: whether an instruction is two float16 groups and an addition. The first two of
    #: each four k are in the first group, which starts from zero. Its result starts the
    #: second group, whose result is added to the accumulator, to nearest, ties to even
    emulated: bool = False
    #: smallest exponent that terms are aligned to
    floor: int | None = None
    #: exponent that an accumulator of zero brings to a group; None: no exponent
    zero_c_exponent: int | None = None
    #: whether a product with a zero counts with the exponents of its operands
    zero_products: bool = False
    #: whether a negative sum that is truncated to zero is -0
    negative_zero: bool = False
    #: fraction bits to which a sum is truncated before it is rounded to float16; None:
    #: all bits are kept
    cut_first: int | None = None

    @property
    def least_exponents(self) -> tuple[int, int]:
        """The exponents that subnormal numbers of both operands are aligned by."""
        if self.emulated:  # they become float16 numbers, among which fp8's are normal
            return -14, -14
        a, b = (LEAST_EXPONENTS[name] for name in (self.a, self.b))
        return a, b

    @property
    def scales_inside(self) -> bool:
        """Whether the unit scales an accumulator without a rounding."""
        point = POINTS["scale_input_d"]
        return self.instruction == "tcgen05" and point.value == "inside"

    @property
    def adds_components(self) -> bool:
        """Whether libraries emulate float32 by components on the unit (bf16x9)."""
        return True

    @property
    def library_rounding(self) -> Tf32Rounding:
        """How the vendor's library rounds float32 operands to tf32 before the unit.

        cuBLAS has the bits of ``cvt.rna.tf32.f32`` (triton-lang/triton, issue 4574).
        """
        return "ties_to_away"

    @property
    def rounding(self) -> str:
        """How a group's sum is rounded to its result."""
        return "toward_zero" if self.accumulator == "float32" else "ties_to_even"


class _Row(NamedTuple):
    """Models that differ only in formats and accumulators."""

    device: Board
    instruction: Instruction
    formats: tuple[Operand, ...]  # any of them times any
    depth: int
    instruction_depth: int
    fraction: int
    kept: int  # of float32 sums
    float32: Verified
    float16: Verified | None = None
    mixed: Verified = "one source"  # where the two formats differ
    emulated: bool = False


# Depths, fractions and roundings on which sources differ.
_HOPPER_TF32 = cast(int, POINTS["depth of tf32 on Hopper and Blackwell"].value)
_TURING = cast(tuple[int, int], POINTS["block of Turing"].value)
_CUTS_FIRST = POINTS["wgmma fp8 into float16"].value != "float16"

_F16: Final = ("float16",)
_BF16: Final = ("bfloat16",)
_TF32: Final = ("tf32",)
_FP8: Final = ("float8_e4m3fn", "float8_e5m2")
_FP6_FP4: Final = ("float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn")
_F8F6F4: Final = (*_FP8, *_FP6_FP4)

# Sources: the recordings of north-numerical-computing/MATLAB-tensor-core, and of all
# instructions of an H100 in tests/data; simulators of that repository and of
# microsoft/MMA-Sim; NVIDIA/cutlass issue 1986 (fp8 mma.sync).
_ROWS = (
    _Row("V100", "mma.sync", _F16, 4, 4, 23, 23, "recorded", "recorded"),
    _Row("T4", "mma.sync", _F16, _TURING[0], 8, _TURING[1], 23, "one source",
         "one source"),
    _Row("T4", "mma.sync.m8n8k4", _F16, 4, 4, 23, 23, "one source", "one source"),
    _Row("A100", "mma.sync", _F16, 8, 16, 24, 23, "recorded", "recorded"),
    _Row("A100", "mma.sync", _BF16, 8, 16, 24, 23, "recorded"),
    _Row("A100", "mma.sync", _TF32, 4, 8, 24, 23, "recorded"),
    _Row("L40S", "mma.sync", _F16, 8, 16, 24, 23, "recorded", "recorded"),
    _Row("L40S", "mma.sync", _BF16, 8, 16, 24, 23, "recorded"),
    _Row("L40S", "mma.sync", _TF32, 4, 8, 24, 23, "recorded"),
    _Row("L40S", "mma.sync", _FP8, 16, 32, 13, 13, "recorded", "recorded"),
    _Row("H100", "wgmma", _F16, 16, 16, 25, 23, "recorded", "recorded"),
    _Row("H100", "wgmma", _BF16, 16, 16, 25, 23, "recorded"),
    _Row("H100", "wgmma", _TF32, _HOPPER_TF32, 8, 25, 23, "recorded"),
    _Row(
        "H100", "wgmma", _FP8, 32, 32, 13, 13, "recorded", "recorded", mixed="recorded"
    ),
    _Row("H100", "mma.sync", _F16, 16, 16, 25, 23, "recorded", "recorded"),
    _Row("H100", "mma.sync", _BF16, 16, 16, 25, 23, "recorded"),
    _Row("H100", "mma.sync", _TF32, _HOPPER_TF32, 8, 25, 23, "recorded"),
    _Row(
        "H100", "mma.sync", _FP8, 16, 32, 25, 23, "recorded", "recorded",
        mixed="recorded", emulated=True,
    ),
    _Row("B200", "tcgen05", _F16, 16, 16, 25, 23, "two simulators", "two simulators"),
    _Row("B200", "tcgen05", _BF16, 16, 16, 25, 23, "two simulators"),
    _Row("B200", "tcgen05", _TF32, _HOPPER_TF32, 8, 25, 23, "two simulators"),
    _Row(
        "B200", "tcgen05", _F8F6F4, 32, 32, 25, 23, "two simulators", "two simulators"
    ),
    _Row("B200", "mma.sync", _F16, 16, 16, 25, 23, "recorded", "recorded"),
    _Row("B200", "mma.sync", _BF16, 16, 16, 25, 23, "recorded"),
    _Row("B200", "mma.sync", _TF32, _HOPPER_TF32, 8, 25, 23, "two simulators"),
    _Row(
        "B200", "mma.sync", _FP8, 16, 32, 25, 23, "recorded", "recorded", emulated=True
    ),
    _Row(
        "RTX Blackwell", "mma.sync", _F16, 16, 16, 25, 23, "two simulators",
        "two simulators",
    ),
    _Row("RTX Blackwell", "mma.sync", _BF16, 16, 16, 25, 23, "two simulators"),
    _Row("RTX Blackwell", "mma.sync", _TF32, _HOPPER_TF32, 8, 25, 23, "two simulators"),
    _Row(
        "RTX Blackwell", "mma.sync", _F8F6F4, 32, 32, 25, 23, "two simulators",
        "two simulators",
    ),
)  # fmt: skip


def _models(row: _Row) -> Iterator[Aligned]:
    floors = POINTS["floor"].value
    assert isinstance(floors, dict)
    given = {"float32": row.float32, "float16": row.float16}
    cuts = row.instruction == "wgmma" and _CUTS_FIRST
    for (a, b), accumulator in product(
        product(row.formats, repeat=2), ("float32", "float16")
    ):
        verified = given[accumulator]
        if verified is None:
            continue
        if a in _FP6_FP4 or b in _FP6_FP4:
            verified = "one source"
        elif a != b and verified == "recorded":
            verified = row.mixed
        yield Aligned(
            row.device,
            row.instruction,
            a,
            b,
            "float32" if accumulator == "float32" else "float16",
            row.depth,
            row.instruction_depth,
            verified,
            row.fraction,
            row.kept if accumulator == "float32" else 10,
            row.emulated,
            floors.get((accumulator, row.fraction)),
            POINTS["zero_c_exponent"].value,  # type: ignore[arg-type]
            bool(POINTS["zero_products"].value),
            bool(POINTS["negative_zero"].value),
            13 if accumulator == "float16" and row.fraction == 13 and cuts else None,
        )


#: The models of aligned sums.
ALIGNED = tuple(model for row in _ROWS for model in _models(row))
