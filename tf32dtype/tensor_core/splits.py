"""How a library divides k into parts."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: The parts that have one tile more than others. With "spread", part i begins with tile
#: i * tiles // parts.
More = Literal["first", "last", "spread"]


class Split(NamedTuple):
    """The parts of k: ranges that follow each other, or parts that take turns."""

    lengths: tuple[int, ...]
    #: k that a part takes before the next part's turn
    turn: int | None = None
    #: whether the last part has the k that follow the turns
    rest: bool = False

    def indices(self) -> list[NDArray[np.intp]]:
        """Return the k of each part."""
        k = sum(self.lengths)
        ends = np.cumsum(self.lengths)[:-1]
        if self.turn is None:
            return np.split(np.arange(k), ends)
        part = np.repeat(np.arange(len(self.lengths)), self.lengths)
        turns = (np.arange(k) - np.append(0, ends)[part]) // self.turn
        if self.rest:
            turns[part == len(self.lengths) - 1] = k
        place = np.empty(k, np.intp)
        place[np.lexsort((part, turns))] = np.arange(k)
        return np.split(place, ends)


def equal(k: int, length: int) -> Split:
    """Return parts of one length; the last part may be shorter."""
    return Split((length,) * ((k - 1) // length) + ((k - 1) % length + 1,))


def in_turns(k: int, parts: int, turn: int) -> Split:
    """Return parts that take so many k in turns."""
    whose = np.arange(k) // turn % parts
    return Split(tuple(np.bincount(whose, minlength=parts).tolist()), turn)


def balanced(k: int, parts: int, tile: int, which: More) -> Split:
    """Return parts of whole tiles, of which some have one more."""
    tiles = -(-k // tile)
    each, more = divmod(tiles, parts)
    begins = {
        "first": [part * each + min(part, more) for part in range(parts)],
        "last": [part * each + max(part - parts + more, 0) for part in range(parts)],
        "spread": [part * tiles // parts for part in range(parts)],
    }[which]
    ends = [begin * tile for begin in begins[1:]] + [k]
    return Split(tuple(np.diff([0, *ends]).tolist()))


# -- CPU libraries ---------------------------------------------------------------------


def packed(k: int, length: int, unroll: int) -> Split:
    """Return the blocks of k that OpenBLAS packs: whole ones, then two of one half.

    The first half is rounded up to a multiple of the unroll.
    """
    lengths = []
    while k > 0:
        take = k
        if k >= 2 * length:
            take = length
        elif k > length:
            take = -(-(k // 2) // unroll) * unroll
        lengths.append(take)
        k -= take
    return Split(tuple(lengths))


def columns(k: int, length: int) -> Split:
    """Return parts of one length, and for the rest parts of its halves: 4, 2 and 1."""
    lengths = [length] * (k // length)
    rest = k % length
    while rest:
        length //= 2
        if rest >= length:
            lengths.append(length)
            rest -= length
    return Split(tuple(lengths))


def lanes(k: int, count: int, *, rest: bool) -> Split:
    """Return the k of the lanes of vectors: k, k + count and so on.

    The k that are not a multiple of `count` are the next ones of the first lanes, or a
    part of their own.
    """
    if not rest:
        return in_turns(k, count, 1)
    return Split((k // count,) * count + (k % count,), 1, True)
