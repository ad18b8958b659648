"""Quantize numbers in tiles; the largest magnitude of a tile gives its scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base.wording import one_of
from .._formats.quantize import quantize
from .divisions import (
    TILE_DIVISIONS,
    Divisor,
    TileDivision,
    checked_factors,
    divisor_of,
)
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
    division: TileDivision = "exact",
) -> TileArray:
    """Round numbers to codes, with a common scale for each tile of rows and columns.

    Parameters
    ----------
    x : array_like, shape (..., m, n)
        Real numbers of any builtin dtype or of one of the formats. Numbers of wider
        dtypes are first rounded to float32, to odd.
    format : str, dtype or type
        Format of the elements (default: "float8_e4m3fn"): int8 or int4; uint8 or uint4,
        with zero points; or a format of one byte or less that has a sign.
    tile : tuple of two int or None
        The rows and columns that share a scale (default: 128 of both). None means all:
        ``(1, None)`` gives one scale per row. Tiles at the ends may be smaller.
    scale_format : {"float32", "bfloat16", "float16", "float8_e8m0fnu"}
        The format of the scales.
    division : {"exact", "divide", "reciprocal", "amax"}
        How x is divided by the scale s of its tile, before the quotient is rounded to
        an element. "exact" does not round the quotient. The others compute in float32,
        as kernels do, and round each step to nearest, ties to even. "divide" computes
        x / s, "reciprocal" computes x * (1 / s), and "amax" computes x * (M / A): A is
        the largest magnitude of the tile, M the largest value of the format.

    Returns
    -------
    TileArray
        The elements and scales, with the shape of `x`.

    Raises
    ------
    ValueError
        For NaN and Inf; the message names the first one. For fewer than two axes. For
        other formats, tiles and divisions. For "amax" with scales that are not float32.
        If 1 / s or M / A is out of the range of float32.
    TypeError
        If `x` is not made of real numbers.

    See Also
    --------
    quantize : Round to blocks along one axis.
    matmul : Multiply arrays of tiles.
    TileArray.from_codes : Create an array from existing codes.

    Notes
    -----
    The scale is the tile's largest magnitude divided by the format's largest value. It
    is rounded to the nearest float32, as in DeepSeek's code. In a narrower scale format
    it is rounded up, so that no number is clipped. If all numbers are 0, the scale is
    1. An element is the number nearest to the quotient, ties to even, and at most the
    largest one.

    Elements without a sign have a zero point for each tile. Let low be the tile's
    smallest number, at most 0, and high its largest number, at least 0. The scale is
    then high - low, divided by the format's largest value. The zero point is the
    integer nearest to -low divided by the scale. An element is the number nearest to
    the quotient plus the zero point.

    Quotients rounded to float32 are often ties if x has few bits: `division` changes
    the code of about one bfloat16 value in a thousand, and of one float32 value in a
    million. If scales are powers of two, all divisions except "amax" give the same
    codes.

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
    _check_division(division, scale_format)
    numbers = to_float32(source, "raise")
    if element.has_sign:
        amax = greatest(numbers, sizes)
    else:
        below = greatest(np.maximum(-numbers, 0), sizes)
        with np.errstate(over="ignore"):
            amax = below + greatest(np.maximum(numbers, 0), sizes)
    _check_finite(source, numbers, amax)
    scales = _scales(amax, element.max, scale_format)
    zeros = None
    if not element.has_sign:
        wide = np.rint(below / scales.astype(np.float64))
        zeros = np.minimum(wide, element.max).astype(element.dtype)
    if division == "amax":
        with np.errstate(over="ignore"):
            most = np.float32(element.max)
            factors = np.divide(most, np.where(amax == 0, most, amax), dtype=np.float32)
        divisor = Divisor(np.multiply, checked_factors(factors, division))
    else:
        divisor = divisor_of(scales, division)
    codes = np.empty(source.shape, element.dtype)
    for matrix, rows in bands(source.shape):
        quotients = numbers[matrix][rows].astype(divisor.factors.dtype)
        scaled(divisor.operation, quotients, divisor.factors[matrix], rows, sizes)
        least = -element.max
        if zeros is not None:
            scaled(np.add, quotients, zeros[matrix], rows, sizes)
            least = 0
        np.clip(quotients, least, element.max, out=quotients)
        if element.is_integer:
            np.rint(quotients, out=quotients)
        codes[matrix][rows] = quotients
    return TileArray.from_codes(element, codes, scales, sizes, zero_points=zeros)


def greatest(x: NDArray[np.float32], tile: tuple[int, int]) -> NDArray[np.float32]:
    """Return the largest magnitude of each tile; NaN if the tile holds a NaN."""
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


def _check_division(division: object, scale_format: str) -> None:
    if not isinstance(division, str) or division not in TILE_DIVISIONS:
        raise ValueError(one_of("division", division, TILE_DIVISIONS))
    if division == "amax" and scale_format != "float32":
        raise ValueError(
            "scale_format must be 'float32' for division='amax', which does not use the"
            f" rounded scales; got {scale_format!r}"
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
