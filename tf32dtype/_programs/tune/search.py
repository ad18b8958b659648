"""The search: the lowest level of each item that passes together with the others'.

An item is a call site, its level the number of a precision, the cheapest first; the
last level is that of the unchanged program, which passes by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Levels = tuple[int, ...]
#: A function that returns which of some levels pass. It must try the first one. It may
#: try others at the same time, since they may be next, or return None for them.
Try = Callable[[Sequence[Levels]], Sequence[bool | None]]


class Search:
    """Delta debugging, level by level, from the cheapest one on.

    Parameters
    ----------
    order : sequence of sequence of int
        For each level but the last the items that may have it, the safest first.
    count : int
        How many items there are.
    attempt : callable
        Tries levels.

    Attributes
    ----------
    best : tuple of int
        The level of each item: the cheapest ones that passed so far.
    """

    def __init__(
        self, order: Sequence[Sequence[int]], count: int, attempt: Try
    ) -> None:
        self._order = order
        self._attempt = attempt
        self.best: Levels = (len(order),) * count

    def run(self) -> None:
        """Search until no single step lowers an item."""
        for level, items in enumerate(self._order):
            self._lower([i for i in items if self.best[i] > level], level)
        while self._step():
            pass

    def _lower(self, items: Sequence[int], level: int) -> None:
        """Lower as many of the items as pass together."""
        if not items:
            return
        first, second = items[: (len(items) + 1) // 2], items[(len(items) + 1) // 2 :]
        whole, half = (self._with(self.best, x, level) for x in (items, first))
        if self._passes(whole, half):
            self.best = whole
        elif second:
            self._lower(first, level)
            self._lower(second, level)

    def _step(self) -> bool:
        """Lower one item by one level, if that passes."""
        steps = [
            self._with(self.best, [i], level - 1)
            for i, level in enumerate(self.best)
            if level > 0 and i in self._order[level - 1]
        ]
        while steps:
            if self._passes(*steps):
                self.best = steps[0]
                return True
            del steps[0]
        return False

    def _passes(self, wanted: Levels, *ahead: Levels) -> bool:
        return bool(self._attempt([wanted, *ahead])[0])

    @staticmethod
    def _with(levels: Levels, items: Sequence[int], level: int) -> Levels:
        changed = list(levels)
        for i in items:
            changed[i] = level
        return tuple(changed)
