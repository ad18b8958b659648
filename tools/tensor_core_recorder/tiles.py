"""Place probes in the tiles that an instruction multiplies.

The result of a dot product must not depend on its row, its column or its neighbors.
Therefore each probe runs in three ways: as the only one of a tile, in column 0; at all
positions of a tile at once; and with other probes, at changing positions. A difference
between these results shows a wrong layout, not another arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .instructions import Bits, Unit, encode, pack
from .operand_builder import Probes

COLUMNS = 8

Places = NDArray[np.intp]


class Run(Protocol):
    """Compute D of tiles, each by a chain of instructions.

    `a` is (tiles, chain, rows, words), `b` is (tiles, chain, 8, words), both packed.
    `c` and D are (tiles, rows, 8). Without scale_d wgmma's first instruction does not
    add C.
    """

    def __call__(
        self, unit: Unit, a: Bits, b: Bits, c: Bits, scale_d: bool = True
    ) -> Bits:
        """Run the chains and return D."""


class Words(NamedTuple):
    """Dot products for a unit: packed a and b (n, chain, words), codes of c (n,)."""

    a: Bits
    b: Bits
    c: Bits


def words(unit: Unit, probes: Probes) -> Words:
    """Convert probes to the storage of a unit."""
    return Words(
        pack(encode(unit.a, probes.a))[:, None],
        pack(encode(unit.b, probes.b))[:, None],
        encode(unit.accumulator, probes.c).astype(np.uint32),
    )


def _placed(
    run: Run,
    unit: Unit,
    x: Words,
    tile: Places,
    row: Places,
    column: Places,
    scale_d: bool = True,
) -> Bits:
    """Return the results of dots at these positions; all other operands are zero."""
    tiles, chain = int(tile[-1]) + 1, x.a.shape[1]
    a = np.zeros((tiles, chain, unit.rows, unit.words), np.uint32)
    b = np.zeros((tiles, chain, COLUMNS, unit.words), np.uint32)
    c = np.zeros((tiles, unit.rows, COLUMNS), np.uint32)
    a[tile, :, row], b[tile, :, column], c[tile, row, column] = x
    d: Bits = run(unit, a, b, c, scale_d)[tile, row, column]
    return d


def alone(run: Run, unit: Unit, x: Words, scale_d: bool = True) -> Bits:
    """Run each dot in its own tile, in column 0; the row changes from tile to tile."""
    i = np.arange(len(x.c))
    return _placed(run, unit, x, i, i % unit.rows, np.zeros_like(i), scale_d)


def beside(run: Run, unit: Unit, x: Words) -> Bits:
    """Run eight dots per tile, in different rows and columns; rows shift by tile."""
    tile, column = np.divmod(np.arange(len(x.c)), COLUMNS)
    return _placed(run, unit, x, tile, (column + tile) % unit.rows, column)


def everywhere(run: Run, unit: Unit, x: Words) -> Bits:
    """Run each dot at all positions of a tile; return (n, rows, columns) results."""
    a = np.repeat(x.a[:, :, None], unit.rows, 2)
    b = np.repeat(x.b[:, :, None], COLUMNS, 2)
    c = np.broadcast_to(x.c[:, None, None], (len(x.c), unit.rows, COLUMNS))
    return run(unit, a, b, c)


# -- chains ----------------------------------------------------------------------------

#: the number of chains for each number of instructions in a chain
LENGTHS = {2: 24, 3: 16, 4: 16, 8: 16, 16: 8, 64: 4}


def chains(probes: Probes) -> list[Places]:
    """Return the indices of the chained probes, (chains, length) for each length.

    Step s of chain i is the random probe 7 i + s modulo their number. The index i
    counts chains of all lengths. A chain begins with the c of its first probe.
    """
    drawn = np.flatnonzero(probes.group == "rand")
    found, first = [], 0
    for length, count in LENGTHS.items():
        i = first + np.arange(count)
        found.append(drawn[(7 * i[:, None] + np.arange(length)) % len(drawn)])
        first += count
    return found


def chained(run: Run, unit: Unit, x: Words, chosen: list[Places]) -> Bits:
    """Run the chains, each in its own tile, and return their results."""
    d = []
    for steps in chosen:
        i = np.arange(len(steps))
        operands = Words(x.a[steps, 0], x.b[steps, 0], x.c[steps[:, 0]])
        d.append(_placed(run, unit, operands, i, i % unit.rows, i % COLUMNS))
    return np.concatenate(d)
