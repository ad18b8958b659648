"""Operands of products of arrays of blocks, and their memory layout."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from ...blocks.formats import BlockFormat, BlockSize, ScaleFormat
from ...blocks.layout import Layout
from .._matmul.tile_options import Matrices
from .._runtime.backend import KEPT, Shape, View

#: The terms of a block, as pairs of levels of a and b; 1 means residuals.
Levels = tuple[tuple[int, int], ...]


class Writer(Protocol):
    """A plan of a product, called with `Operand.arrays` of a and b, and the result."""

    def __call__(self, *arrays: View) -> None: ...


class Operand(NamedTuple):
    """Rows of a or columns of b: lines of blocks, or of float32 numbers."""

    #: first code of each block (..., lines, blocks), or float32 values (..., lines, k)
    hi: Any
    lo: Any  #: first residual of each block, or None
    #: float32 (..., blocks, levels * pitch); None for an array of float32
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
        """Return the names of the element and of the residual; None without them."""
        if self.layout is None:
            return None, None
        return self.layout.row.element, self.layout.row.residual

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Return what kernels are given: codes, residuals and scales.

        Codes stand in for residuals and scales that the operand does not have.
        """
        lo, scales = (self.hi if x is None else x for x in (self.lo, self.scales))
        return self.hi, lo, scales


class Lines(NamedTuple):
    """The facts and the memory layout of an operand, from which plans are made."""

    names: tuple[str | None, str | None]  #: as in `Operand`
    levels: int  #: 1, or 2 with residuals; 0 for an array of float32
    block: int  #: block size; 0 for an array of float32
    k: int
    hi: Matrices
    lo: Matrices  #: that of `hi` without residuals
    scales: Matrices  #: that of `hi` for an array of float32

    @property
    def arrays(self) -> tuple[Matrices, Matrices, Matrices]:
        return self.hi, self.lo, self.scales


def lines_of(x: Operand) -> Lines:
    """Return the facts and the memory layout of an operand."""
    levels, block = 0, 0
    if x.layout is not None:
        levels, block = x.layout.row.levels, x.layout.block_size
    return Lines(x.names, levels, block, x.k, *map(Matrices.of, x.arrays))


@lru_cache(maxsize=KEPT)
def places_of(
    row: BlockFormat,
    shape: Shape,
    axis: int,
    block: BlockSize,
    scale_format: ScaleFormat,
) -> tuple[tuple[int, Shape, Shape], ...]:
    """Return the places of first codes, scales and first residuals in a buffer.

    Each place is an offset in bytes, a shape and strides. Codes and residuals have one
    byte per block, the first one. A vector is one line.
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
