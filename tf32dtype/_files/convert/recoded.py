"""Change the element format of weights with scales without changing values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...blocks.array import BlockArray
from ...blocks.recoding import recode
from ...blocks.tiles import Tile, TileArray, checked_element, checked_tile


def recoded(array: Any, format: str, tile: Tile) -> TileArray | None:
    """Change the elements of an array to a format exactly.

    Parameters
    ----------
    array : ndarray, BlockArray or TileArray
    format : str
        The format of the elements of the result.
    tile : tuple of two int or None
        The tiles of the result. If tiles of `array` are larger, scales are repeated.

    Returns
    -------
    TileArray or None
        The array with float32 scales. None if the array has no scales, if a tile would
        have several scales, or if the format cannot represent a value.
    """
    if isinstance(array, np.ndarray):
        return None
    try:
        found = recode(_tiles(array), checked_element(format).dtype)
        sizes = checked_tile(tile, found.shape)
        rows, columns = (
            _repeated(own, size, length)
            for own, size, length in zip(
                found.tile, sizes, found.shape[-2:], strict=True
            )
        )
        scales = found.scales[..., rows[:, None], columns].astype(np.float32)
        return TileArray.from_codes(found.elements.dtype, found.elements, scales, sizes)
    except ValueError:
        return None


def _tiles(array: BlockArray | TileArray) -> TileArray:
    if isinstance(array, TileArray):
        return array
    if array.residuals is not None or array.axis != array.ndim - 1 or array.ndim < 2:
        raise ValueError("array must have blocks of one level along the last axis")
    format, scales = array.elements.dtype, array.block_scales
    return TileArray.from_codes(format, array.elements, scales, (1, array.block_size))


def _repeated(own: int, size: int, length: int) -> Any:
    """Return the index of the old tile for each new tile along an axis."""
    if own % size and own < length:
        raise ValueError(f"tiles of {own} must be multiples of {size}")
    return np.arange(0, length, size) // own
