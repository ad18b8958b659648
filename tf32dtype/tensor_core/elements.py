"""Elements of a product, and the sums of parts of their k, for many splits at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .cpu_units import Product
from .epilogues import Numbers, Terms
from .splits import Split
from .ways import Order, Way, add

Array = NDArray[Any]

#: Numbers that are added at once.
_PIECE = 1 << 20
#: Bundles whose splits are added in ways of their own.
Kind = Literal["parts", "lanes"]

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
    #: what the epilogue adds and multiplies, flat
    terms: Terms
    #: factors of each part, or of all, for ways whose parts have factors; flat
    factors: tuple[tuple[Any, ...], ...]
    #: the dtype of the results
    results: np.dtype[Any]

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
        """Return the sums of parts: (splits, parts, elements); c may begin the first.

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
        """Return sums of parts that each begin with the one before, (splits, ...)."""
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
        """Return the sums of splits of as many parts in one way, (splits, elements).

        A c that the epilogue adds is not in them.
        """
        c = self.c.astype(self.wide).ravel()
        if way.chained:
            start = np.zeros_like(self.c) if way.begins == "end" else self.c
            return self.chained(splits, way.order, start)
        if len(splits[0].lengths) == 1 and way == Way():
            return self.sums(splits, with_c=True)[:, 0]
        parts = self.sums(splits, with_c=way.begins == "first part")
        return self.of_parts(list(np.moveaxis(parts, 1, 0)), way, c)

    def of_parts(self, parts: Sequence[Array], way: Way, c: Array) -> Array:
        """Return the sum of those of parts."""
        return add(parts, way, c, Numbers(self.results), self.factors)


# -- many ways at once -----------------------------------------------------------------


class Bundle(Protocol):
    """Splits with the same number of parts, which are computed together."""

    #: rank: simpler divisions have lower ones
    rank: int
    parts: int
    chains: tuple[Order, ...]
    kind: Kind

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
    kind: Kind = "parts"

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
    kind: Kind = "parts"

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
    """Yield sums of some of a bundle's splits, without a c that comes last.

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
        chain = bundle.parts == 1
        for with_c in (False, True):
            those = [
                i
                for i, way in enumerate(ways)
                if not way.chained
                and (way.begins == "first part" or (chain and way == Way())) == with_c
            ]
            if not those:
                continue
            sums = bundle.sums(table, some, with_c=with_c)
            parts = [sums[:, part] for part in range(bundle.parts)]
            for i in those:
                plain = chain and with_c
                yield (
                    i,
                    some,
                    parts[0] if plain else elements.of_parts(parts, ways[i], c),
                )
        for i, way in enumerate(ways):
            if way.chained:
                yield i, some, elements.add([bundle.split(j) for j in some], way)
