"""The format that an operand of a product is rounded to, and its scales."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, cast, get_args

from ...._base.wording import brief, one_of
from ...._formats.table import find
from ...._matmul.precisions import (
    COMMON,
    PRECISIONS,
    Precision,
    find_precision,
)
from ....blocks.formats import formats as block_formats

Scale = Literal["tensor", "row", "block", "tile"]
SCALES = get_args(Scale)
#: The k that share a scale in "block", and the k and lines that do so in "tile".
TILE = 128
_FP8 = ("fp8_e4m3", "fp8_e5m2")


@dataclass(frozen=True)
class OperandFormat:
    """A format, and for FP8 what shares a scale."""

    #: short name of a precision, or name of a block format
    name: str
    #: None: the format has no scales, or those of a block format
    scale: Scale | None = None

    def __str__(self) -> str:
        return self.name if self.scale is None else f"{self.name}:{self.scale}"

    @cached_property
    def precision(self) -> Precision | None:
        """The precision; None for a block format."""
        return None if self.name in block_formats else find_precision(self.name)

    @property
    def is_unrounded(self) -> bool:
        return self.name == "f32"

    @property
    def is_split(self) -> bool:
        """Whether a number is a sum of components, which both operands must have."""
        row = self.precision
        return row is not None and row.components > 1

    @property
    def is_tiled(self) -> bool:
        """Whether it has FP8 elements with scales for parts of k."""
        return self.scale in ("block", "tile")

    @property
    def block(self) -> int | None:
        """How many k share a scale; None if all of them do, or there is no scale."""
        if self.is_tiled:
            return TILE
        if self.name in block_formats:
            return int(block_formats[self.name].block_size)
        return None

    @cached_property
    def takes_parts(self) -> bool:
        """Whether a part of a matrix is rounded as in the whole if it has its maximum.

        Other formats choose the format of scales by all blocks of the matrix.
        """
        row = block_formats.get(self.name)
        return row is None or row.scale_format is not None

    @property
    def bits(self) -> float:
        """Bits that a value of a large matrix takes, its share of scales included."""
        if self.name in block_formats:
            return block_formats[self.name].bits_per_value
        row = find_precision(self.name)
        numpys = {"float32": 32, "float16": 16}
        width = numpys.get(row.format) or find(row.format).bits
        shared = {"block": TILE, "tile": TILE * TILE}.get(self.scale or "")
        return width * row.components + (32 / shared if shared else 0)


UNROUNDED = OperandFormat("f32")


@lru_cache(maxsize=256)
def operand_format(text: str, scale: Scale = "tensor") -> OperandFormat:
    """Return the format that a name means.

    Parameters
    ----------
    text : str
        A name of a precision or of a block format. For FP8, what shares a scale may
        follow: "fp8_e4m3:row".
    scale : {"tensor", "row", "block", "tile"}
        The numbers that share a scale in FP8, unless `text` names them.

    Raises
    ------
    ValueError
        For an unknown name or scale, and for a scale of a format that has none.
    """
    if not isinstance(text, str):
        raise ValueError(
            f"format must be a name of a precision or of a block format; got"
            f" {brief(text)}"
        )
    name, colon, own = text.partition(":")
    if colon and own not in SCALES:
        raise ValueError(one_of("scale", own, SCALES))
    found: str
    if name in block_formats:
        found, has_scale = block_formats[name].name, False
    else:
        try:
            found = find_precision(name).short
        except ValueError:
            names = [*COMMON, *(row.short for row in PRECISIONS), *block_formats]
            listing = "td.typing.PrecisionName or td.blocks.formats"
            raise ValueError(one_of("format", text, names, listing)) from None
        has_scale = found in _FP8
    if colon and not has_scale:
        raise ValueError(f"scale can only be given for FP8; got {brief(text)}")
    shared = cast(Scale, own) if colon else scale
    return OperandFormat(found, shared if has_scale else None)
