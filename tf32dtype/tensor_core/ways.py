"""How a library adds the sums of the parts of k."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from .epilogues import Epilogue, Numbers, Terms

Array = NDArray[Any]

Order = Literal["ascending", "descending", "pairwise"]
#: Where c is added. "sum": the sum of the parts begins with it. "first part": the
#: accumulators of the first part begin with it. "end": the epilogue adds it.
Begins = Literal["sum", "first part", "end"]
#: How the lanes of a vector are added. "halves": the upper half to the lower half, and
#: so on. "halves, pairwise": four lanes that are left are added as neighbors.
Fold = Literal["ascending", "pairwise", "halves", "halves, pairwise"]

#: The most parts; promotions may make more. The most parts whose sums are rounded to
#: the dtype of the results.
MOST_PARTS, MOST_ROUNDED = 64, 16


class Lanes(NamedTuple):
    """How a CPU library adds the lanes of several vectors of accumulators."""

    #: lanes of a vector
    width: int
    order: Fold
    #: number of vectors
    vectors: int = 1
    #: how vectors are added, before the lanes
    vector_order: Fold = "ascending"
    #: whether the halves of each vector are added first of all
    halved: bool = False

    @property
    def words(self) -> str:
        """The order in words."""
        lanes = self.width >> self.halved
        found = [f"{lanes} lanes {_FOLDED[self.order]}"]
        if self.vectors > 1:
            found.insert(0, f"{self.vectors} vectors {_FOLDED[self.vector_order]}")
        if self.halved:
            found.insert(0, f"halves of each {self.width}-lane vector")
        return ", then ".join(found)


_FOLDED: dict[Fold, str] = {
    "ascending": "ascending",
    "pairwise": "pairwise",
    "halves": "by halves",
    "halves, pairwise": "by halves, the last 4 pairwise",
}


class Way(NamedTuple):
    """A way to add the sums of parts."""

    order: Order = "ascending"
    begins: Begins = "sum"
    #: whether a part's accumulators begin with the sum of the part before
    chained: bool = False
    #: whether the sums of parts are rounded to the dtype of the results
    partials: bool = False
    #: whether the sum is rounded to that dtype after each addition
    running: bool = False
    #: how a part is added, if factors multiply it: its c is the sum before
    promotion: Epilogue | None = None
    lanes: Lanes | None = None


class Facts(NamedTuple):
    """Facts that decide which ways and epilogues differ."""

    #: whether c is not +0
    with_c: bool
    #: whether results are bfloat16 or float16, and sums are not
    narrows: bool = False
    #: ways to add a part that factors multiply: scales of blocks, or alpha on CPUs
    promotions: Sequence[Epilogue] = ()
    #: whether every part has scales of its own
    blocks: bool = False


def ways(parts: int, chains: Sequence[Order], facts: Facts) -> list[Way]:
    """Return the ways that differ; without c, the place of c makes no difference.

    Parameters
    ----------
    parts : int
        How many there are.
    chains : sequence of str
        The orders in which the unit may go from part to part.
    facts : Facts
        Facts of the problem.
    """
    with_c = facts.with_c
    ends: tuple[Begins, ...] = ("sum", "end") if with_c else ("sum",)
    scaled = [Way(begins=x, promotion=p) for p in facts.promotions for x in ends]
    if facts.blocks:
        return scaled
    if parts == 1:
        return [Way(begins=x) for x in ends]
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
    rounded = []
    if facts.narrows and parts <= MOST_ROUNDED:
        kinds = ((True, False), (True, True), (False, True))
        rounded = [
            way._replace(partials=partials, running=running)
            for (partials, running), way in product(kinds, found)
            if way.begins != "first part"
        ]
    chained = [Way(order, x, True) for x in ends for order in chains]
    return [*found, *chained, *scaled, *rounded]


def lane_ways(parts: int, *, with_c: bool) -> list[Way]:
    """Return the ways to add so many lanes, of one vector or of several."""
    folds: tuple[Fold, ...] = get_args(Fold)
    found = []
    for width in (2, 4, 8, 16, 32, 64):
        vectors, more = divmod(parts, width)
        if more or not 1 <= vectors <= 8:
            continue
        # All orders of two or three vectors are the same. Halves of vectors that are
        # then added pairwise are twice as many shorter vectors.
        first = folds[:3] if vectors > 3 and vectors % 2 == 0 else folds[:1]
        for halved, over, order in product((False, True), first, folds):
            lanes = width >> halved
            if halved and (lanes < 2 or vectors == 1 or over == "pairwise"):
                continue
            if lanes == 2 and order != "ascending":
                continue
            if lanes == 4 and order == "halves, pairwise":
                continue
            found.append(Lanes(width, order, vectors, over, halved))
    return [Way(begins="end" if with_c else "sum", lanes=lanes) for lanes in found]


def add(
    parts: Sequence[Array],
    way: Way,
    c: Array,
    using: Numbers,
    factors: Sequence[tuple[Any, ...]] = (),
) -> Array:
    """Return the sum of those of parts, each addition to nearest.

    Parameters
    ----------
    parts : sequence of ndarray
        The sums of parts.
    way : Way
        How they are added.
    c : ndarray
        The beginning of the sum, if the epilogue does not add it.
    using : Numbers
        The dtype of the results, if sums are rounded to it.
    factors : sequence of tuple
        The factors of each part, for a way with a promotion.
    """
    with np.errstate(all="ignore"):
        if way.partials:
            parts = [*using.narrow(np.stack(parts))]
        narrow = using.narrow if way.running else np.asarray
        if way.lanes:
            many = way.lanes.width * way.lanes.vectors
            total = _add_lanes(np.stack(parts[:many]), way.lanes)
            for rest in parts[many:]:
                total = total + rest
            return c + total if way.begins == "sum" else total
        if way.order == "pairwise":
            terms = list(parts)
            while len(terms) > 1:
                pairs = [
                    narrow(x + y) for x, y in zip(terms[::2], terms[1::2], strict=False)
                ]
                terms = pairs + terms[len(pairs) * 2 :]
            return terms[0]
        there = parts if way.order == "ascending" else parts[::-1]
        total = c if way.begins == "sum" else np.zeros_like(c)
        for i, part in enumerate(there):
            if way.promotion is None:
                total = narrow(total + part)
            else:
                of = factors[i if len(factors) > 1 else 0]
                total = way.promotion.apply(part, Terms(of, c=total), using)
        return total


def _add_lanes(sums: Array, lanes: Lanes) -> Array:
    """Add the sums of lanes along the first axis."""
    sums = sums.reshape(lanes.vectors, lanes.width, *sums.shape[1:])
    if lanes.halved:
        half = lanes.width // 2
        sums = sums[:, :half] + sums[:, half:]
    return _folded(_folded(sums, lanes.vector_order), lanes.order)


def _folded(terms: Array, order: Fold) -> Array:
    """Add along the first axis."""
    while len(terms) > 1:
        half = len(terms) // 2
        if order == "ascending" or len(terms) % 2:
            terms = np.concatenate([(terms[0] + terms[1])[np.newaxis], terms[2:]])
        elif order == "pairwise" or (order == "halves, pairwise" and len(terms) <= 4):
            terms = terms[::2] + terms[1::2]
        else:
            terms = terms[:half] + terms[half:]
    found: Array = terms[0]
    return found
