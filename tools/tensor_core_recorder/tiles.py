"""Where probes stand in the tiles that an instruction multiplies.

A dot's result must not depend on its row, its column or what is beside it. So each
probe is run alone, in column 0; at all places of a tile at once; and beside others, in
places that change. What differs between these shows a wrong layout, not arithmetic.
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
    """D of tiles, each after a chain of instructions.

    `a` is (tiles, chain, rows, words), `b` (tiles, chain, 8, words), both packed; `c`
    and D are (tiles, rows, 8). Without scale_d wgmma's first instruction adds no C.
    """

    def __call__(
        self, unit: Unit, a: Bits, b: Bits, c: Bits, scale_d: bool = True
    ) -> Bits:
        """Run it."""


class Words(NamedTuple):
    """Dots as a unit takes them: packed a and b (n, chain, words), codes of c (n,)."""

    a: Bits
    b: Bits
    c: Bits


def words(unit: Unit, probes: Probes) -> Words:
    """Probes in the storage of a unit."""
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
    """The results of dots that stand at these places; all others are zero."""
    tiles, chain = int(tile[-1]) + 1, x.a.shape[1]
    a = np.zeros((tiles, chain, unit.rows, unit.words), np.uint32)
    b = np.zeros((tiles, chain, COLUMNS, unit.words), np.uint32)
    c = np.zeros((tiles, unit.rows, COLUMNS), np.uint32)
    a[tile, :, row], b[tile, :, column], c[tile, row, column] = x
    d: Bits = run(unit, a, b, c, scale_d)[tile, row, column]
    return d


def alone(run: Run, unit: Unit, x: Words, scale_d: bool = True) -> Bits:
    """Each dot in a tile of its own, in column 0; the rows take turns."""
    i = np.arange(len(x.c))
    return _placed(run, unit, x, i, i % unit.rows, np.zeros_like(i), scale_d)


def beside(run: Run, unit: Unit, x: Words) -> Bits:
    """Eight dots a tile, in as many rows and columns, which shift from tile to tile."""
    tile, column = np.divmod(np.arange(len(x.c)), COLUMNS)
    return _placed(run, unit, x, tile, (column + tile) % unit.rows, column)


def everywhere(run: Run, unit: Unit, x: Words) -> Bits:
    """Each dot at all places of a tile: (n, rows, columns)."""
    a = np.repeat(x.a[:, :, None], unit.rows, 2)
    b = np.repeat(x.b[:, :, None], COLUMNS, 2)
    c = np.broadcast_to(x.c[:, None, None], (len(x.c), unit.rows, COLUMNS))
    return run(unit, a, b, c)


# -- chains ----------------------------------------------------------------------------

#: how many chains of how many instructions
LENGTHS = {2: 24, 3: 16, 4: 16, 8: 16, 16: 8, 64: 4}


def chains(probes: Probes) -> list[Places]:
    """The probes that are chained, an array of (chains, length) for each length.

    Step s of chain i is the (7 i + s)th of the drawn ones, these being a ring; i counts
    chains of all lengths. A chain begins with the c of its first probe.
    """
    drawn = np.flatnonzero(probes.group == "rand")
    found, first = [], 0
    for length, count in LENGTHS.items():
        i = first + np.arange(count)
        found.append(drawn[(7 * i[:, None] + np.arange(length)) % len(drawn)])
        first += count
    return found


def chained(run: Run, unit: Unit, x: Words, chosen: list[Places]) -> Bits:
    """The results of chains, each in a tile of its own."""
    d = []
    for steps in chosen:
        i = np.arange(len(steps))
        operands = Words(x.a[steps, 0], x.b[steps, 0], x.c[steps[:, 0]])
        d.append(_placed(run, unit, operands, i, i % unit.rows, i % COLUMNS))
    return np.concatenate(d)
