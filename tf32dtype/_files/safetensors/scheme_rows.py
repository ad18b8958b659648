"""How a weight with scales lies in the tensors of a checkpoint: a row for each way."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._formats.aliases import BlockFormatName
from ...blocks.array import BlockArray
from ...blocks.formats import POWERS, Element, elements
from ...blocks.formats import formats as block_formats
from ...blocks.tiles import Tile, TileArray, checked_element, checked_tile, grid
from .dtypes import kind_of

Shape = tuple[int, ...]
Scaled = BlockArray | TileArray
#: The name of a dtype, and a shape.
Form = tuple[str, Shape]
Arrays = Mapping[str, NDArray[Any]]

#: Dtypes of scales: of powers of two, which most files have as bytes, and of NVFP4's.
POWER_SCALES = ("U8", "F8_E8M0")
UE4M3_SCALES = ("F8_E4M3",)
#: Why a row cannot store a weight of another row's format.
OTHER_FORMAT = "the scheme does not have this format"
#: The dtypes of scales that multiply tiles.
_TILE_SCALES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
_TILE_SCALES["F8_E8M0"] = "float8_e8m0fnu"
#: What elements of tiles may be in a file.
_TILE_ELEMENTS = {
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I8": "int8",
}


@dataclass(frozen=True)
class Facts:
    """What a weight is, without its numbers.

    With a tile it is a `TileArray`, else a `BlockArray`.
    """

    #: of blocks, or of the elements of tiles
    format: str
    shape: Shape
    #: the last one too, as a checkpoint has it
    axis: int = -1
    #: None: the format's own
    block_size: int | None = None
    tile: Tile | None = None
    #: of the scales of tiles
    scale_format: str = "float32"

    @classmethod
    def of(cls, array: Scaled) -> Facts:
        if isinstance(array, TileArray):
            return cls(
                array.format,
                array.shape,
                tile=array.tile,
                scale_format=array.scale_format,
            )
        return cls(array.format, array.shape, array.axis, array.block_size)

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows and columns of a tile."""
        return checked_tile(self.tile, self.shape)

    def __str__(self) -> str:
        if self.tile is None:
            return f"{self.format} blocks of shape {self.shape}"
        rows, columns = self.sizes
        return f"{self.format} tiles of {rows} x {columns}, shape {self.shape}"


class Member(NamedTuple):
    """One of the tensors of a weight."""

    name: str
    #: dtypes and shapes that it may have; the first is written
    forms: tuple[Form, ...]
    is_optional: bool = False


@dataclass(frozen=True)
class Row:
    """What blocks and tiles share: a scheme, and names for a weight's tensors."""

    scheme: str
    #: with "{name}", or "{module}" and "{parameter}" on both sides of its last point
    codes: str
    scales: str

    @abstractmethod
    def infer(self, form: Form) -> Iterator[Facts]:
        """What weights may have codes of this dtype and shape."""

    @abstractmethod
    def refusal(self, facts: Facts) -> str | None:
        """Why a weight cannot be written so; None if it can."""

    @abstractmethod
    def members(self, name: str, facts: Facts) -> dict[str, Member]:
        """The tensors of a weight by what they are, "codes" first."""

    @abstractmethod
    def read(self, facts: Facts, arrays: Arrays) -> Scaled:
        """The weight, of its tensors by what they are."""

    @abstractmethod
    def write(self, array: Any) -> dict[str, NDArray[Any]]:
        """The tensors of a weight that is not refused, of any shape."""


@dataclass(frozen=True)
class BlockRow(Row):
    """Blocks of one format along the last axis, none of them short."""

    format: BlockFormatName
    #: the name of a float32 tensor of one number; optional where readers do without
    tensor_scale: str | None = None
    tensor_shape: Shape = (1,)
    is_optional: bool = False
    #: the real scales are those of blocks divided by it
    divides: bool = False
    #: codes have an axis of blocks, and one of the bytes of a block
    has_block_axis: bool = False
    scale_kinds: tuple[str, ...] = POWER_SCALES

    @property
    def _element(self) -> Element:
        return elements[block_formats[self.format].element]

    @property
    def _block(self) -> int:
        return block_formats[self.format].block_size

    def infer(self, form: Form) -> Iterator[Facts]:
        kind, shape = form
        width, block = self._element.width, self._block
        if kind == _kind(self._element.dtype):
            logical = shape
        elif kind != "U8" or width == 8 or len(shape) < 1 + self.has_block_axis:
            return
        elif self.has_block_axis:
            logical = (*shape[:-2], shape[-2] * block)
        else:
            logical = (*shape[:-1], shape[-1] * 8 // width)
        if logical and logical[-1] % block == 0:
            yield Facts(self.format, logical)

    def refusal(self, facts: Facts) -> str | None:
        if facts.tile is not None or facts.format != self.format:
            return OTHER_FORMAT
        if facts.axis not in (-1, len(facts.shape) - 1):
            return f"blocks must be along the last axis; got axis {facts.axis}"
        if facts.block_size not in (None, self._block):
            return f"block_size must be {self._block}; got {facts.block_size}"
        if facts.shape[-1] % self._block:
            return (
                f"the last axis must be a multiple of {self._block}; got"
                f" {facts.shape[-1]}. The scheme tf32dtype stores any length"
            )
        return None

    def members(self, name: str, facts: Facts) -> dict[str, Member]:
        *others, length = facts.shape
        width, blocks = self._element.width, length // self._block
        own = (_kind(self._element.dtype), facts.shape)
        codes: tuple[Form, ...] = (own,)
        if width < 8:
            size = (self._block * width // 8,)
            packed = (blocks, *size) if self.has_block_axis else (blocks * size[0],)
            codes = (("U8", (*others, *packed)), own)
        scales = [(kind, (*others, blocks)) for kind in self.scale_kinds]
        found = {
            "codes": Member(in_pattern(self.codes, name), codes),
            "scales": Member(in_pattern(self.scales, name), tuple(scales)),
        }
        if self.tensor_scale is not None:
            shapes = dict.fromkeys((self.tensor_shape, (1,), ()))
            found["tensor_scale"] = Member(
                in_pattern(self.tensor_scale, name),
                tuple(("F32", shape) for shape in shapes),
                self.is_optional,
            )
        return found

    def read(self, facts: Facts, arrays: Arrays) -> Scaled:
        tensor = 1.0
        if "tensor_scale" in arrays:
            tensor = _tensor_scale(arrays["tensor_scale"], self.divides)
        return BlockArray.from_codes(
            self.format,
            arrays["codes"],
            arrays["scales"],
            shape=facts.shape,
            tensor_scale=tensor,
        )

    def write(self, array: BlockArray) -> dict[str, NDArray[Any]]:
        wanted = POWERS if self.scale_kinds is not UE4M3_SCALES else "ue4m3"
        if array.scale_format != wanted:
            raise ValueError(f"scale_format must be {wanted}; got {array.scale_format}")
        found: dict[str, NDArray[Any]] = {"codes": array.codes, "scales": array.scales}
        if self.tensor_scale is not None:
            scale = np.float32(array.tensor_scale)
            found["tensor_scale"] = np.array(divisor(scale) if self.divides else scale)
        return found


@dataclass(frozen=True)
class TileRow(Row):
    """Tiles of FP8 or int8, by the shape of their scales."""

    #: that it is looked for with; all of them may be written
    tiles: tuple[Tile, ...]
    scale_kinds: tuple[str, ...] = ("F32", "BF16", "F16")
    #: of the scale of a matrix that is one tile; None: as of all tiles
    one_scale: Shape | None = None

    def infer(self, form: Form) -> Iterator[Facts]:
        kind, shape = form
        if kind in _TILE_ELEMENTS and len(shape) >= 2:
            for tile in self.tiles:
                yield Facts(_TILE_ELEMENTS[kind], shape, tile=tile)

    def refusal(self, facts: Facts) -> str | None:
        if facts.tile is None or facts.format not in _TILE_ELEMENTS.values():
            return OTHER_FORMAT
        if self._wanted(facts) is None:
            rows, columns = facts.sizes
            return f"the scheme does not have tiles of {rows} x {columns}"
        if not any(_TILE_SCALES[x] == facts.scale_format for x in self.scale_kinds):
            return f"the scheme does not have {facts.scale_format} scales"
        return None

    def _wanted(self, facts: Facts) -> Tile | None:
        """Which of the row's tiles a weight has."""
        for tile in self.tiles:
            if checked_tile(tile, facts.shape) == facts.sizes:
                return tile
        return None

    def members(self, name: str, facts: Facts) -> dict[str, Member]:
        kind = next(k for k, which in _TILE_ELEMENTS.items() if which == facts.format)
        shapes = [grid(facts.shape, facts.sizes)]
        if len(facts.shape) == 2 and self.one_scale is not None:
            # A matrix's one scale, and a row's each, have fewer axes in most files.
            if self._wanted(facts) == (None, None):
                shapes = [*dict.fromkeys((self.one_scale, (1,), (), *shapes))]
            elif self._wanted(facts) == (1, None) and shapes[0][0] > 1:
                shapes.append(shapes[0][:1])
        kinds = sorted(
            self.scale_kinds, key=lambda x: _TILE_SCALES[x] != facts.scale_format
        )
        return {
            "codes": Member(in_pattern(self.codes, name), ((kind, facts.shape),)),
            "scales": Member(
                in_pattern(self.scales, name),
                tuple((kind, shape) for kind in kinds for shape in shapes),
            ),
        }

    def read(self, facts: Facts, arrays: Arrays) -> Scaled:
        scales = arrays["scales"].reshape(grid(facts.shape, facts.sizes))
        element = checked_element(facts.format)
        return TileArray.from_codes(element.dtype, arrays["codes"], scales, facts.sizes)

    def write(self, array: TileArray) -> dict[str, NDArray[Any]]:
        return {"codes": array.elements, "scales": native(array.scales)}


def native(array: NDArray[Any]) -> NDArray[Any]:
    """The array in this machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def in_pattern(pattern: str, name: str) -> str:
    """The name of a tensor of a weight."""
    module, _, parameter = name.rpartition(".")
    return pattern.format(name=name, module=module, parameter=parameter)


# -- a tensor's scale ----------------------------------------------------------


def _tensor_scale(array: NDArray[Any], divides: bool) -> float:
    value = np.float32(array.reshape(())[()])
    if not 0 < value < np.inf:
        raise ValueError(f"tensor scale must be positive and finite; got {value!s}")
    with np.errstate(all="ignore"):
        found = np.float32(1) / value if divides else value
    if not 0 < found < np.inf:
        raise ValueError(_without_reciprocal(value))
    return float(found)


def _without_reciprocal(scale: np.float32) -> str:
    return f"tensor scale must have a finite reciprocal in float32; got {scale!s}"


def divisor(scale: np.float32) -> np.float32:
    """The float32 whose reciprocal, rounded, is this scale, or the nearest to it.

    About one scale in seven has none: then the reciprocal is a neighbor of it.
    """
    with np.errstate(all="ignore"):
        nearest = np.float32(1) / scale
        ends = np.nextafter(nearest, np.array([0, np.inf], np.float32))
        for found in (nearest, *ends):
            if np.float32(1) / found == scale:
                return np.float32(found)
    if not np.isfinite(nearest):
        raise ValueError(_without_reciprocal(scale))
    return nearest


def _kind(dtype: np.dtype[Any]) -> str:
    kind = kind_of(dtype)
    return "" if kind is None else kind.name
