"""Scales of blocks in the order that matrix units read them: tiles of rows and columns.

Sources: "1D Block Scaling Factors Layout" of the cuBLAS documentation, and
``get_sf_out_offset_128x4`` and ``get_sf_out_offset_8x4`` of TensorRT-LLM, which
FlashInfer has too (csrc/nv_internal/tensorrt_llm/kernels/quantization.cuh).
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.wording import one_of
from .._formats.table import own_array
from .layout import checked_shape

ScaleLayout = Literal["128x4", "8x4"]

LAYOUTS: tuple[ScaleLayout, ...] = get_args(ScaleLayout)
#: Rows of a tile: (groups, rows of a group). Entries of one row of each group are
#: neighbors.
_ROWS: dict[str, tuple[int, int]] = {"128x4": (4, 32), "8x4": (1, 8)}
_COLUMNS = 4


def swizzle_scales(scales: ArrayLike, layout: ScaleLayout = "128x4") -> NDArray[Any]:
    """Reorder the scales of blocks to the tiles that matrix units read.

    Parameters
    ----------
    scales : array_like, shape (..., rows, columns)
        One scale per block in row-major order, as `BlockArray.scales` has them. The
        dtype has one byte: uint8, float8_e8m0fnu, float8_e4m3fn.
    layout : {"128x4", "8x4"}
        "128x4": tiles of 128 rows and 4 columns, as cuBLAS, CUTLASS and
        `torch._scaled_mm` read them. Entry (r, c) of a tile is its byte
        ``16 * (r % 32) + 4 * (r // 32) + c``. "8x4": tiles of 8 rows and 4 columns, as
        TensorRT-LLM and FlashInfer read them for few rows. Entry (r, c) is byte
        ``4 * r + c``.

    Returns
    -------
    ndarray, shape (..., padded rows, padded columns)
        A new array of the same dtype. Rows are padded to a multiple of 128 or 8, and
        columns to a multiple of 4; the padding is bytes of zero. In memory the tiles of
        a matrix follow each other in row-major order, and so do matrices.

    Raises
    ------
    TypeError
        For a dtype of more than one byte.
    ValueError
        For fewer than two axes, and for an unknown layout.

    See Also
    --------
    unswizzle_scales : Bring the scales back to row-major order.
    BlockArray.to_torch_scaled_mm : Return codes and scales as PyTorch's tensors.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> b = td.blocks.quantize(np.ones((200, 256), np.float32), "nvfp4")
    >>> td.blocks.swizzle_scales(b.scales).shape
    (256, 16)
    """
    source = _checked(scales)
    if source.ndim < 2:
        raise ValueError(
            f"scales must have at least two axes; got shape {source.shape}"
        )
    groups, rows = _checked_layout(layout)
    *stack, high, wide = padded_shape(source.shape, layout)
    padded = np.zeros((*stack, high, wide), np.uint8)
    padded[..., : source.shape[-2], : source.shape[-1]] = source.view(np.uint8)
    tiles = padded.reshape(
        *stack, high // (groups * rows), groups, rows, wide // _COLUMNS, _COLUMNS
    )
    ordered = np.moveaxis(tiles, (-2, -3, -4), (-4, -3, -2))
    return ordered.reshape(padded.shape).view(source.dtype)


def unswizzle_scales(
    scales: ArrayLike, shape: tuple[int, ...], layout: ScaleLayout = "128x4"
) -> NDArray[Any]:
    """Bring scales in tiles back to row-major order, without padding.

    Parameters
    ----------
    scales : array_like
        Scales in tiles, as `swizzle_scales` returns them. The dtype has one byte. The
        array may have any shape, as files often have it flat.
    shape : tuple of int
        Shape of the result: (..., rows, columns).
    layout : {"128x4", "8x4"}
        As for `swizzle_scales`.

    Returns
    -------
    ndarray
        A new array of that shape and of the same dtype. The padding may hold any bytes,
        as kernels often leave it unwritten.

    Raises
    ------
    TypeError
        For a dtype of more than one byte.
    ValueError
        If the number of scales is not that of the padded shape; for a shape of fewer
        than two axes, and for an unknown layout.

    See Also
    --------
    swizzle_scales : Reorder scales to tiles.
    BlockArray.from_codes : Create an array from codes and scales.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> b = td.blocks.quantize(np.ones((200, 256), np.float32), "nvfp4")
    >>> flat = td.blocks.swizzle_scales(b.scales).reshape(-1)
    >>> scales = td.blocks.unswizzle_scales(flat, (200, 16))
    >>> np.array_equal(scales, b.scales)
    True
    """
    source = _checked(scales)
    lengths = checked_shape(shape)
    if len(lengths) < 2:
        raise ValueError(f"shape must have at least two axes; got {lengths}")
    groups, rows = _checked_layout(layout)
    *stack, high, wide = padded_shape(lengths, layout)
    whole = (*stack, high, wide)
    if source.size != math.prod(whole):
        raise ValueError(
            f"scales must have {math.prod(whole)} entries for shape {lengths} in layout"
            f" {layout!r}, which pads to {whole}; got {source.size}"
        )
    ordered = np.ascontiguousarray(source).reshape(
        *stack, high // (groups * rows), wide // _COLUMNS, rows, groups, _COLUMNS
    )
    tiles = np.moveaxis(ordered, (-4, -3, -2), (-2, -3, -4))
    padded = tiles.reshape(whole)
    return padded[..., : lengths[-2], : lengths[-1]].copy()


def _checked(scales: ArrayLike) -> NDArray[Any]:
    source = own_array(scales)
    if source.dtype.itemsize != 1:
        raise TypeError(f"scales must have a dtype of one byte; got {source.dtype}")
    return source


def _checked_layout(layout: object) -> tuple[int, int]:
    if not isinstance(layout, str) or layout not in _ROWS:
        raise ValueError(one_of("layout", layout, LAYOUTS))
    return _ROWS[layout]


def padded_shape(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return the shape rounded up to whole tiles."""
    *stack, rows, columns = shape
    tile = math.prod(_ROWS[layout])
    return (*stack, -(-rows // tile) * tile, -(-columns // _COLUMNS) * _COLUMNS)
