"""All ways that `identify` tries: libraries divide k into parts and add their sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: A function of one model that returns a @ b with accumulators that begin with c.
Product = Callable[[Array, Array, Array], Array]

Order = Literal["ascending", "descending", "pairwise"]
#: The parts that have one tile more than others. With "spread", part i begins with tile
#: i * tiles // parts.
More = Literal["first", "last", "spread"]
#: Where c is added. "sum": the sum of the parts begins with it. "first part": the
#: accumulators of the first part begin with it. "end": it is added last.
Begins = Literal["sum", "first part", "end"]

#: The most parts; promotions may make more.
MOST_PARTS = 64
#: Tiles are multiples of the smallest tile, or of an instruction's k if that is larger.
LEAST_TILE, LARGEST_TILE = 16, 256
#: The longest promotion that may make more parts than MOST_PARTS.
LONGEST_PROMOTION = 512
#: The most tiles for cuts at any multiple; a longer k has larger tiles.
MOST_TILES = 1024
_PIECE = 1 << 22  # numbers that are added at once

# -- ways to cut -----------------------------------------------------------------------


class Split(NamedTuple):
    """The parts of k: ranges that follow each other, or parts that take turns."""

    lengths: tuple[int, ...]
    #: k that a part takes before the next part's turn
    turn: int | None = None

    def indices(self) -> list[NDArray[np.intp]]:
        """Return the k of each part."""
        k = sum(self.lengths)
        if self.turn is None:
            return np.split(np.arange(k), np.cumsum(self.lengths)[:-1])
        parts = len(self.lengths)
        rounds = -(-k // (parts * self.turn))
        whole = np.arange(rounds * parts * self.turn).reshape(rounds, parts, -1)
        return [part[part < k] for part in whole.swapaxes(0, 1).reshape(parts, -1)]


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


# -- ways to add -----------------------------------------------------------------------


class Way(NamedTuple):
    """A way to add the sums of parts."""

    order: Order = "ascending"
    begins: Begins = "sum"
    #: whether a part's accumulators begin with the sum of the part before
    chained: bool = False


def ways(parts: int, chains: Sequence[Order], *, with_c: bool) -> list[Way]:
    """Return the ways that differ; without c, the place of c makes no difference.

    Parameters
    ----------
    parts : int
        How many there are.
    chains : sequence of str
        The orders in which the unit may go from part to part.
    with_c : bool
        Whether c is not +0.
    """
    if parts == 1:
        return [Way(), *([Way(begins="end")] if with_c else [])]
    orders: list[Order] = ["ascending"]
    if parts > 2:
        orders.append("descending")
    if parts > 3 and parts <= MOST_PARTS:
        orders.append("pairwise")
    found = [Way("ascending")]
    if with_c:
        found.append(Way("descending"))
        found += [Way(o, begins) for begins in ("first part", "end") for o in orders]
    else:
        found += [Way(order) for order in orders[1:]]
    begins: tuple[Begins, ...] = ("sum", "end") if with_c else ("sum",)
    return found + [Way(order, x, True) for x in begins for order in chains]


def add(parts: Sequence[Array], way: Way, c: Array) -> Array:
    """One sum of those of parts, each addition to nearest; c is +0 where it is in."""
    with np.errstate(all="ignore"):
        if way.order == "pairwise":
            terms = list(parts)
            while len(terms) > 1:
                pairs = [x + y for x, y in zip(terms[::2], terms[1::2], strict=False)]
                terms = pairs + terms[len(pairs) * 2 :]
            total = terms[0]
        else:
            there = parts if way.order == "ascending" else parts[::-1]
            total = c if way.begins == "sum" else np.zeros_like(c)
            for part in there:
                total = total + part
        return total + c if way.begins == "end" else total


# -- elements of a product -------------------------------------------------------------


@dataclass(frozen=True)
class Elements:
    """Operands of products (stack, m, k) @ (stack, k, n), and initial accumulators."""

    a: Array
    b: Array
    #: initial accumulators, of the accumulator's dtype
    c: Array
    product: Product
    #: k of an instruction
    depth: int

    @property
    def wide(self) -> np.dtype[Any]:
        """The dtype that sums of parts are added in."""
        return np.promote_types(self.c.dtype, np.float32)

    def of(self, ks: Array, c: Array | None) -> Array:
        """Return the sums of the k of parts of one length, (parts, length)."""
        shape = len(ks), *self.c.shape
        start = np.zeros(shape, self.c.dtype) if c is None else c[np.newaxis]
        a, b = np.moveaxis(self.a[..., ks], 2, 0), self.b[:, ks].swapaxes(0, 1)
        return self.product(a, b, start)

    def sums(self, splits: Sequence[Split], *, with_c: bool) -> Array:
        """The sums of parts: (splits, parts, elements); c begins the first, or none.

        The splits have as many parts. Those of one length are computed together.
        """
        parts = len(splits[0].lengths)
        found = np.empty((len(splits), parts, self.c.size), self.wide)
        ks = [part for split in splits for part in split.indices()]
        lengths = np.array([len(part) for part in ks])
        begins = np.arange(len(ks)) % parts == 0 if with_c else np.zeros(len(ks), bool)
        for length in np.unique(lengths):
            for c in (None, self.c):
                which = np.flatnonzero((lengths == length) & (begins != (c is None)))
                if len(which):
                    sums = self.of(np.stack([ks[i] for i in which]), c)
                    flat = found.reshape(-1, self.c.size)
                    flat[which] = sums.reshape(len(which), -1)
        return found

    def chained(self, splits: Sequence[Split], order: Order, c: Array) -> Array:
        """The sums of parts of which each begins with the one before, (splits, ...)."""
        parts = [
            split.indices()[:: 1 if order == "ascending" else -1] for split in splits
        ]
        whole = all(len(k) % self.depth == 0 for ks in parts for k in ks[:-1])
        if whole:  # as a chain is that goes from one k to any other
            found = self.of(np.stack([np.concatenate(ks) for ks in parts]), c)
        else:
            found = np.empty((len(splits), *self.c.shape), self.c.dtype)
            for i, ks in enumerate(parts):
                total = c
                for k in ks:
                    total = self.of(k[np.newaxis], total)[0]
                found[i] = total
        return found.astype(self.wide).reshape(len(splits), -1)

    def add(self, splits: Sequence[Split], way: Way) -> Array:
        """Return the sums of splits of as many parts in one way, (splits, elements)."""
        c = self.c.astype(self.wide).ravel()
        begins = way.begins != "end"
        if way.chained:
            start = self.c if begins else np.zeros_like(self.c)
            total = self.chained(splits, way.order, start)
            return total if begins else add([total], Way(begins="end"), c)
        if len(splits[0].lengths) == 1 and begins:
            return self.sums(splits, with_c=True)[:, 0]
        parts = self.sums(splits, with_c=way.begins == "first part")
        return add(list(np.moveaxis(parts, 1, 0)), way, c)


# -- many ways at once -----------------------------------------------------------------


class Bundle(Protocol):
    """Splits with the same number of parts, which are computed together."""

    #: rank: simpler divisions have lower ones
    rank: int
    parts: int
    chains: tuple[Order, ...]

    def __len__(self) -> int: ...
    def split(self, which: int) -> Split: ...
    def pairs(self, which: Array) -> Array: ...
    def sums(self, table: Table, which: Array, *, with_c: bool) -> Array: ...


@dataclass(frozen=True)
class Each(Bundle):
    """Splits that are computed one by one."""

    rank: int
    parts: int
    splits: Sequence[Split]
    chains: tuple[Order, ...] = ()

    def __len__(self) -> int:
        return len(self.splits)

    def split(self, which: int) -> Split:
        """Return one of them."""
        return self.splits[which]

    def pairs(self, which: Array) -> Array:
        """Return no pairs: these splits need no table."""
        return np.empty((0, 2), np.int64)

    def sums(self, table: Table, which: Array, *, with_c: bool) -> Array:
        """Return the sums of parts, of shape (splits, parts, elements)."""
        return table.elements.sums([self.splits[i] for i in which], with_c=with_c)


@dataclass(frozen=True)
class Cuts(Bundle):
    """Splits at multiples of a unit, from a table of sums of stretches."""

    rank: int
    parts: int
    #: cuts of shape (splits, parts + 1), from 0 to k
    bounds: Array
    chains: tuple[Order, ...] = ()

    def __len__(self) -> int:
        return len(self.bounds)

    def split(self, which: int) -> Split:
        """Return one of them."""
        return Split(tuple(np.diff(self.bounds[which]).tolist()))

    def pairs(self, which: Array) -> Array:
        """First and last k of all parts."""
        bounds = self.bounds[which]
        both = np.stack([bounds[:, :-1], bounds[:, 1:]], axis=-1)
        return np.unique(both.reshape(-1, 2), axis=0)

    def sums(self, table: Table, which: Array, *, with_c: bool) -> Array:
        """Return the sums of parts, of shape (splits, parts, elements)."""
        bounds = self.bounds[which]
        return table.find(bounds[:, :-1], bounds[:, 1:], with_c=with_c)


class Table:
    """The sums of stretches of k: chains of which later ones continue shorter ones.

    That holds as an instruction ends wherever a stretch does.
    """

    def __init__(self, elements: Elements, pairs: Array) -> None:
        self.elements = elements
        self._far = int(pairs[:, 1].max(initial=0)) + 1
        self._c = bool(elements.c.tobytes().strip(b"\0"))
        # A range from -1 means a range from 0 whose accumulators begin with c.
        of_c = pairs[pairs[:, 0] == 0] - [1, 0]
        pairs = np.concatenate([pairs, of_c]) if self._c else pairs
        self._codes = np.unique((pairs[:, 0] + 1) * self._far + pairs[:, 1])
        shape = len(self._codes), elements.c.size
        self._sums = np.empty(shape, elements.wide)
        if len(pairs):
            self._walk()

    def find(self, first: Array, last: Array, *, with_c: bool) -> Array:
        """Return the sums of stretches, with an axis of elements more."""
        first = np.where((first == 0) & (with_c and self._c), -1, first)
        which = np.searchsorted(self._codes, (first + 1) * self._far + last)
        found: Array = self._sums[which]
        return found

    def _walk(self) -> None:
        elements = self.elements
        starts, ends = np.divmod(self._codes, self._far)
        starts -= 1
        firsts = np.unique(starts)
        lasts = np.array([ends[starts == first].max() for first in firsts])
        begins = np.maximum(firsts, 0)
        events = np.unique([*begins, *ends])
        stack, m, n = elements.c.shape
        active = np.empty(0, np.intp)  # of firsts
        states = np.empty((stack, 0, m, n), elements.c.dtype)
        for here, there in pairwise(events):
            new = np.flatnonzero(begins == here)
            fresh = np.zeros((stack, len(new), m, n), elements.c.dtype)
            fresh[:, firsts[new] == -1] = elements.c[:, np.newaxis]
            active = np.concatenate([active, new])
            states = np.concatenate([states, fresh], axis=1)
            if not len(active):
                continue
            a = elements.a[:, np.newaxis, :, here:there]
            many = np.broadcast_to(a, (stack, len(active), m, there - here))
            states = elements.product(
                many.reshape(stack, -1, there - here),
                elements.b[:, here:there],
                states.reshape(stack, -1, n),
            ).reshape(states.shape)
            codes = (firsts[active] + 1) * self._far + there
            which = np.searchsorted(self._codes, codes)
            which[which == len(self._codes)] = 0
            known = self._codes[which] == codes
            found = np.moveaxis(states[:, known], 1, 0)
            self._sums[which[known]] = found.reshape(len(found), -1)
            rest = lasts[active] > there
            active, states = active[rest], states[:, rest]


def evaluate(
    bundle: Bundle, ways: Sequence[Way], table: Table, which: Array
) -> Iterator[tuple[int, Array, Array]]:
    """Sums of some of a bundle's splits, piece by piece.

    Yields
    ------
    int, ndarray, ndarray
        Which of the ways, which of the splits, and their sums: (splits, elements).
    """
    elements = table.elements
    c = elements.c.astype(elements.wide).ravel()
    numbers = max(bundle.parts * c.size, elements.a.size + elements.b.size, 1)
    size = max(1, _PIECE // numbers)
    for first in range(0, len(which), size):
        some = which[first : first + size]
        for with_c in (False, True):
            those = [
                i
                for i, way in enumerate(ways)
                if not way.chained and (way.begins == "first part") == with_c
            ]
            if not those:
                continue
            sums = bundle.sums(table, some, with_c=with_c)
            parts = [sums[:, part] for part in range(bundle.parts)]
            for i in those:
                yield i, some, add(parts, ways[i], c)
        for i, way in enumerate(ways):
            if way.chained:
                yield i, some, elements.add([bundle.split(j) for j in some], way)


# -- all that is tried -----------------------------------------------------------------


def whole(k: int) -> Bundle:
    """Return one chain."""
    return Each(0, 1, [Split((k,))])


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
