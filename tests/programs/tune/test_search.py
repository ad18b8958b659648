"""The search without programs: a function of the levels decides which ones pass."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest

from tf32dtype._programs.tune.search import Levels, Search

pytestmark = pytest.mark.once

Passes = Callable[[Levels], bool]


def searched(
    passes: Passes, items: int, levels: int, order: Sequence[int] | None = None
) -> tuple[Levels, int]:
    """Return the best levels, and the number of different levels that were tried."""
    tried: dict[Levels, bool] = {}

    def attempt(wanted: Sequence[Levels]) -> list[bool | None]:
        first = wanted[0]
        tried.setdefault(first, passes(first))
        return [tried.get(x) for x in wanted]

    search = Search([order or range(items)] * levels, items, attempt)
    search.run()
    return search.best, len(tried)


def cheapest(passes: Passes, items: int, levels: int) -> Levels:
    every = itertools.product(range(levels + 1), repeat=items)
    return min((x for x in every if passes(x)), key=sum)


@pytest.mark.parametrize("bad", range(10))
def test_one_of_ten(bad: int) -> None:
    def passes(levels: Levels) -> bool:
        return levels[bad] == 1

    best, count = searched(passes, 10, 1)
    assert best == cheapest(passes, 10, 1)
    assert count <= 10


@pytest.mark.parametrize("needed", list(itertools.product(range(3), repeat=4)))
def test_each_has_its_own_need(needed: Levels) -> None:
    def passes(levels: Levels) -> bool:
        return all(x >= y for x, y in zip(levels, needed, strict=True))

    best, _ = searched(passes, 4, 2)
    assert best == needed == cheapest(passes, 4, 2)


@pytest.mark.parametrize("room", range(0, 13, 2))
def test_errors_add_up(room: int) -> None:
    weights = [5, 1, 3, 1, 2]

    def passes(levels: Levels) -> bool:
        return sum(w for w, x in zip(weights, levels, strict=True) if not x) <= room

    best, _ = searched(passes, 5, 1, sorted(range(5), key=weights.__getitem__))
    assert passes(best)
    for i, level in enumerate(best):
        assert level == 0 or not passes((*best[:i], level - 1, *best[i + 1 :]))


def test_a_step_that_comes_to_pass_later() -> None:
    def passes(levels: Levels) -> bool:
        # The first item may be low only if the second is below the top.
        return levels[0] > 0 or levels[1] < 2

    def watched(levels: Levels) -> bool:
        return levels != (0, 0) and passes(levels)

    best, _ = searched(watched, 2, 2)
    assert best in ((0, 1), (1, 0))


def test_what_is_tried_ahead_changes_nothing() -> None:
    def passes(levels: Levels) -> bool:
        return levels[3] >= 2 and levels[6] >= 1

    known: dict[Levels, bool] = {}

    def attempt(wanted: Sequence[Levels]) -> list[bool | None]:
        known.update({x: passes(x) for x in wanted})
        return [known[x] for x in wanted]

    search = Search([range(8)] * 2, 8, attempt)
    search.run()
    assert search.best == searched(passes, 8, 2)[0] == (0, 0, 0, 2, 0, 0, 1, 0)
