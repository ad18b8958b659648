"""The block formats: a table with one row per format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from .. import _core
from .._base.wording import brief, one_of
from .._formats.aliases import BlockFormatName, BlockFormatNamed, canonical
from .._formats.table import UnknownFormat
from .._formats.table import formats as number_formats

#: The rules for the scale of a block, in the order of `enum tf_block_rule`.
Rule = Literal["amax", "floor", "even", "nf", "mse", "published"]
ScaleFormat = Literal["float8_e8m0fnu", "ue4m3", "ue5m3", "ue4m4", "ue3m5"]

BlockSize = Literal[16, 32, 64, 128]

RULES = get_args(Rule)
BLOCK_SIZES: tuple[BlockSize, ...] = get_args(BlockSize)
POWERS: Final = "float8_e8m0fnu"  # the scales that no float32 a tensor multiplies


@dataclass(frozen=True, slots=True)
class Element:
    """The type of a block's codes: numbers of a format, or integers."""

    name: str
    #: bits of a code
    width: int

    @property
    def is_integer(self) -> bool:
        return self.name not in number_formats

    @property
    def fraction_bits(self) -> int:
        """The fraction bits of integers, which are in units of 2^-fraction_bits."""
        return 6 if self.name == "mxint8" else 0

    @property
    def has_sign(self) -> bool:
        return not self.name.startswith("uint")

    @property
    def max(self) -> float:
        """The largest value."""
        if self.is_integer:
            greatest = (1 << self.width - self.has_sign) - 1
            return float(greatest) / (1 << self.fraction_bits)
        return number_formats[self.name].max

    @property
    def has_nan(self) -> bool:
        return not self.is_integer and number_formats[self.name].has_nan

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an array with one element per item: a format, int8 or int16."""
        if self.is_integer:
            sign = "" if self.has_sign else "u"
            return np.dtype(f"{sign}int{8 if self.width <= 8 else 16}")
        return number_formats[self.name].dtype

    @property
    def index(self) -> int:
        """Its row in src/blocks/block_formats.h."""
        return list(elements).index(self.name)


#: Elements by name, and the mantissa bits of the scale formats, as in
#: src/blocks/block_formats.h.
elements: dict[str, Element] = {
    name: Element(name, width) for name, width in _core.block_elements
}
scale_formats: dict[ScaleFormat, int] = dict(_core.block_scales)


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """A block format: the contents of a block, and the defaults of `quantize`.

    See Also
    --------
    quantize : Round numbers to a block format.

    Examples
    --------
    >>> import tf32dtype as td
    >>> f = td.blocks.formats["nvfp4"]
    >>> f.element, f.scale_format, f.block_size, f.bits_per_value
    ('float4_e2m1fn', 'ue4m3', 16, 4.5)
    """

    #: name of the block format
    name: BlockFormatName
    #: name of the element
    element: str
    #: name of the residual's element; None: codes of one level
    residual: str | None
    #: scale format; None: the finest one that the range of the tensor allows
    scale_format: ScaleFormat | None
    #: number of values per block
    block_size: BlockSize
    #: rule of the scale
    scale: Rule
    #: whether a block with NaN or Inf becomes NaN as a whole, through its scale
    poisons: bool = False

    @property
    def bits_per_value(self) -> float:
        """Bits that one value takes, its share of the block's scales included."""
        return self.bits(self.block_size)

    def bits(self, block_size: int) -> float:
        """Return bits that one value takes in blocks of a size.

        Parameters
        ----------
        block_size : int
            Values of a block: 16, 32, 64 or 128.

        Returns
        -------
        float
            The bits of the codes, and the share of one value in the block's scales.

        Raises
        ------
        TypeError
            For a size that is not an integer.
        ValueError
            For an integer that is not a block size.
        """
        checked_block_size(block_size)
        levels = [elements[name] for name in (self.element, self.residual) if name]
        return sum(level.width + 8 / block_size for level in levels)

    @property
    def max(self) -> float:
        """The largest value of an element: 448 for E4M3."""
        return elements[self.element].max

    @property
    def levels(self) -> int:
        """1, or 2 with a residual; also the scales a block has."""
        return 1 if self.residual is None else 2


def checked_block_size(block_size: int) -> BlockSize:
    """Return the block size, or raise an error if there is no such size."""
    # operator.index takes True and 0-d arrays too
    if isinstance(block_size, bool) or not isinstance(block_size, int | np.integer):
        raise TypeError(f"block_size must be an integer; got {brief(block_size)}")
    for size in BLOCK_SIZES:
        if block_size == size:
            return size
    raise ValueError(one_of("block_size", block_size, BLOCK_SIZES))


#: A block format by its name or its row.
BlockFormatLike = BlockFormatNamed | BlockFormat


class BlockFormats(Mapping[str, BlockFormat]):
    """The block formats by name, in the table's order; "mxfp8" is mxfp8_e4m3."""

    def __init__(self, *rows: BlockFormat) -> None:
        self._rows: dict[str, BlockFormat] = {row.name: row for row in rows}

    def __getitem__(self, name: str) -> BlockFormat:
        try:
            return self._rows[canonical(name)]
        except (KeyError, AttributeError, TypeError):
            fix = None
            if isinstance(name, str):
                if name in number_formats:
                    fix = f"Use td.quantize(x, {name!r}) to round each number by itself"
                elif name in ("int4", "uint4", "uint8"):
                    fix = f"Use td.blocks.quantize_tiles(x, {name!r}, tile=(1, 32))"
            raise UnknownFormat(
                one_of("block format", name, self._rows, "td.blocks.formats", fix)
            ) from None

    def __iter__(self) -> Iterator[BlockFormatName]:
        return (row.name for row in self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<block formats: {', '.join(self._rows)}>"


#: Sources: TCFP's first publication for the contents of tcfp8, tcfp12 and tcfp16 (the
#: scales are the best at the same bits); OCP Microscaling Formats 1.0 for mx; NVIDIA's
#: description of NVFP4. The last three rows are for storage: no hardware reads them.
formats: BlockFormats = BlockFormats(
    BlockFormat("tcfp8", "float8_e4m3fn", None, None, 32, "mse"),
    BlockFormat("tcfp12", "float8_e4m3fn", "int4", None, 32, "mse"),
    BlockFormat("tcfp16", "float8_e4m3fn", "float8_e4m3fn", None, 32, "mse"),
    BlockFormat("mxfp8_e4m3", "float8_e4m3fn", None, POWERS, 32, "floor", True),
    BlockFormat("mxfp8_e5m2", "float8_e5m2", None, POWERS, 32, "floor", True),
    BlockFormat("mxfp6_e2m3", "float6_e2m3fn", None, POWERS, 32, "floor", True),
    BlockFormat("mxfp6_e3m2", "float6_e3m2fn", None, POWERS, 32, "floor", True),
    BlockFormat("mxfp4", "float4_e2m1fn", None, POWERS, 32, "floor", True),
    BlockFormat("mxint8", "mxint8", None, POWERS, 32, "floor", True),
    BlockFormat("nvfp4", "float4_e2m1fn", None, "ue4m3", 16, "floor"),
    BlockFormat("int8", "int8", None, None, 32, "mse"),
    BlockFormat("int12", "int12", None, None, 32, "mse"),
    BlockFormat("int16", "int16", None, None, 32, "mse"),
)


def find(which: str | BlockFormat) -> BlockFormat:
    """Return the row of a name; a row is returned as it is.

    Raises
    ------
    ValueError
        For an unknown name, and a row that is not the table's: files and copies know
        formats by their names. It lists the known ones.
    TypeError
        For what is neither.
    """
    if isinstance(which, BlockFormat):
        if formats[which.name] != which:
            raise UnknownFormat(
                f"block format must be a name or a row of td.blocks.formats; got"
                f" {brief(which)}, which differs from the row {which.name!r}"
            )
        return which
    if not isinstance(which, str):
        raise TypeError(
            "block format must be a name or a row of td.blocks.formats; got"
            f" {brief(which)}"
        )
    return formats[which]
