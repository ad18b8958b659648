"""Where probes stand in the tiles that an instruction multiplies.

A dot's result must not depend on its row, its column or what is beside it. So each
probe is run alone, in column 0; at all places of a tile at once; and beside others, in
places that change. What differs between these shows a wrong layout, not arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from .builder import Probes
from .units import Bits, Unit, encode, pack


class Run(Protocol):
    """D of tiles, each after a chain of instructions.

    `a` is (tiles * chain, rows, words), `b` (tiles * chain, 8, words), both packed; `c`
    and D are (tiles, rows, 8). Without scale_d wgmma's first instruction adds no C.
    """

    def __call__(
        self,
        unit: Unit,
        a: Bits,
        b: Bits,
        c: Bits,
        chain: int = 1,
        scale_d: bool = True,
    ) -> Bits:
        """Run it."""


COLUMNS = 8


class Words(NamedTuple):
    """Probes as a unit takes them: packed a and b (n, words), codes of c (n,)."""

    a: Bits
    b: Bits
    c: Bits


def words(unit: Unit, probes: Probes) -> Words:
    """Probes in the storage of a unit."""
    return Words(
        pack(encode(unit.a, probes.a)),
        pack(encode(unit.b, probes.b)),
        encode(unit.accumulator, probes.c).astype(np.uint32),
    )


def alone(run: Run, unit: Unit, x: Words, scale_d: bool = True) -> Bits:
    """Each dot in a tile of its own, in column 0; the rows take turns."""
    n = len(x.c)
    tile, row = np.arange(n), np.arange(n) % unit.rows
    a = np.zeros((n, unit.rows, unit.words), np.uint32)
    b = np.zeros((n, COLUMNS, unit.words), np.uint32)
    c = np.zeros((n, unit.rows, COLUMNS), np.uint32)
    a[tile, row], b[:, 0], c[tile, row, 0] = x
    d: Bits = run(unit, a, b, c, scale_d=scale_d)[tile, row, 0]
    return d


def everywhere(run: Run, unit: Unit, x: Words) -> Bits:
    """Each dot at all places of a tile: (n, rows, columns)."""
    n = len(x.c)
    a = np.repeat(x.a[:, None], unit.rows, 1)
    b = np.repeat(x.b[:, None], COLUMNS, 1)
    c = np.broadcast_to(x.c[:, None, None], (n, unit.rows, COLUMNS))
    return run(unit, a, b, np.ascontiguousarray(c))


def beside(run: Run, unit: Unit, x: Words) -> Bits:
    """Eight dots a tile, in as many rows and columns, which shift from tile to tile."""
    n = len(x.c)
    tile, column = np.divmod(np.arange(n), COLUMNS)
    row = (column + tile) % unit.rows
    tiles = -(-n // COLUMNS)
    a = np.zeros((tiles, unit.rows, unit.words), np.uint32)
    b = np.zeros((tiles, COLUMNS, unit.words), np.uint32)
    c = np.zeros((tiles, unit.rows, COLUMNS), np.uint32)
    a[tile, row], b[tile, column], c[tile, row, column] = x
    d: Bits = run(unit, a, b, c)[tile, row, column]
    return d


# -- chains ----------------------------------------------------------------------------

#: how many chains of how many instructions
LENGTHS = {2: 24, 3: 16, 4: 16, 8: 16, 16: 8, 64: 4}


class Chains(NamedTuple):
    """Chains of instructions on drawn probes: step s of chain i takes probe
    `first + (start[i] + s) % among`, and its c is that of step 0."""

    first: int
    among: int
    start: list[int]
    length: list[int]

    def steps(self, i: int) -> list[int]:
        """The probes of a chain."""
        at = range(self.start[i], self.start[i] + self.length[i])
        return [self.first + s % self.among for s in at]


def chains(probes: Probes) -> Chains:
    """The chains of a unit's probes."""
    at = np.flatnonzero(probes.group == "rand")
    length = [n for n, count in LENGTHS.items() for _ in range(count)]
    start = [i * 7 % len(at) for i in range(len(length))]
    return Chains(int(at[0]), len(at), start, length)


def chained(run: Run, unit: Unit, x: Words, chosen: Chains) -> Bits:
    """The results of chains, each in a tile of its own."""
    d = np.zeros(len(chosen.start), np.uint32)
    for length in LENGTHS:
        which = [i for i, found in enumerate(chosen.length) if found == length]
        n = len(which)
        a = np.zeros((n, length, unit.rows, unit.words), np.uint32)
        b = np.zeros((n, length, COLUMNS, unit.words), np.uint32)
        c = np.zeros((n, unit.rows, COLUMNS), np.uint32)
        row = np.arange(n) % unit.rows
        column = np.arange(n) % COLUMNS
        for j, i in enumerate(which):
            steps = chosen.steps(i)
            a[j, :, row[j]], b[j, :, column[j]] = x.a[steps], x.b[steps]
            c[j, row[j], column[j]] = x.c[steps[0]]
        tiles = n * length
        rows, columns = (
            a.reshape(tiles, -1, unit.words),
            b.reshape(tiles, -1, unit.words),
        )
        found = run(unit, rows, columns, c, chain=length)
        d[which] = found[np.arange(n), row, column]
    return d


def unchained(probes: Probes, chosen: Chains, i: int) -> tuple[Bits, Bits, Bits]:
    """The operands of one chain as one long dot: a and b (1, k), c (1,)."""
    steps = chosen.steps(i)
    return (
        probes.a[steps].reshape(1, -1),
        probes.b[steps].reshape(1, -1),
        probes.c[steps[:1]],
    )
