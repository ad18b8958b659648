"""The layouts of weights with scales in the tensors of a checkpoint."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._formats import bit_packing
from ..._formats.aliases import BlockFormatName
from ...blocks.array import BlockArray
from ...blocks.formats import POWERS, Element, elements
from ...blocks.formats import formats as block_formats
from ...blocks.scale_layouts import (
    ScaleLayout,
    padded_shape,
    swizzle_scales,
    unswizzle_scales,
)
from ...blocks.tiles import Tile, TileArray, checked_element, checked_tile, grid
from .dtypes import KINDS, kind_of
from .scheme_evidence import MARKER, Evidence, Form, Shape

Scaled = BlockArray | TileArray
Arrays = Mapping[str, NDArray[Any]]

#: The dtypes of scales: powers of two, mostly stored as bytes, and the scales of NVFP4.
POWER_SCALES = ("U8", "F8_E8M0")
UE4M3_SCALES = ("F8_E4M3",)
#: The tensors that arrays of tiles may have in addition to scales.
_OFFSETS = ("zero_points", "biases")
#: The reason why a row cannot store a weight of another format.
OTHER_FORMAT = "the scheme does not have this format"
#: The dtypes of scales that multiply tiles.
_TILE_SCALES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
_TILE_SCALES["F8_E8M0"] = "float8_e8m0fnu"
#: The dtypes of the elements of tiles in a file.
_TILE_ELEMENTS = {
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I8": "int8",
}


@dataclass(frozen=True)
class Facts:
    """The facts of a weight, without its values.

    A weight with `tile` is a `TileArray`; other weights are a `BlockArray`.
    """

    #: the block format, or the format of the elements of tiles
    format: str
    shape: Shape
    #: the axis of the blocks; -1 for a weight of a checkpoint, which is its last axis
    axis: int = -1
    #: the values per block; None for the format's default
    block_size: int | None = None
    tile: Tile | None = None
    #: the format of the scales of tiles
    scale_format: str = "float32"
    #: the additional tensors of tiles: "zero_points", "biases"
    offsets: str = ""

    @classmethod
    def of(cls, array: Scaled) -> Facts:
        if isinstance(array, TileArray):
            return cls(
                array.format,
                array.shape,
                tile=array.tile,
                scale_format=array.scale_format,
                offsets=next(
                    (x for x in _OFFSETS if getattr(array, x) is not None), ""
                ),
            )
        return cls(array.format, array.shape, array.axis, array.block_size)

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """The numbers of rows and columns of a tile."""
        return checked_tile(self.tile, self.shape)

    def __str__(self) -> str:
        if self.tile is None:
            return f"{self.format} blocks of shape {self.shape}"
        rows, columns = self.sizes
        also = f" with {self.offsets.replace('_', ' ')}" if self.offsets else ""
        return f"{self.format} tiles of {rows} x {columns}{also}, shape {self.shape}"


class Member(NamedTuple):
    """A tensor of a weight."""

    name: str
    #: the dtypes and shapes that it may have; the first one is written
    forms: tuple[Form, ...]
    is_optional: bool = False


@dataclass(frozen=True)
class Row:
    """The base class of rows: a scheme, with patterns of names of tensors."""

    scheme: str
    #: a pattern with "{name}", or with "{module}" and "{parameter}", the parts before
    #: and after the last point of the name
    codes: str
    scales: str

    def takes(self, kind: str) -> bool:
        """Return whether scales may have a dtype."""
        return True

    @property
    def markers(self) -> tuple[str, ...]:
        """The possible strings in the marker of a module; empty for no marker."""
        return ()

    @property
    def reading(self) -> tuple[Any, ...]:
        """The facts that are equal for rows that read the same tensors alike."""
        return (type(self),)

    def name_of(self, scales: str) -> str | None:
        """Return the weight whose scales have this name, or None."""
        suffix = in_pattern(self.scales, "")
        if not scales.endswith(suffix):
            return None
        first = scales.removesuffix(suffix)
        return first if "{name}" in self.scales else self.codes.format(module=first)

    def infer(self, name: str, evidence: Evidence) -> Iterator[Facts]:
        """Yield the weights that the tensors of this name may be."""
        form = evidence.entries.get(in_pattern(self.codes, name))
        return iter(()) if form is None else self._inferred(form)

    def _inferred(self, form: Form) -> Iterator[Facts]:
        """Yield the weights that may have codes of this dtype and shape."""
        return iter(())

    def agrees(self, facts: Facts, module: str, evidence: Evidence) -> bool:
        """Return whether config.json does not contradict such a weight."""
        return True

    @abstractmethod
    def refusal(self, facts: Facts) -> str | None:
        """Return why this row cannot store a weight, or None if it can."""

    @abstractmethod
    def members(self, name: str, facts: Facts) -> dict[str, Member]:
        """Return the tensors of a weight by their role, "codes" first."""

    @abstractmethod
    def read(self, facts: Facts, arrays: Arrays) -> Scaled:
        """Return the weight, given its tensors by their role."""

    @abstractmethod
    def write(self, array: Any) -> dict[str, NDArray[Any]]:
        """Return the tensors of a weight, of any shape, that `refusal` accepts."""


@dataclass(frozen=True)
class BlockRow(Row):
    """A row for blocks of one format along the last axis, without short blocks."""

    format: BlockFormatName
    #: the name of the float32 tensor with the tensor scale; None if there is none
    tensor_scale: str | None = None
    tensor_shape: Shape = (1,)
    is_optional: bool = False
    #: whether block scales are divided, not multiplied, by the tensor scale
    divides: bool = False
    #: whether codes have an axis of blocks and an axis of the bytes of a block
    has_block_axis: bool = False
    scale_kinds: tuple[str, ...] = POWER_SCALES
    #: the dtype of packed codes, whose first byte is the lowest of an element
    packed_kind: str = "U8"
    #: whether the first of two 4-bit codes is in the high half of a byte
    is_high_first: bool = False
    #: the order of scales; None for row by row
    scale_layout: ScaleLayout | None = None
    #: the name of the format in ComfyUI's marker
    marker: str | None = None
    #: the name of the mode in MLX's config.json
    mode: str | None = None

    def takes(self, kind: str) -> bool:
        return kind in self.scale_kinds

    @property
    def markers(self) -> tuple[str, ...]:
        return () if self.marker is None else (self.marker,)

    @property
    def reading(self) -> tuple[Any, ...]:
        return BlockRow, self.is_high_first, self.scale_layout, self.divides

    def agrees(self, facts: Facts, module: str, evidence: Evidence) -> bool:
        if self.mode is None:
            return True
        said = evidence.mlx(module)
        wanted = {"mode": self.mode, "bits": self._element.width}
        return all(said.get(key, x) == x for key, x in wanted.items())

    @property
    def _element(self) -> Element:
        return elements[block_formats[self.format].element]

    @property
    def _block(self) -> int:
        return block_formats[self.format].block_size

    @property
    def _is_packed(self) -> bool:
        return self._element.width < 8 or self.packed_kind != "U8"

    def _inferred(self, form: Form) -> Iterator[Facts]:
        kind, shape = form
        width, block = self._element.width, self._block
        if kind == _kind(self._element.dtype):
            logical = shape
        elif (
            kind != self.packed_kind
            or not self._is_packed
            or len(shape) < 1 + self.has_block_axis
        ):
            return
        elif self.has_block_axis:
            logical = (*shape[:-2], shape[-2] * block)
        else:
            item = KINDS[kind].bits
            logical = (*shape[:-1], shape[-1] * item // width)
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
        if self._is_packed:
            size = (self._block * width // KINDS[self.packed_kind].bits,)
            packed = (blocks, *size) if self.has_block_axis else (blocks * size[0],)
            codes = ((self.packed_kind, (*others, *packed)), own)
        of_scales: Shape = (*others, blocks)
        if self.scale_layout is not None and len(of_scales) > 1:
            of_scales = padded_shape(of_scales, self.scale_layout)
        scales = [(kind, of_scales) for kind in self.scale_kinds]
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
        return found | _marker(name, self.marker)

    def read(self, facts: Facts, arrays: Arrays) -> Scaled:
        tensor = 1.0
        if "tensor_scale" in arrays:
            tensor = _tensor_scale(arrays["tensor_scale"], self.divides)
        codes: NDArray[Any] = arrays["codes"]
        scales = arrays["scales"]
        if self._is_packed and codes.dtype != self._element.dtype:
            packed: NDArray[Any] = _bytes(codes)
            if self.is_high_first:
                packed = packed >> 4 | packed << 4
            is_whole = self._element.width == 8
            codes = packed.view(self._element.dtype) if is_whole else packed
        if self.scale_layout is not None:
            *others, length = facts.shape
            shape = (*others, length // self._block)
            scales = unswizzle_scales(scales, shape, self.scale_layout)
        return BlockArray.from_codes(
            self.format, codes, scales, shape=facts.shape, tensor_scale=tensor
        )

    def write(self, array: BlockArray) -> dict[str, NDArray[Any]]:
        wanted = block_formats[self.format].scale_format or POWERS
        if array.scale_format != wanted:
            raise ValueError(f"scale_format must be {wanted}; got {array.scale_format}")
        codes: NDArray[Any] = array.codes
        scales: NDArray[Any] = array.scales
        if self.is_high_first:
            codes = codes >> 4 | codes << 4
        if self.scale_layout is not None:
            scales = swizzle_scales(scales, self.scale_layout)
        found: dict[str, NDArray[Any]] = {"codes": codes, "scales": scales}
        if self.tensor_scale is not None:
            scale = np.float32(array.tensor_scale)
            found["tensor_scale"] = np.array(divisor(scale) if self.divides else scale)
        elif array.tensor_scale != 1:
            raise ValueError(f"tensor_scale must be 1; got {array.tensor_scale!s}")
        return found | _marker_text(self.marker)


@dataclass(frozen=True)
class TileRow(Row):
    """A row for tiles of FP8 or int8, which are found by the shape of the scales."""

    #: the tile shapes to look for; all of them can be written
    tiles: tuple[Tile, ...]
    scale_kinds: tuple[str, ...] = ("F32", "BF16", "F16")
    #: the shape of the scale of a matrix in a single tile; None for the usual shape
    one_scale: Shape | None = None
    #: the axes of the scales of a matrix, r for rows and c for columns; the first one
    #: is written
    axes: tuple[str, ...] = ("rc",)
    #: the markers of ComfyUI by the format of the elements
    marked: Mapping[str, str] | None = None

    def takes(self, kind: str) -> bool:
        return kind in self.scale_kinds

    @property
    def markers(self) -> tuple[str, ...]:
        return tuple((self.marked or {}).values())

    @property
    def reading(self) -> tuple[Any, ...]:
        return (TileRow,)

    def agrees(self, facts: Facts, module: str, evidence: Evidence) -> bool:
        size = evidence.quantization.get("weight_block_size")
        if size is None or facts.tile in ((None, None), (1, None)):
            return True
        return bool(size == list(facts.tile or ()))

    def _inferred(self, form: Form) -> Iterator[Facts]:
        kind, shape = form
        if kind in _TILE_ELEMENTS and len(shape) >= 2:
            for tile in self.tiles:
                yield Facts(_TILE_ELEMENTS[kind], shape, tile=tile)

    def refusal(self, facts: Facts) -> str | None:
        if facts.tile is None or facts.format not in _TILE_ELEMENTS.values():
            return OTHER_FORMAT
        if facts.offsets or facts.format not in (self.marked or {facts.format: ""}):
            return OTHER_FORMAT
        if self._wanted(facts) is None:
            rows, columns = facts.sizes
            return f"the scheme does not have tiles of {rows} x {columns}"
        if not any(_TILE_SCALES[x] == facts.scale_format for x in self.scale_kinds):
            return f"the scheme does not have {facts.scale_format} scales"
        return None

    def _wanted(self, facts: Facts) -> Tile | None:
        """Return the tile shape of this row that a weight has, or None."""
        for tile in self.tiles:
            if checked_tile(tile, facts.shape) == facts.sizes:
                return tile
        return None

    def members(self, name: str, facts: Facts) -> dict[str, Member]:
        kind = next(k for k, which in _TILE_ELEMENTS.items() if which == facts.format)
        tiled = grid(facts.shape, facts.sizes)
        axes = self.axes if len(facts.shape) == 2 else ("rc",)
        shapes: list[Shape] = [_on_axes(tiled, x) for x in axes]
        same = [x for x in self.tiles if checked_tile(x, facts.shape) == facts.sizes]
        if self.one_scale is not None and (None, None) in same:
            # In most files, the single scale of a matrix has fewer axes.
            fewer = [self.one_scale, (1,), ()]
            first = len(facts.shape) == 2 and same[0] == (None, None)
            shapes = [*fewer, *shapes] if first else [*shapes, *fewer]
        if self.one_scale is not None and (1, None) in same and len(facts.shape) == 2:
            shapes.append(tiled[:1])
        shapes = [*dict.fromkeys(shapes)]
        kinds = sorted(
            self.scale_kinds, key=lambda x: _TILE_SCALES[x] != facts.scale_format
        )
        return {
            "codes": Member(in_pattern(self.codes, name), ((kind, facts.shape),)),
            "scales": Member(
                in_pattern(self.scales, name),
                tuple((kind, shape) for kind in kinds for shape in shapes),
            ),
        } | _marker(name, (self.marked or {}).get(facts.format))

    def read(self, facts: Facts, arrays: Arrays) -> Scaled:
        scales, tiled = arrays["scales"], grid(facts.shape, facts.sizes)
        scales = np.full(tiled, scales) if scales.size == 1 else scales.reshape(tiled)
        element = checked_element(facts.format)
        return TileArray.from_codes(element, arrays["codes"], scales, facts.sizes)

    def write(self, array: TileArray) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {
            "codes": array.elements,
            "scales": native(array.scales),
        }
        return found | _marker_text((self.marked or {}).get(array.format))


@dataclass(frozen=True)
class GroupRow(Row):
    """A row for integers of 4 or 8 bits in 32-bit words, with a scale for each group.

    The first integer of a word is in its lowest bits.
    """

    bits: int
    word: str
    #: whether words store the integers plus half of their range
    has_sign: bool = False
    scale_kinds: tuple[str, ...] = ("BF16", "F16", "F32")
    #: the possible lengths of groups; empty for any length
    groups: tuple[int, ...] = ()
    #: the names of the tensors of the shape (int64), of zero points in words along the
    #: first axis, and of biases
    shape: str | None = None
    zero_points: str | None = None
    biases: str | None = None
    #: whether config.json must have bits and group_size, as MLX's has
    is_of_mlx: bool = False

    def takes(self, kind: str) -> bool:
        return kind in self.scale_kinds

    @property
    def _format(self) -> str:
        return f"{'' if self.has_sign else 'u'}int{self.bits}"

    @property
    def reading(self) -> tuple[Any, ...]:
        return GroupRow, self.bits, self.has_sign

    def agrees(self, facts: Facts, module: str, evidence: Evidence) -> bool:
        if self.is_of_mlx:
            said = evidence.mlx(module)
            wanted = {"bits": self.bits, "group_size": facts.sizes[1]}
            return said.get("mode", "affine") == "affine" and all(
                said.get(key) == x for key, x in wanted.items()
            )
        groups = evidence.quantization.get("config_groups")
        given = groups.values() if isinstance(groups, dict) else ()
        weights = [x.get("weights") for x in given if isinstance(x, dict)]
        bits = {x.get("num_bits") for x in weights if isinstance(x, dict)}
        return not bits or self.bits in bits

    def infer(self, name: str, evidence: Evidence) -> Iterator[Facts]:
        kind, shape = evidence.entries.get(in_pattern(self.codes, name), ("", ()))
        scale_kind, scales = evidence.entries[in_pattern(self.scales, name)]
        if kind != self.word or len(shape) < 2 or scale_kind not in self.scale_kinds:
            return
        logical = (*shape[:-1], shape[-1] * 32 // self.bits)
        if self.shape is not None:
            said = evidence.numbers(in_pattern(self.shape, name))
            if said is None or said.ndim != 1 or said.dtype.kind != "i":
                return
            logical = tuple(int(x) for x in said)
            if (*logical[:-1], _words(logical[-1:], self.bits)) != shape:
                return
        count = scales[-1] if scales else 0
        if count == 0 or logical[-1] % count or not logical[-1]:
            return
        group = logical[-1] // count
        offsets = self._offsets(name, evidence)
        if (self.groups and group not in self.groups) or (
            self.biases is not None and not offsets
        ):
            return
        yield Facts(
            self._format,
            logical,
            tile=(1, group),
            scale_format=_TILE_SCALES[scale_kind],
            offsets=offsets,
        )

    def _offsets(self, name: str, evidence: Evidence) -> str:
        for what in _OFFSETS:
            pattern = getattr(self, what)
            if pattern is not None and in_pattern(pattern, name) in evidence.entries:
                return what
        return ""

    def refusal(self, facts: Facts) -> str | None:
        if facts.tile is None or facts.format != self._format:
            return OTHER_FORMAT
        rows, group = facts.sizes
        length = facts.shape[-1]
        has_group = not self.groups or group in self.groups
        is_whole = length % group == 0 and (
            self.shape is not None or length * self.bits % 32 == 0
        )
        if rows != 1 or not has_group or not is_whole:
            return f"the scheme does not have tiles of {rows} x {group}"
        if facts.offsets and getattr(self, facts.offsets) is None:
            return f"the scheme does not have {facts.offsets.replace('_', ' ')}"
        if self.biases is not None and facts.offsets != "biases":
            return "the scheme needs biases"
        if not any(_TILE_SCALES[x] == facts.scale_format for x in self.scale_kinds):
            return f"the scheme does not have {facts.scale_format} scales"
        return None

    def members(self, name: str, facts: Facts) -> dict[str, Member]:
        *others, length = facts.shape
        of_scales = grid(facts.shape, facts.sizes)
        kind = next(
            k for k in self.scale_kinds if _TILE_SCALES[k] == facts.scale_format
        )
        words = (*others, _words((length,), self.bits))
        found = {
            "codes": Member(in_pattern(self.codes, name), ((self.word, words),)),
            "scales": Member(in_pattern(self.scales, name), ((kind, of_scales),)),
        }
        if self.shape is not None:
            form = ("I64", (len(facts.shape),))
            found["shape"] = Member(in_pattern(self.shape, name), (form,))
        if facts.offsets == "biases":
            found["biases"] = Member(
                in_pattern(self.biases or "", name), ((kind, of_scales),)
            )
        elif facts.offsets:
            *stack, rows, groups = of_scales
            packed = (*stack, _words((rows,), self.bits), groups)
            found["zero_points"] = Member(
                in_pattern(self.zero_points or "", name), ((self.word, packed),)
            )
        return found

    def read(self, facts: Facts, arrays: Arrays) -> Scaled:
        offsets = {}
        if facts.offsets == "biases":
            offsets["biases"] = arrays["biases"]
        elif facts.offsets:
            packed = arrays["zero_points"].swapaxes(-1, -2)
            rows = facts.shape[-2]
            offsets["zero_points"] = self._unpacked(packed, rows).swapaxes(-1, -2)
        codes = self._unpacked(arrays["codes"], facts.shape[-1])
        return TileArray.from_codes(
            checked_element(facts.format),
            codes,
            arrays["scales"],
            facts.sizes,
            **offsets,
        )

    def _unpacked(self, words: NDArray[Any], length: int) -> NDArray[Any]:
        items = bit_packing.unpack(_bytes(words), self.bits)[..., :length]
        if self.has_sign:
            return (items - (1 << self.bits - 1)).view(np.int8)
        return items

    def write(self, array: TileArray) -> dict[str, NDArray[Any]]:
        found = {
            "codes": self._packed(array.elements),
            "scales": native(array.scales),
        }
        if self.shape is not None:
            found["shape"] = np.array(array.shape, "<i8")
        if array.biases is not None:
            found["biases"] = native(array.biases)
        if array.zero_points is not None:
            packed = self._packed(array.zero_points.swapaxes(-1, -2))
            found["zero_points"] = packed.swapaxes(-1, -2)
        return found

    def _packed(self, items: NDArray[Any]) -> NDArray[Any]:
        codes = items.view(np.uint8)
        if self.has_sign:
            codes = codes + np.uint8(1 << self.bits - 1)
        each = 32 // self.bits
        length = items.shape[-1]
        whole = np.zeros((*items.shape[:-1], -(-length // each) * each), np.uint8)
        whole[..., :length] = codes & np.uint8((1 << self.bits) - 1)
        return bit_packing.pack(whole, self.bits).view(KINDS[self.word].dtype)


def _on_axes(tiled: Shape, axes: str) -> Shape:
    """Return the shape of scales whose last axes are those in `axes`."""
    lengths = {"r": tiled[-2], "c": tiled[-1], "1": 1}
    return (*tiled[:-2], *(lengths[axis] for axis in axes))


def _words(lengths: Shape, bits: int) -> int:
    """Return the number of 32-bit words for the integers along the first axis."""
    return -(-lengths[0] * bits // 32)


def _bytes(items: NDArray[Any]) -> NDArray[np.uint8]:
    """Return little-endian elements as bytes along the last axis."""
    little = items.astype(items.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).view(np.uint8)


# -- ComfyUI's marker ----------------------------------------------------------


def _marker(name: str, format: str | None) -> dict[str, Member]:
    if format is None:
        return {}
    length = len(_marker_text(format)["marker"])
    where = in_pattern("{module}." + MARKER, name)
    return {"marker": Member(where, (("U8", (length,)),), is_optional=True)}


def _marker_text(format: str | None) -> dict[str, NDArray[Any]]:
    if format is None:
        return {}
    text = json.dumps({"format": format}).encode()
    return {"marker": np.frombuffer(text, np.uint8)}


def native(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in the byte order of this machine."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def in_pattern(pattern: str, name: str) -> str:
    """Return the name of a tensor of a weight, from a pattern."""
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
    """Return the float32 value whose rounded reciprocal is this scale or nearest to it.

    About one scale in seven is not a rounded reciprocal. The reciprocal of the result
    is then a neighbor of the scale.
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
