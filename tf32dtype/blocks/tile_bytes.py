"""An array of tiles as facts and bytes: its codes, then its scales."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._base.wording import one_of
from .layout import checked_shape
from .tiles import (
    SCALE_FORMATS,
    TileArray,
    checked_element,
    checked_tile,
    grid,
    scale_dtype,
)

#: Format, shape, tile and the format of scales.
TileFacts = tuple[str, tuple[int, ...], tuple[int, int], str]


def facts_of(array: TileArray) -> TileFacts:
    """Return the arguments of `restore` besides the bytes.

    Raises
    ------
    ValueError
        For an array with zero points or biases.
    """
    for name in ("zero_points", "biases"):
        if getattr(array, name) is not None:
            raise ValueError(
                f"an array of tiles with {name} cannot be stored as facts and bytes:"
                " save it with td.safetensors.save, or the values (dequantize())"
            )
    return array.format, array.shape, array.tile, array.scale_format


def bytes_of(array: TileArray) -> NDArray[np.uint8]:
    """Return all bytes, scales little-endian."""
    parts = (array.elements, _little(array.scales))
    return np.concatenate([np.frombuffer(part.tobytes(), np.uint8) for part in parts])


def restore(facts: TileFacts, buffer: NDArray[np.uint8]) -> TileArray:
    """Return the array of these facts and bytes, which it views.

    Raises
    ------
    ValueError, TypeError
        If they do not make an array.
    """
    format, given, tile, scale_format = facts
    element, shape = checked_element(format), checked_shape(given)
    if scale_format not in SCALE_FORMATS:
        raise ValueError(one_of("scale_format", scale_format, SCALE_FORMATS))
    scale = scale_dtype(scale_format)
    sizes = checked_tile(tile, shape)
    of_scales = grid(shape, sizes)
    codes = math.prod(shape)
    needed = codes + math.prod(of_scales) * scale.itemsize
    if buffer.dtype != np.uint8 or buffer.shape != (needed,):
        raise ValueError(
            f"buffer must hold {needed} bytes along one axis for {element.name} tiles"
            f" of shape {shape}; got shape {buffer.shape}"
        )
    scales = buffer[codes:].view(scale.newbyteorder("<")).reshape(of_scales)
    items = buffer[:codes].reshape(shape)
    if element.is_integer:
        items = items.view(element.dtype)
    return TileArray.from_codes(element, items, scales, sizes)


def _little(x: NDArray[Any]) -> NDArray[Any]:
    return x.astype(x.dtype.newbyteorder("<"), copy=False)
