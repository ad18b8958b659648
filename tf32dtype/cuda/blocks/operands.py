"""Operands of products of arrays of blocks, and how they lie."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from ...blocks.formats import BlockFormat, BlockSize, ScaleFormat
from ...blocks.layout import Layout
from .._runtime.backend import KEPT, Shape


class Operand(NamedTuple):
    """Rows of a or columns of b: lines of blocks, or of float32 numbers."""

    #: the first code of each block (..., lines, blocks), or numbers (..., lines, k)
    hi: Any
    lo: Any
    #: float32 (..., blocks, levels * pitch); None: numbers
    scales: Any
    layout: Any
    k: int

    @property
    def lines(self) -> int:
        return int(self.hi.shape[-2])

    @property
    def batch(self) -> tuple[int, ...]:
        return tuple(self.hi.shape[:-2])

    @property
    def names(self) -> tuple[str | None, str | None]:
        """Of the elements of both levels."""
        if self.layout is None:
            return None, None
        return self.layout.row.element, self.layout.row.residual


class Lines(NamedTuple):
    """How an operand of three axes lies, which plans are made of."""

    names: tuple[str | None, str | None]
    levels: int  #: 0: of numbers
    block: int  #: how many numbers, 0: there are none
    hi: Shape  #: strides
    lo: Shape | None
    scales: int  #: the stack's stride in bytes
    width: int  #: scales of a block, of all lines


def lines_of(x: Operand) -> Lines:
    """How an operand lies."""
    if x.layout is None:
        return Lines(x.names, 0, 0, x.hi.strides, None, 0, 0)
    lo = None if x.lo is None else x.lo.strides
    levels, block = x.layout.row.levels, x.layout.block_size
    scales = x.scales
    stack, width = scales.strides[0], scales.shape[-1]
    return Lines(x.names, levels, block, x.hi.strides, lo, stack, width)


@lru_cache(maxsize=KEPT)
def places_of(
    row: BlockFormat,
    shape: Shape,
    axis: int,
    block: BlockSize,
    scale_format: ScaleFormat,
) -> tuple[tuple[int, Shape, Shape], ...]:
    """Return where a buffer has the first codes, the scales and the first residuals.

    Each has its first byte, shape and strides, of one code in each block. A vector is
    one line.
    """
    found, first = [], 0
    plan = Layout(row, shape, axis, block, scale_format, 1)
    for part, whole in enumerate(plan.shapes):
        steps = tuple(math.prod(whole[i + 1 :]) for i in range(len(whole)))
        if part == 1:
            found.append((first, whole, steps))
        elif len(shape) == 1:
            found.append((first, (1, *whole[:-1]), (0, *steps[:-1])))
        else:
            found.append((first, whole[:-1], steps[:-1]))
        first += math.prod(whole)
    return tuple(found)
