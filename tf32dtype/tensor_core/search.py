"""The search of `identify`: try all hypotheses, first on few elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bundles import blocks, bundles, cpu_bundles, whole
from .cpu_units import CpuUnit
from .elements import Bundle, Each, Elements, Table, evaluate
from .epilogues import Epilogue, Numbers, as_results
from .hypotheses import Entry, Hypothesis
from .models import Model
from .problem import BLOCK, Problem
from .ways import Facts, Way, lane_ways, ways

Array = NDArray[Any]

#: Numbers of elements that ways are tried on first. The ways that are left are then
#: tried on all elements.
_FIRST = (8, 128)
#: One chain is tried on a sample of about this number of elements, or on all of fewer
#: elements. The nearest other hypotheses are then tried on fewer of the sample.
_SAMPLE, _FEWER = 1 << 16, 1 << 12
#: The number of best ways per model that are tried on the sample in any case.
_NEAR = 3
#: The most numbers in a table of sums; the most elements times ways to compare; numbers
#: that are rounded and compared at once.
_TABLE, _WORK, _PIECE = 1 << 22, 1 << 31, 1 << 19
#: If more hypotheses are left after a block of elements, no more blocks are compared.
#: If more than a few are left, no more than _WORK is done.
_MANY, _FEW = 64, 4
#: The search on 8-bit results stops if so many hypotheses give the elements on which
#: models differ most.
_ENOUGH = 100
#: The search does not stop if hypotheses per model times results are at most this.
_CHEAP = 1 << 18


class _Ending(NamedTuple):
    """An epilogue, and how results are rounded."""

    epilogue: Epilogue
    saturates: bool


class _Rows(NamedTuple):
    """The splits of a bundle that are added in one way: consecutive hypotheses."""

    bundle: Bundle
    way: Way
    first: int

    @property
    def all(self) -> slice:
        """The places of the hypotheses."""
        return slice(self.first, self.first + len(self.bundle))


class _Tried:
    """Hypotheses of one model: splits and ways times epilogues, with counts."""

    def __init__(
        self, found: Sequence[Bundle], facts: Facts, endings: Sequence[_Ending]
    ) -> None:
        self.endings = endings
        self.of: list[tuple[Bundle, list[_Rows]]] = []
        fits, lengths, first = [], [], 0
        for bundle in found:
            rows = []
            if bundle.kind == "lanes":
                count = bundle.parts - bundle.split(0).rest
                tried = lane_ways(count, with_c=facts.with_c)
            else:
                tried = ways(bundle.parts, bundle.chains, facts)
            for way in tried:
                rows.append(_Rows(bundle, way, first))
                fits.append([_fits(way, e.epilogue, facts) for e in endings])
                lengths.append(len(bundle))
                first += len(bundle)
            self.of.append((bundle, rows))
        #: hypotheses that explain all results so far, of shape (ways, endings)
        self.alive = np.repeat(
            np.array(fits, bool).reshape(-1, len(endings)), lengths, axis=0
        )
        #: hypotheses that do not explain all, and are counted nevertheless
        self.kept = np.zeros(self.alive.shape, bool)
        self.explains = np.zeros(self.alive.shape, np.int64)
        self.compared = np.zeros(self.alive.shape, np.int64)
        self.count = int(self.alive.sum())

    @property
    def rows(self) -> Iterator[_Rows]:
        """All rows."""
        for _, rows in self.of:
            yield from rows

    def left(self) -> int:
        """Return the number of hypotheses that explain all results so far."""
        return int(self.alive.sum())

    def _which(self) -> list[Array]:
        """Return the splits of each bundle that are still tried."""
        live = (self.alive | self.kept).any(axis=1)
        found, first = [], 0
        for bundle, rows in self.of:
            last = first + len(rows) * len(bundle)
            of_ways = live[first:last].reshape(len(rows), -1)
            found.append(np.flatnonzero(of_ways.any(axis=0)))
            first = last
        return found

    def cost(self, k: int) -> tuple[int, int]:
        """Return how many sums of stretches are needed, and products of an element."""
        stretches = cost = 0
        for (bundle, _), which in zip(self.of, self._which(), strict=True):
            stretches += len(bundle.pairs(which))
            each = bundle.parts + k * isinstance(bundle, Each)
            cost += len(which) * each
        return stretches, cost + k * (stretches > 0)

    def compare(self, elements: Elements, d: Array) -> None:
        """Count the elements that each remaining hypothesis explains."""
        there = [(*of, which) for of, which in zip(self.of, self._which(), strict=True)]
        pairs = [bundle.pairs(which) for bundle, _, which in there]
        table = Table(elements, np.concatenate(pairs))
        live = self.alive | self.kept
        waiting: list[tuple[Array, Array]] = []
        size = 0
        for bundle, rows, which in there:
            some = [row for row in rows if live[row.all].any()]
            tried = [row.way for row in some]
            for i, splits, totals in evaluate(bundle, tried, table, which):
                waiting.append((some[i].first + splits, totals))
                size += totals.size
                if size > _PIECE:
                    self._count(waiting, elements, d, live)
                    waiting, size = [], 0
        if waiting:
            self._count(waiting, elements, d, live)

    def _count(
        self,
        waiting: Sequence[tuple[Array, Array]],
        elements: Elements,
        d: Array,
        live: Array,
    ) -> None:
        places = np.concatenate([place for place, _ in waiting])
        totals = np.concatenate([total for _, total in waiting])
        for e, ending in enumerate(self.endings):
            fit = np.flatnonzero(live[places, e])
            if not len(fit):
                continue
            some = totals if len(fit) == len(totals) else totals[fit]
            results = results_of(some, ending, elements)
            self.explains[places[fit], e] += _equal(results, d).sum(axis=1)
            self.compared[places[fit], e] += d.size

    def drop(self) -> None:
        """Drop what does not explain all; if nothing does, keep the nearest."""
        self.alive &= self.explains == self.compared
        if self.left() or self.kept.any():
            return
        share = self.explains / np.maximum(self.compared, 1)
        best = np.argsort(-share, axis=None, kind="stable")[:_NEAR]
        self.kept.flat[best[self.explains.flat[best] > 0]] = True

    def forget(self, those: Array) -> None:
        """Set the counts of those to 0."""
        self.explains[those] = 0
        self.compared[those] = 0


def _fits(way: Way, epilogue: Epilogue, facts: Facts) -> bool:
    """Return whether a way leaves to an epilogue what it adds and multiplies."""
    in_parts = way.promotion is not None and not facts.blocks
    return (way.begins == "end", in_parts) == (
        epilogue.adds_c,
        epilogue.factors == "none",
    )


def results_of(totals: Array, ending: _Ending, elements: Elements) -> Array:
    """Return the results of sums."""
    using = Numbers(elements.results, ending.saturates)
    with np.errstate(all="ignore"):
        totals = ending.epilogue.apply(totals, elements.terms, using)
    return as_results(totals, elements.results, ending.saturates)


def _equal(product: Array, results: Array) -> Array:
    """Return where all bits are equal; any two NaN count as equal."""
    bits = f"u{product.dtype.itemsize}"
    same: Array = product.view(bits) == results.view(bits)
    unlike = np.flatnonzero(~same.all(axis=0))
    if len(unlike):
        nan = np.isnan(results[unlike])
        both = unlike[nan]
        if len(both):
            same[:, both] = np.isnan(product[:, both])
    return same


def telling(searches: Sequence[Search], results: Array) -> Array:
    """Return indices of elements, first those that distinguish the models best.

    These are elements that few models agree on. If results were rounded, they are the
    elements whose sums are near a tie.
    """
    some = searches[0].sample
    order = np.random.default_rng(0).permutation(len(some))
    order = order[: 1 << 16]
    found = np.zeros(len(order), np.int64)
    for search in searches:
        total = search.plain[order]
        found += 4 * search.agrees[order]
        if total.dtype != results.dtype:
            for error in (2.0**-21, 2.0**-18, 2.0**-15):
                with np.errstate(all="ignore"):
                    low, high = (
                        total * total.dtype.type(1 + e) for e in (-error, error)
                    )
                both = (as_results(x, results.dtype, False) for x in (low, high))
                found += _equal(next(both)[np.newaxis], next(both))[0]
    return some[order[np.argsort(found, kind="stable")]]


class Search:
    """All hypotheses of models that compute the same."""

    def __init__(self, models: Sequence[Model], problem: Problem, d: Array) -> None:
        self.models = models
        # The shortest instructions: a cut between longer ones is also one of these.
        self._model = min(models, key=lambda model: model.instruction_depth)
        self._problem, self._d = problem, d
        facts = self._facts = problem.facts(self._model)
        self._endings = [
            _Ending(epilogue, saturates)
            for saturates in ((False, True) if d.dtype.itemsize == 1 else (False,))
            for epilogue in problem.epilogues(self._model)
        ]
        k = problem.k
        self._chain = self._tried([blocks(k) if facts.blocks else whole(k)])
        self._splits = self._tried([])
        self._sampled = d.size > _SAMPLE
        #: indices of elements that one chain is tried on, its results, and where they
        #: equal `d`
        chain = self._try_chain()
        self.sample: Array = chain[0]
        self.plain: Array = chain[1]
        self.agrees: Array = chain[2]

    def _tried(self, found: Sequence[Bundle]) -> _Tried:
        return _Tried(found, self._facts, self._endings)

    def _try_chain(self) -> tuple[Array, Array, Array]:
        problem, chain, d = self._problem, self._chain, self._d
        if self._sampled:
            where, elements = problem.sample(self._model, _SAMPLE)
            chain.compare(elements, d[where])
            noted = [(where, *self._note(elements, d[where]))]
            chain.alive &= chain.explains == chain.compared
            if chain.left():
                chain.forget(chain.alive)
                for at, elements in problem.blocks(self._model, lambda: BLOCK):
                    chain.compare(elements, d[at])
        else:
            wide = np.promote_types(self._model.accumulator, np.float32)
            noted = [(np.arange(0), np.empty(0, wide), np.empty(0, bool))]
            for at, elements in problem.blocks(self._model, lambda: BLOCK):
                chain.compare(elements, d[at])
                noted.append((np.arange(d.size)[at], *self._note(elements, d[at])))
        chain.drop()
        where, plain, agrees = (np.concatenate(x) for x in zip(*noted, strict=True))
        return where, plain, agrees

    def _note(self, elements: Elements, d: Array) -> tuple[Array, Array]:
        """Return the results of one chain and the simplest epilogue, and if they fit.

        The results are not rounded to their dtype.
        """
        row, ending = next(
            (row, ending)
            for row in self._chain.rows
            for ending in self._endings
            if _fits(row.way, ending.epilogue, self._facts)
        )
        total = elements.add([row.bundle.split(0)], row.way)
        with np.errstate(all="ignore"):
            using = Numbers(elements.results)
            plain = ending.epilogue.apply(total, elements.terms, using)[0]
        return plain, _equal(results_of(total, ending, elements), d)[0]

    @property
    def tried(self) -> int:
        """The number of hypotheses of all models."""
        return (self._chain.count + self._splits.count) * len(self.models)

    def run(self, order: Array, may_stop: bool) -> bool:
        """Try all divisions of k, first on the elements that distinguish models best.

        Return False if `may_stop` is true and `_ENOUGH` hypotheses give these elements.
        """
        model, problem, d = self._model, self._problem, self._d
        if self._facts.blocks or not d.size:
            return True
        found = (
            cpu_bundles(problem.k, of_lanes=model.has_lanes)
            if isinstance(model, CpuUnit)
            else bundles(problem.k, model.instruction_depth)
        )
        if not found:
            return True
        splits = self._splits = self._tried(found)
        may_stop &= self.tried // len(self.models) * d.size > _CHEAP
        for count in _FIRST:
            which = problem.first(order, count)
            splits.compare(problem.some(model, which), d[which.ravel()])
            splits.drop()
            if may_stop and count == _FIRST[-1] and splits.left() >= _ENOUGH:
                return False
            splits.forget(np.ones(splits.alive.shape, bool))
        if self._sampled and not splits.left():
            which = problem.first(order, _FEWER)
            splits.compare(problem.some(model, which), d[which.ravel()])
            return True
        work = 0
        for where, elements in problem.blocks(model, self._most):
            work += elements.c.size * splits.cost(problem.k)[1]
            splits.compare(elements, d[where])
            splits.drop()
            left = splits.left()
            if left > _MANY or (self._sampled and not left):
                break
            if left > _FEW and work > _WORK:
                break
        return True

    def _most(self) -> int:
        """How many elements to compute at once."""
        stretches, cost = self._splits.cost(self._problem.k)
        budget: int = max(256, _WORK // 8 // max(cost, 1))
        return max(1, min(BLOCK, _TABLE // max(stretches, 1), budget))

    def found(self) -> Iterator[Entry]:
        """Yield the hypotheses that explain all results."""
        plain = len(self._endings) // (1 + (self._d.dtype.itemsize == 1))
        for tried in (self._chain, self._splits):
            for i, row in enumerate(tried.rows):
                for e, ending in enumerate(self._endings):
                    alive = tried.alive[row.all, e]
                    if ending.saturates:
                        # Saturation does not matter if all sums are within the range.
                        alive = alive & ~tried.alive[row.all, e - plain]
                    which = np.flatnonzero(alive)
                    if len(which):
                        yield from self._entries(tried, row, i, e, which)

    def nearest(self) -> Iterator[Hypothesis]:
        """Yield the best of the other hypotheses."""
        for tried in (self._chain, self._splits):
            some = ~tried.alive & (tried.explains > 0)
            if tried is self._splits:
                some &= tried.kept
            for i, row in enumerate(tried.rows):
                for which, e in np.argwhere(some[row.all]):
                    for entry in self._entries(tried, row, i, e, [which]):
                        yield entry.hypothesis(0)

    def _entries(
        self, tried: _Tried, row: _Rows, i: int, e: int, which: Sequence[int] | Array
    ) -> Iterator[Entry]:
        bundle, ending = row.bundle, self._endings[e]
        for model in self.models:
            yield Entry(
                model,
                bundle,
                row.way,
                ending.epilogue,
                (bundle.rank, bundle.parts, e, i),
                which,
                self._d.dtype.name,
                ending.saturates,
                tried.explains[row.all, e],
                tried.compared[row.all, e],
            )
