"""The block-scaled instructions that are modeled: a row for each, with its formats.

The operands of such an instruction have a scale for each block of k, which the unit
itself applies. All products of an instruction and the accumulator are one sum, as
models.py has it; the scales decide with the elements what terms are aligned to. See
:doc:`/benchmarks/verification` for sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, NamedTuple, cast, get_args

from .models import (
    LEAST_EXPONENTS,
    POINTS,
    Accumulator,
    Board,
    Instruction,
    Operand,
    Verified,
)

#: The block-scaled instructions, with their kinds.
BlockInstruction = Literal[
    "tcgen05.mxf4",
    "tcgen05.mxf4nvf4",
    "tcgen05.mxf8f6f4",
    "mma.sync.mxf4",
    "mma.sync.mxf4nvf4",
    "mma.sync.mxf8f6f4",
]
ZeroTerms = Literal["never", "canceled", "always"]
#: The treatments of zero terms, in the order of their numbers in C.
ZERO_TERMS: tuple[ZeroTerms, ...] = get_args(ZeroTerms)


@dataclass(frozen=True)
class BlockScaled:
    """The model of one block-scaled instruction of a device.

    See Also
    --------
    Aligned : A model of an instruction without scales.
    matmul : Multiply arrays of blocks as a device does.

    Examples
    --------
    >>> import tf32dtype as td
    >>> model = td.tensor_core.devices["B200"].block_scaled[0]
    >>> model.instruction, model.scale, model.block_size, model.depth
    ('tcgen05.mxf4', 'float8_e8m0fnu', 32, 64)
    """

    #: name of the device, as `devices` has it
    device: Board
    #: the instruction and its kind
    instruction: BlockInstruction
    #: format of the elements of the first operand
    a: Operand
    #: format of the elements of the second operand
    b: Operand
    #: format of the scales of both
    scale: str
    #: k that share a scale
    block_size: int
    #: products that are added in one sum, together with the accumulator: its k
    depth: int
    #: products that are added exactly to form one term, whose exponent is that of the
    #: scales; 1: each product is a term, and its own exponent is added
    group: int
    #: bits kept below the largest exponent
    fraction: int
    #: how the model was verified, as in `Model.verified`
    verified: Verified
    #: smallest exponent that terms are aligned to
    floor: int | None = None
    #: exponent that an accumulator of zero brings to a sum; None: no exponent
    zero_c_exponent: int | None = None
    #: terms of zero that count with the exponent of their scales: none, those whose
    #: products cancel, or all
    zero_terms: ZeroTerms = "canceled"
    #: whether a negative sum that is truncated to zero is -0
    negative_zero: bool = False

    #: format of the accumulator and of the result
    accumulator: Accumulator = "float32"
    #: fraction bits of the result
    kept: int = 23
    #: rounding of sums
    rounding: str = "toward_zero"

    @property
    def least_exponents(self) -> tuple[int, int]:
        """The exponents that subnormal numbers of both operands are aligned by."""
        return LEAST_EXPONENTS[self.a], LEAST_EXPONENTS[self.b]

    @property
    def takes(self) -> str:
        """The operands in words."""
        return f"{self.a} x {self.b}, {self.scale} of {self.block_size}"

    @property
    def name(self) -> str:
        """Device, instruction, operands and accumulator in words."""
        return f"{self.device} {self.instruction} {self.takes} -> {self.accumulator}"


class _Row(NamedTuple):
    """Models that differ only in formats and devices."""

    devices: tuple[Board, ...]
    kind: str
    formats: tuple[Operand, ...]  # any of them times any
    scale: str
    block_size: int
    depth: int
    group: int
    fraction: int


_INSTRUCTIONS: dict[Board, Instruction] = {
    "B200": "tcgen05",
    "RTX Blackwell": "mma.sync",
}
_BOTH = tuple(_INSTRUCTIONS)
_FP4: Final = ("float4_e2m1fn",)
_ALL: Final = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float6_e3m2fn",
    "float6_e2m3fn",
    *_FP4,
)
_POWERS = "float8_e8m0fnu"

# Source: microsoft/MMA-Sim 2.1, which was verified on a B200 and an RTX PRO 6000. The
# first row that takes a pair of formats is the default.
_ROWS = (
    _Row(_BOTH, "mxf4", _FP4, _POWERS, 32, 64, 16, 35),
    _Row(_BOTH, "mxf4nvf4", _FP4, "ue4m3", 16, 64, 16, 35),
    _Row(_BOTH, "mxf4nvf4", _FP4, _POWERS, 32, 64, 16, 35),
    _Row(_BOTH, "mxf4nvf4", _FP4, _POWERS, 16, 64, 16, 35),
    _Row(_BOTH, "mxf8f6f4", _ALL, _POWERS, 32, 32, 1, 25),
)


def _models(row: _Row) -> Iterator[BlockScaled]:
    floors = cast(dict[tuple[str, int], int], POINTS["floor"].value)
    for device, (a, b) in product(row.devices, product(row.formats, repeat=2)):
        yield BlockScaled(
            device,
            cast(BlockInstruction, f"{_INSTRUCTIONS[device]}.{row.kind}"),
            a,
            b,
            row.scale,
            row.block_size,
            row.depth,
            row.group,
            row.fraction,
            "one source",
            floors.get(("float32", row.fraction)),
            cast(int | None, POINTS["zero_c_exponent"].value),
            cast(ZeroTerms, POINTS["zero_terms"].value),
            bool(POINTS["negative_zero"].value),
        )


#: All models of block-scaled instructions.
BLOCK_SCALED = tuple(model for row in _ROWS for model in _models(row))
