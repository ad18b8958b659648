"""Products of block-scaled arrays as a device's tensor core computes them.

Either the instruction itself applies the scales (block_scaled.py), or a kernel does:
each block of k is a chain of ordinary instructions from zero, whose sum is multiplied
by the scales and added to a float32 accumulator outside of the tensor core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import _core
from .._base.wording import brief, one_of
from .._formats.table import find_dtype
from .block_scaled import BlockScaled
from .look_up import find_block_scaled, find_device, find_instruction, find_model
from .models import Aligned, Model

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
Singles = NDArray[np.float32]

_POWERS = "float8_e8m0fnu"
_NO_CODES = np.empty((0, 0), np.uint8)
_TYPES = dict(zip(_core.names, _core.scalar_types, strict=True))


class Tiles(Protocol):
    """The members of a `tf32dtype.blocks.TileArray` that are used."""

    format: str
    shape: tuple[int, ...]
    #: rows and columns that share a scale
    tile: tuple[int, int]
    scale_format: str
    elements: Array
    #: numbers: (..., tiles along rows, tiles along columns)
    scales: Array


class Blocks(Protocol):
    """The members of a `tf32dtype.blocks.BlockArray` that are used."""

    format: str
    shape: tuple[int, ...]
    #: the axis along which values form blocks, and the values per block
    axis: int
    block_size: int
    scale_format: str
    #: float32
    tensor_scale: Any
    #: elements and residuals in the array's shape, one per item; None: no residuals
    elements: Array
    residual_elements: Array | None
    #: codes: (*others, blocks), or (*others, blocks, 2) with residuals
    scales: Bytes


def is_blocks(x: Any) -> bool:
    """Return whether an operand is an array of blocks or of tiles."""
    return not isinstance(x, np.ndarray) and hasattr(x, "scale_format")


class Level(NamedTuple):
    """Elements of one scale each block, as lines along k."""

    elements: Array  # (..., lines, k)
    scales: Bytes  # codes: (..., lines, blocks); none where scales are numbers
    values: Singles  # what these are worth


class Operand(NamedTuple):
    """An operand of a product: rows of a, or columns of b."""

    name: str
    format: str  # of its elements
    scale_format: str
    block_size: int
    tensor_scale: np.float32
    levels: tuple[Level, ...]
    is_vector: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """(..., lines, k)."""
        return self.levels[0].elements.shape


# -- operands --------------------------------------------------------------------------


def read(x: Any, name: str, other: str) -> Operand:
    """Read the elements and scales of an array of blocks or tiles.

    The blocks of `a` must be along its last axis, those of `b` along the axis before
    the last. The columns of a's tiles, and the rows of b's, count as blocks.

    Raises
    ------
    TypeError
        For an argument that is not an array of blocks in CPU memory, and for elements
        that no tensor core multiplies.
    ValueError
        For blocks along another axis.
    """
    if not is_blocks(x):
        raise TypeError(
            f"{name} must be an array of blocks because {other} is one; got"
            f" {getattr(x, 'dtype', type(x).__name__)}. Use tf32dtype.blocks.quantize"
        )
    if not isinstance(x.elements, np.ndarray):
        raise TypeError(
            f"{name} must be in CPU memory; got an array on a GPU. Copy it with"
            f" {name}.get()"
        )
    if hasattr(x, "tile"):
        return _read_tiles(x, name)
    blocks: Blocks = x
    ndim = len(blocks.shape)
    along = ndim - 1 if name == "a" or ndim == 1 else ndim - 2
    if blocks.axis % ndim != along:
        raise ValueError(
            f"{name} must have its blocks along k, which is axis"
            f" {along - ndim if ndim > 1 else 0}; got blocks along axis {blocks.axis}"
            f" of shape {blocks.shape}"
        )
    levels = []
    for level in _levels(blocks, name):
        elements, scales, values = level
        if ndim == 1:
            level = Level(elements[np.newaxis], scales[np.newaxis], values[np.newaxis])
        elif name == "b":
            level = Level(elements.swapaxes(-1, -2), scales, values)
        levels.append(level)
    return Operand(
        name,
        levels[0].elements.dtype.name,
        blocks.scale_format,
        blocks.block_size,
        np.float32(blocks.tensor_scale),
        tuple(levels),
        ndim == 1,
    )


def _read_tiles(x: Tiles, name: str) -> Operand:
    """Return an array of tiles; each line has the scales of its tiles."""
    elements, scales, (lines, k) = x.elements, x.scales, x.tile
    if name == "b":
        elements, scales = elements.swapaxes(-1, -2), scales.swapaxes(-1, -2)
        lines, k = k, lines
    _check_elements(x, name)
    scales = np.repeat(scales, lines, axis=-2)[..., : elements.shape[-2], :]
    codes = scales.view(np.uint8) if x.scale_format == _POWERS else _NO_CODES
    level = Level(elements, codes, scales.astype(np.float32))
    form, one = elements.dtype.name, np.float32(1)
    return Operand(name, form, x.scale_format, k, one, (level,), False)


def _check_elements(x: Blocks | Tiles, name: str) -> None:
    if x.elements.dtype.name not in _TYPES:
        raise TypeError(
            f"{name} must have elements that a modeled tensor core multiplies; got"
            f" {x.format}, whose elements are {x.elements.dtype}"
        )


def _levels(x: Blocks, name: str) -> Iterator[Level]:
    """Yield the elements, then the residuals if any, in the array's own axes."""
    elements, residuals = x.elements, x.residual_elements
    _check_elements(x, name)
    codes = x.scales if residuals is None else x.scales[..., 0]
    values = _core.scale_values(x.scale_format)
    with np.errstate(all="ignore"):
        if x.scale_format != _POWERS:
            values = np.float32(x.tensor_scale) * values
        scales = values[codes]
        yield Level(elements, codes, scales)
        if residuals is not None:
            lower = np.asarray(residuals)
            of = lower.dtype.name if lower.dtype.name in _TYPES else "int4"
            relative = _core.scale_values(x.scale_format, of)[x.scales[..., 1]]
            # All formats here hold all integers of four bits.
            lower = lower.astype(elements.dtype)
            yield Level(lower, x.scales[..., 1], scales * relative)


# -- products --------------------------------------------------------------------------


class Request(NamedTuple):
    """A product that is asked for."""

    a: Operand
    b: Operand
    model: Model | BlockScaled
    terms: int


def resolve(
    a: Any,
    b: Any,
    device: str,
    instruction: str | None,
    accumulator: DTypeLike | None,
    terms: int | None,
) -> Request:
    """Resolve the arguments of `matmul` for arrays of blocks.

    Raises
    ------
    TypeError, ValueError
        As `matmul` does.
    """
    x, y = read(a, "a", "b"), read(b, "b", "a")
    wanted = np.float32 if accumulator is None else accumulator
    if find_dtype(wanted).newbyteorder("=") != np.float32:
        raise ValueError(
            "accumulator must be float32 for arrays of blocks; got"
            f" {brief(accumulator)}"
        )
    if terms is not None and (not isinstance(terms, int) or terms not in (1, 3, 4)):
        raise ValueError(one_of("terms", terms, (1, 3, 4, None)))
    if x.block_size != y.block_size:
        raise ValueError(
            f"a and b must have the same block size; got {x.block_size} and"
            f" {y.block_size}"
        )
    scaled = _block_scaled(x, y, device, instruction)
    if scaled is not None:
        return Request(x, y, scaled, 1)
    found = find_device(device)
    model = find_model(device, instruction, x.format, y.format, "float32")
    if not isinstance(model, Aligned):
        raise ValueError(
            "device must be an NVIDIA GPU to multiply arrays of blocks; got"
            f" {model.name}"
        )
    depth = 2 * model.depth if model.emulated else model.depth
    # A single block may end within an instruction, since no other block follows.
    if x.block_size % depth and x.block_size < x.shape[-1]:
        name = find_instruction(found, instruction)
        raise ValueError(
            f"block size must be a multiple of {depth} for {found.name} {name}, which"
            f" is modeled with {depth} products of {x.format} per sum; got"
            f" {x.block_size}"
        )
    return Request(x, y, model, terms or 4)


def _block_scaled(
    x: Operand, y: Operand, device: str, instruction: str | None
) -> BlockScaled | None:
    """The block-scaled instruction that is named, or that takes such operands."""
    found = find_device(device)
    known = dict.fromkeys(model.instruction for model in found.block_scaled)
    if instruction in found.instructions:
        return None
    if instruction is not None and instruction not in known:
        raise ValueError(
            one_of(
                f"instruction of {found.name}",
                instruction,
                (*found.instructions, *known),
            )
        )
    for operand in (x, y):
        if len(operand.levels) > 1 or operand.scale_format != x.scale_format:
            if instruction is None:
                return None
            what = (
                f"residuals in {operand.name}"
                if len(operand.levels) > 1
                else f"{x.scale_format} and {y.scale_format} scales"
            )
            others = " or ".join(found.instructions)
            raise ValueError(
                f"{found.name} {instruction} needs one scale per block and the same"
                f" scale format for a and b; got {what}. Use {others}, which multiply"
                " the arrays block by block"
            )
    return find_block_scaled(
        found, instruction, x.format, y.format, x.scale_format, x.block_size
    )


def add_product(request: Request, sums: Singles) -> None:
    """Add a product to accumulators, (..., m, n), C-contiguous."""
    a, b, model, terms = request
    for index in np.ndindex(sums.shape[:-2]):
        if isinstance(model, BlockScaled):
            _add_scaled(model, a, b, index, sums[index])
        else:
            _add_promoted(model, a, b, index, terms, sums[index])
    if isinstance(model, BlockScaled):
        _finish(sums, a.tensor_scale, b.tensor_scale)


def _at(x: Array, index: tuple[int, ...]) -> Array:
    """Return a matrix of a stack, which broadcasts to stacks of such an index."""
    axes = x.ndim - 2
    pairs = zip(index[len(index) - axes :], x.shape[:axes], strict=True)
    matrix: Array = x[tuple(i if n > 1 else 0 for i, n in pairs)]
    return matrix


def _add_scaled(
    model: BlockScaled, a: Operand, b: Operand, index: tuple[int, ...], sums: Singles
) -> None:
    x, y = a.levels[0], b.levels[0]
    _core.scaled_mma_matmul(
        model,
        _at(x.elements, index).view(np.uint8),
        _at(x.scales, index),
        _at(y.elements, index).view(np.uint8),
        _at(y.scales, index),
        sums,
    )


def _finish(sums: Singles, scale_a: np.float32, scale_b: np.float32) -> None:
    """Multiply by the scales of both tensors, as a kernel does before it stores."""
    with np.errstate(all="ignore"):
        scale = scale_a * scale_b
        if scale != 1:
            sums *= scale
            sums.view(np.uint32)[np.isnan(sums)] = 0x7FFFFFFF


def _add_promoted(
    model: Model,
    a: Operand,
    b: Operand,
    index: tuple[int, ...],
    terms: int,
    sums: Singles,
) -> None:
    """Block after block, and of each block the terms: high times high first."""
    spec = _core.MatmulSpec("float32", model=model, silent=True)
    block: Singles = np.empty((1, *sums.shape), np.float32)
    pairs = [(x, y) for x in a.levels for y in b.levels][:terms]
    lines = [
        [(_at(level.elements, index), _at(level.values, index)) for level in pair]
        for pair in pairs
    ]
    k = a.shape[-1]
    for number, first in enumerate(range(0, k, a.block_size)):
        stretch = slice(first, min(first + a.block_size, k))
        for (x, s), (y, t) in lines:
            _core.mma_matmul(
                spec, x[np.newaxis, :, stretch], y.T[np.newaxis, stretch], block
            )
            scales = (np.ascontiguousarray(z[:, number]) for z in (s, t))
            _core.promote_block(sums, block[0], *scales)
