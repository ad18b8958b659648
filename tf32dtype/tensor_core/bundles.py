"""All divisions of k that `identify` tries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import get_args

import numpy as np

from .elements import Bundle, Cuts, Each
from .splits import More, Split, balanced, columns, equal, in_turns, lanes, packed
from .ways import MOST_PARTS, Order

#: Tiles are multiples of the smallest tile, or of an instruction's k if that is larger.
LEAST_TILE, LARGEST_TILE = 16, 256
#: The longest promotion that may make more parts than MOST_PARTS.
LONGEST_PROMOTION = 512
#: The most tiles for cuts at any multiple; a longer k has larger tiles.
MOST_TILES = 1024
#: The k of a block that has scales.
SCALED = 128
#: The blocks of k that CPU libraries pack: multiples of 8.
LEAST_PACKED, LARGEST_PACKED = 64, 1024
#: The most lanes of all vectors together.
MOST_LANES = 256


def whole(k: int) -> Bundle:
    """Return one chain."""
    return Each(0, 1, [Split((k,))])


def blocks(k: int) -> Bundle:
    """Return the parts that have scales of their own."""
    return Each(1, -(-k // SCALED), [equal(k, SCALED)])


@lru_cache(maxsize=16)
def bundles(k: int, depth: int) -> tuple[Bundle, ...]:
    """All splits of k for a unit whose instructions take `depth` k, none twice."""
    unit = math.lcm(LEAST_TILE, depth)
    found = [*_equal(k, unit, depth), *_in_turns(k, unit)]
    seen = {equal(k, length).lengths for length in range(unit, k, unit)}
    return (*found, *_balanced(k, unit, seen), *_anywhere(k, unit, seen))


def _by_parts(
    rank: int, splits: Sequence[Split], chains: tuple[Order, ...] = ()
) -> list[Bundle]:
    by_parts: dict[int, list[Split]] = {}
    for split in splits:
        by_parts.setdefault(len(split.lengths), []).append(split)
    return [Each(rank, parts, by_parts[parts], chains) for parts in sorted(by_parts)]


def _equal(k: int, unit: int, depth: int) -> list[Bundle]:
    """Equal parts, at tiles or not, and promotions."""
    fewest = -(-k // MOST_PARTS)
    lengths = {x for x in range(unit, k, unit) if x >= fewest}
    lengths |= {-(-k // parts) for parts in range(2, MOST_PARTS + 1)}
    lengths = {x for x in lengths if unit <= x < k}
    promotions = set(range(depth, min(LONGEST_PROMOTION + 1, k), depth)) - lengths
    few = [equal(k, x) for x in sorted(lengths)]
    ends = {split: split.lengths[0] % depth == 0 for split in few}  # as instructions do
    return [
        # Parts that are chained in ascending order are the same as one chain.
        *_by_parts(1, [split for split in few if ends[split]], ("descending",)),
        *_by_parts(1, [split for split in few if not ends[split]]),
        *_by_parts(1, [equal(k, x) for x in sorted(promotions)]),
    ]


def _in_turns(k: int, unit: int) -> list[Bundle]:
    splits = []
    for parts in range(2, MOST_PARTS + 1):
        turn = unit
        while turn <= LARGEST_TILE and parts * turn < k:
            splits.append(in_turns(k, parts, turn))
            turn *= 2
    return _by_parts(2, splits, ("ascending", "descending"))


def _balanced(k: int, unit: int, seen: set[tuple[int, ...]]) -> list[Bundle]:
    splits = []
    for tile in range(unit, LARGEST_TILE + 1, unit):
        for parts in range(2, min(MOST_PARTS, -(-k // tile)) + 1):
            for which in get_args(More):
                split = balanced(k, parts, tile, which)
                if split.lengths not in seen:
                    seen.add(split.lengths)
                    splits.append(split)
    return _as_cuts(3, splits)


def _anywhere(k: int, unit: int, seen: set[tuple[int, ...]]) -> list[Bundle]:
    """Return the splits of stream-k: parts of one length, except the first and last.

    The first part is shorter. With two parts, the cut may be at any multiple of a tile.
    """
    unit *= max(1, -(-k // (unit * MOST_TILES)))
    splits = []
    for length in range(unit, k + unit, unit):
        for first in range(unit, min(length, k), unit):
            rest = k - first
            parts = 1 + -(-rest // length)
            if parts > MOST_PARTS:
                continue
            middle = (length,) * (parts - 2)
            lengths = (first, *middle, rest - length * (parts - 2))
            if lengths not in seen:
                seen.add(lengths)
                splits.append(Split(lengths))
    return _as_cuts(4, splits)


def _as_cuts(rank: int, splits: Sequence[Split]) -> list[Bundle]:
    by_parts: dict[int, list[tuple[int, ...]]] = {}
    for split in splits:
        by_parts.setdefault(len(split.lengths), []).append(split.lengths)
    return [
        Cuts(rank, parts, np.cumsum([(0, *x) for x in by_parts[parts]], axis=1))
        for parts in sorted(by_parts)
    ]


# -- CPU libraries ---------------------------------------------------------------------


@lru_cache(maxsize=16)
def cpu_bundles(k: int, *, of_lanes: bool) -> tuple[Bundle, ...]:
    """All splits of k for a CPU library, none twice, and lanes of vectors."""
    if k == 0:
        return ()
    few = [2, 4, 8, 16, 32, *range(LEAST_PACKED, LARGEST_PACKED + 1, 8)]
    seen = dict.fromkeys(equal(k, length) for length in few if length < k)
    for length in range(LEAST_PACKED, LARGEST_PACKED + 1, 8):
        for unroll in (1, 2, 4, 8, 16, 32, 64):
            seen[packed(k, length, unroll)] = None
    for length in (2, 4, 8, 16):
        seen[columns(k, length)] = None
    seen.pop(Split((k,)), None)
    return (*_by_parts(1, [*seen]), *(_lanes(k) if of_lanes else ()))


def _lanes(k: int) -> list[Bundle]:
    counts = {
        lane * vectors for lane in (2, 4, 8, 16, 32, 64) for vectors in range(1, 9)
    }
    found: list[Bundle] = []
    for count in sorted(count for count in counts if count <= min(MOST_LANES, k)):
        found.append(Each(2, count, [lanes(k, count, rest=False)], (), "lanes"))
        if k % count > 1:
            split = lanes(k, count, rest=True)
            found.append(Each(2, count + 1, [split], (), "lanes"))
    return found
