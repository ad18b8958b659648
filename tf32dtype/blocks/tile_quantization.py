"""Numbers to tiles: the scale of each from its greatest magnitude."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.wording import one_of
from .._formats.quantize import quantize
from .lines import checked, to_float32
from .tiles import (
    SCALE_FORMATS,
    Tile,
    TileArray,
    TileElement,
    TileScaleFormat,
    bands,
    checked_element,
    checked_tile,
    grid,
    scale_dtype,
    scaled,
    tile_columns,
)


def quantize_tiles(
    x: ArrayLike,
    format: TileElement = "float8_e4m3fn",
    tile: Tile = (128, 128),
    *,
    scale_format: TileScaleFormat = "float32",
) -> TileArray:
    """Round numbers to codes, with a common scale for each tile of rows and columns.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        Real numbers of any builtin dtype or of one of the formats; wider ones are taken
        as float32, rounded to odd.
    format : str, dtype or type
        Of the elements: int8, or a format of one byte or less that has a sign.
    tile : tuple of two int or None
        Rows and columns that share a scale; None stands for all: ``(1, None)`` has a
        scale a row. Tiles at the ends may be smaller.
    scale_format : {"float32", "bfloat16", "float16", "float8_e8m0fnu"}
        Of the scales.

    Returns
    -------
    TileArray

    Raises
    ------
    ValueError
        For NaN and Inf, naming the first; for fewer than two axes; for other formats
        and tiles.
    TypeError
        If `x` is not made of real numbers.

    Notes
    -----
    The scale is the tile's greatest magnitude over the format's: the float32 nearest to
    it, as DeepSeek has it; in a narrower format the least number that is not below it,
    so that nothing is clipped; and 1 if all numbers are 0. An element is the one
    nearest to the exact x / scale, ties to even, at most the greatest. (Kernels round
    the quotient to float32 first: for a few numbers in a million that makes a tie.)

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> t = td.blocks.quantize_tiles(np.arange(512.0).reshape(2, 256), tile=(1, 128))
    >>> t
    TileArray('float8_e4m3fn', shape=(2, 256), tile=(1, 128), scale_format='float32')
    >>> t.scales.shape, float(t.dequantize()[1, 255])
    ((2, 2), 511.0)
    """
    element = checked_element(format)
    if scale_format not in SCALE_FORMATS:
        raise ValueError(one_of("scale_format", scale_format, SCALE_FORMATS))
    source = checked(x)
    sizes = checked_tile(tile, source.shape)
    numbers = to_float32(source, "raise")
    amax = _greatest(numbers, sizes)
    _check_finite(source, numbers, amax)
    scales = _scales(amax, element.max, scale_format)
    codes = np.empty(source.shape, element.dtype)
    for matrix, rows in bands(source.shape):
        quotients = numbers[matrix][rows].astype(np.float64)
        scaled(np.divide, quotients, scales[matrix], rows, sizes)
        np.clip(quotients, -element.max, element.max, out=quotients)
        if element.is_integer:
            np.rint(quotients, out=quotients)
        codes[matrix][rows] = quotients
    return TileArray.from_codes(element.dtype, codes, scales, sizes)


def _greatest(x: NDArray[np.float32], tile: tuple[int, int]) -> NDArray[np.float32]:
    """The greatest magnitude of each tile; NaN where there is one."""
    of_rows = np.empty(grid(x.shape, (1, tile[1])), np.float32)
    for matrix, rows in bands(x.shape):
        whole, rest = tile_columns(np.abs(x[matrix][rows]), tile[1])
        found = of_rows[matrix][rows]
        whole.max(2, out=found[:, : whole.shape[1]])
        if rest.size:
            rest.max(1, out=found[:, -1])
    greatest: NDArray[np.float32] = np.maximum.reduceat(
        of_rows, np.arange(0, x.shape[-2], tile[0]), axis=-2
    )
    return greatest


def _check_finite(
    x: NDArray[Any], numbers: NDArray[np.float32], amax: NDArray[np.float32]
) -> None:
    if np.isfinite(amax).all():
        return
    at = np.unravel_index(np.argmax(~np.isfinite(numbers)), x.shape)
    where = ", ".join(str(int(i)) for i in at)
    raise ValueError(
        f"x must be finite and within the range of float32; got {x[at]!s} at x[{where}]"
    )


def _scales(amax: NDArray[np.float32], most: float, scale_format: str) -> NDArray[Any]:
    exact = np.where(amax == 0, most, amax).astype(np.float64) / most
    least = np.finfo(np.float32).smallest_subnormal
    with np.errstate(over="ignore"):
        return quantize(
            np.maximum(exact, least),
            scale_dtype(scale_format),
            rounding="ties_to_even" if scale_format == "float32" else "toward_positive",
            overflow="saturate",
        )
