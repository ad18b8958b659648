"""Search within a budget of bits: the best metric that a mean of bits allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .items import Item
from .trials import Level, Levels

#: The error of each item at each level.
Errors = dict[tuple[int, int], float]
#: The error of formats that cannot round a value.
_MOST = 1e30


class Budget:
    """Finds levels whose mean bits per weight are at most a budget.

    First, all items are unrounded. While the bits exceed the budget, the item is
    lowered that adds the smallest error per saved bit. Then pairs of items exchange
    bits as long as the loss falls.

    Parameters
    ----------
    items : sequence of Item
        Those without weights stay unrounded.
    levels : sequence of Level
        The formats, the cheapest first.
    most : float
        The budget.
    error : callable
        Given an item and a level, returns the error if no other item is rounded.
    loss : callable
        Given levels, returns how bad the metric is.

    Attributes
    ----------
    best : tuple of int
        The best levels so far.

    Raises
    ------
    ValueError
        If the cheapest formats exceed the budget.
    """

    def __init__(
        self,
        items: Sequence[Item],
        levels: Sequence[Level],
        most: float,
        error: Callable[[int, int], float],
        loss: Callable[[Levels], float],
    ) -> None:
        self._items, self._levels = items, levels
        self._error, self._loss = error, loss
        weights = sum(item.weights for item in items)
        self._room = most * weights
        self._weighted = [i for i, item in enumerate(items) if item.weights]
        self.best: Levels = (len(levels),) * len(items)
        least = sum(
            min(self._bits(i, level) for level in range(len(levels) + 1))
            for i in self._weighted
        )
        if least > self._room:
            raise ValueError(
                "budget_bits must be at least the mean bits of the cheapest precision,"
                f" {least / weights:.4g}; got {most:g}"
            )

    def _bits(self, item: int, level: int) -> float:
        return weight_bits(self._items[item], self._levels, level)

    def run(self) -> None:
        """Search until no exchange of two items lowers the loss."""
        errors = {
            (i, level): min(self._error(i, level), _MOST)
            for i in self._weighted
            for level in range(len(self._levels))
        }
        errors |= {(i, len(self._levels)): 0.0 for i in self._weighted}
        self.best = self._greedy(errors)
        least = self._loss(self.best)
        while True:
            for levels in [*self._exchanges(errors)]:
                if (loss := self._loss(levels)) < least:
                    self.best, least = levels, loss
                    break
            else:
                return

    def _greedy(self, errors: Errors) -> Levels:
        now = self.best
        total = sum(self._bits(i, now[i]) for i in self._weighted)
        while total > self._room:
            prices = {}
            for (i, level), error in errors.items():
                saved = self._bits(i, now[i]) - self._bits(i, level)
                if saved > 0:
                    prices[i, level] = (error - errors[i, now[i]]) / saved, -saved
            i, level = min(prices, key=prices.__getitem__)
            total += prices[i, level][1]
            now = _with(now, {i: level})
        return now

    def _exchanges(self, errors: Errors) -> Iterator[Levels]:
        """Yield changes of one or two items within the budget, the best ones first.

        As many are yielded as there are items, and at least 8.
        """
        now = self.best
        room = self._room - sum(self._bits(i, now[i]) for i in self._weighted)
        names = [*errors]
        items = np.array([i for i, _ in names])
        bits = np.array([self._bits(i, x) - self._bits(i, now[i]) for i, x in names])
        worse = np.array(
            [error - errors[i, now[i]] for (i, _), error in errors.items()]
        )
        whole = worse[:, None] + worse
        allowed = (bits[:, None] > 0) & (bits <= 0) & (bits[:, None] + bits <= room)
        # The second item may also stay as it is: its level is then the present one.
        allowed &= items[:, None] != items
        whole[~allowed] = np.inf
        for place in np.argsort(whole, axis=None)[: max(8, len(self._weighted))]:
            up, down = divmod(int(place), len(names))
            if allowed[up, down]:
                yield _with(now, dict([names[up], names[down]]))


def weight_bits(item: Item, levels: Sequence[Level], level: int) -> float:
    """Return the bits of an item's weights at a level; the last one: unrounded."""
    if level == len(levels):
        return item.unrounded_bits
    return item.weights * levels[level].weight_bits


def _with(levels: Levels, changed: dict[int, int]) -> Levels:
    return tuple(changed.get(i, level) for i, level in enumerate(levels))
