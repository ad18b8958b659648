"""The layout of a block array's bytes, and all facts of the array but the bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.arguments import checked_number
from .._base.wording import brief, one_of
from .._formats.aliases import canonical
from .formats import (
    POWERS,
    BlockFormat,
    BlockSize,
    Element,
    ScaleFormat,
    checked_block_size,
    elements,
    find,
    scale_formats,
)

#: NumPy has 64 axes: one is for the bytes of a block, and one for codes in groups.
MOST_AXES = 62
#: Format, shape, axis, block size, scale format and the tensor's scale.
Facts = tuple[str, tuple[int, ...], int, int, str, float]
#: Codes, scales and residuals.
Parts = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8] | None]


@dataclass(frozen=True)
class Layout:
    """Shape, axis and parts of an array of blocks.

    One buffer of bytes holds the codes, then the scales, then the residuals, each
    C-contiguous with the block axis last. The last block of a line may be short; it is
    filled up with codes of zero.
    """

    row: BlockFormat
    shape: tuple[int, ...]
    #: axis that blocks are along, counted from 0
    axis: int
    block_size: BlockSize
    scale_format: ScaleFormat
    #: factor of all scales; 1 if they are powers of two
    tensor_scale: float

    @cached_property
    def element(self) -> Element:
        return elements[self.row.element]

    @cached_property
    def residual(self) -> Element | None:
        return None if self.row.residual is None else elements[self.row.residual]

    @property
    def length(self) -> int:
        """Values of a line."""
        return self.shape[self.axis]

    @property
    def others(self) -> tuple[int, ...]:
        """Lengths of the axes that are not the block axis."""
        return self.shape[: self.axis] + self.shape[self.axis + 1 :]

    @property
    def lines(self) -> int:
        return math.prod(self.others)

    @property
    def blocks(self) -> int:
        """Blocks of a line."""
        return -(-self.length // self.block_size)

    @property
    def has_tensor_scale(self) -> bool:
        return self.scale_format != POWERS

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of codes and scales, and of residuals where there are any."""
        grid = (*self.others, self.blocks)
        codes = (*grid, self.block_size * self.element.width // 8)
        if self.residual is None:
            return codes, grid
        return codes, (*grid, 2), (*grid, self.block_size * self.residual.width // 8)

    @property
    def size(self) -> int:
        """Bytes of the buffer."""
        return sum(map(math.prod, self.shapes))

    def parts(self, buffer: NDArray[np.uint8]) -> Parts:
        """Views of a buffer: codes, scales, and residuals where there are any."""
        found: list[Any] = []
        end = 0
        for shape in self.shapes:
            start, end = end, end + math.prod(shape)
            found.append(buffer[start:end].reshape(shape))
        codes, scales, residuals = (*found, None)[:3]
        return codes, scales, residuals

    @property
    def facts(self) -> Facts:
        """The arguments of `make` that give this layout again."""
        return (
            self.row.name,
            self.shape,
            self.axis,
            self.block_size,
            self.scale_format,
            self.tensor_scale,
        )

    @property
    def core(self) -> tuple[int, int, int, int]:
        """Element, residual (or -1), scale format and block size, for `_core`."""
        return (
            self.element.index,
            -1 if self.residual is None else self.residual.index,
            list(scale_formats).index(self.scale_format),
            self.block_size,
        )


def make(
    format: str | BlockFormat,
    shape: object,
    axis: int,
    block_size: int | None,
    scale_format: str | None,
    tensor_scale: float,
) -> Layout:
    """Check the facts that a caller or a file gives, and return the layout.

    Raises
    ------
    ValueError, TypeError
        If something is not possible; the text names it and what is.
    """
    row = find(format)
    lengths = checked_shape(shape)
    chosen = checked_scale_format(scale_format) or row.scale_format
    if chosen is None:
        raise ValueError(
            f"scale_format must be given for {row.name}, which has no default; use one"
            f" of {', '.join(map(repr, scale_formats))}"
        )
    return Layout(
        row,
        lengths,
        checked_axis(axis, len(lengths)),
        row.block_size if block_size is None else checked_block_size(block_size),
        chosen,
        _checked_tensor_scale(tensor_scale, chosen),
    )


def integer(value: object) -> int:
    """Return an integer as Python's, or TypeError; `operator.index` takes True too."""
    if isinstance(value, bool):
        raise TypeError(f"{value} is not an integer")
    return index(value)  # type: ignore[arg-type]


def checked_shape(shape: object) -> tuple[int, ...]:
    try:
        lengths = tuple(map(integer, shape))  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(
            f"shape must be a tuple of integers; got {brief(shape)}"
        ) from None
    if not lengths or min(lengths) < 0:
        raise ValueError(
            "shape must have at least one axis and no negative length; got"
            f" {brief(shape)}"
        )
    if math.prod(max(n, 1) for n in lengths) > np.iinfo(np.intp).max // 4:
        raise ValueError(f"shape must fit in memory; got {brief(shape)}")
    _check_ndim(len(lengths))
    return tuple(map(int, lengths))


def checked_axis(axis: int, ndim: int) -> int:
    """Return the axis counted from 0."""
    _check_ndim(ndim)
    try:
        wanted = integer(axis)
    except TypeError:
        raise TypeError(f"axis must be an integer; got {brief(axis)}") from None
    if not -ndim <= wanted < ndim:
        raise ValueError(
            f"axis must be from {-ndim} to {ndim - 1} for an array of {ndim} axes; got"
            f" {axis}"
        )
    return wanted % ndim


def _check_ndim(ndim: int) -> None:
    if ndim > MOST_AXES:
        raise ValueError(
            f"an array of blocks must have at most {MOST_AXES} axes; got {ndim}"
        )


def checked_scale_format(scale_format: str | None) -> ScaleFormat | None:
    if scale_format is None:
        return None
    name = canonical(scale_format) if isinstance(scale_format, str) else ""
    for known in scale_formats:
        if name == known:
            return known
    raise ValueError(one_of("scale_format", scale_format, scale_formats))


def _checked_tensor_scale(tensor_scale: float, scale_format: str) -> float:
    value = checked_number(tensor_scale, "tensor_scale")
    if scale_format == POWERS and value != 1:
        raise ValueError(
            f"tensor_scale must be 1 for scale_format {POWERS!r}; got {value!r}"
        )
    if not 0 < value < math.inf or _float32(value) != value:
        raise ValueError(
            f"tensor_scale must be a positive float32 value; got {value!r}"
        )
    if scale_format != "ue4m3" and math.frexp(value)[0] != 0.5:
        raise ValueError(
            f"tensor_scale must be a power of two for scale_format {scale_format!r};"
            f" got {value!r}"
        )
    return value


def _float32(value: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(value))
