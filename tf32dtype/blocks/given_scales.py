"""Codes of blocks whose scales are known: of whole tiles, or divided as kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._base.wording import brief
from .._formats.quantize import OVERFLOWS, ROUNDINGS, Rounding
from .divisions import divisor_of
from .formats import Element
from .from_codes import block_scales
from .layout import Layout
from .tile_quantization import greatest
from .tiles import Tile, checked_tile

_SATURATE = OVERFLOWS.index("saturate")
#: Numbers that are worked on at a time, so that they stay in a cache.
_BAND = 1 << 17


def greatest_of_tiles(
    x: NDArray[np.float32], along: int, tile: Tile, block_size: int
) -> tuple[NDArray[np.float32], int]:
    """Return the largest magnitude of each tile in a block, and lines of a tile.

    Returns
    -------
    ndarray, shape (..., tiles across lines, tiles of a line times block_size)
        Each block has the largest magnitude of a tile first, and then zeros. NaN where
        the tile has one.
    int
        Lines that share scales.
    """
    sizes = checked_tile(tile, x.shape)
    if along < x.ndim - 2 or sizes[along - x.ndim] != block_size:
        raise ValueError(
            f"tile must be {block_size} long on the block axis, one of the last two;"
            f" got {brief(tile)} for axis {along} of shape {x.shape}"
        )
    amax = np.moveaxis(greatest(x, sizes), along, -1)
    blocks = np.zeros((*amax.shape, block_size), np.float32)
    blocks[..., 0] = amax
    other = -1 if along == x.ndim - 2 else -2
    across = min(sizes[other], max(x.shape[other], 1))
    return blocks.reshape(*amax.shape[:-1], amax.shape[-1] * block_size), across


def elements(
    plan: Layout,
    scales: NDArray[np.uint8],
    lines: NDArray[np.float32],
    division: str,
    rounding: Rounding,
    draws: NDArray[np.uint64] | None,
) -> NDArray[Any]:
    """Return the elements of lines of numbers, unpacked.

    Where a scale is zero or NaN, all elements of the block are zero.
    """
    element = plan.element
    if element.is_integer and rounding != "ties_to_even":
        raise ValueError(
            f"rounding must be 'ties_to_even' for {plan.row.name} with tile or"
            f" division; got {rounding!r}"
        )
    factors = block_scales(plan)[scales].reshape(plan.lines, plan.blocks)
    nothing = (factors == 0) | np.isnan(factors)
    divisor = divisor_of(np.where(nothing, np.float32(1), factors), division)
    found = np.empty(lines.shape, element.dtype)
    step = max(1, _BAND // max(plan.length, 1))
    for start in range(0, plan.lines, step):
        rows = slice(start, start + step)
        quotients = lines[rows].astype(divisor.factors.dtype)
        with np.errstate(all="ignore"):
            divisor.operation(
                quotients, _wide(divisor.factors[rows], plan), out=quotients
            )
        quotients[_wide(nothing[rows], plan)] = 0
        of_rows = None if draws is None else draws[rows]
        _round(quotients, element, ROUNDINGS.index(rounding), of_rows, found[rows])
    return found


def _wide(of_blocks: NDArray[Any], plan: Layout) -> NDArray[Any]:
    """Return one item for each number of a line."""
    return np.repeat(of_blocks, plan.block_size, -1)[:, : plan.length]


def _round(
    quotients: NDArray[Any],
    element: Element,
    rounding: int,
    draws: NDArray[np.uint64] | None,
    out: NDArray[Any],
) -> None:
    if element.is_integer:
        scaled = np.rint(quotients * (1 << element.fraction_bits))
        most = element.max * (1 << element.fraction_bits)
        out[...] = np.clip(scaled, -most, most)
    else:
        _core.quantize_items(quotients, out, rounding, _SATURATE, draws)
