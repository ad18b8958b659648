"""One element on several tensor cores, as text: where they differ, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .models import Aligned, Model

#: The most lines of a table; with more blocks, several share a line.
MOST_LINES = 48
#: The most devices with values in the table; with more it has only bits.
_WITH_NUMBERS = 2


class Course(NamedTuple):
    """The steps by which one model computes an element."""

    model: Model
    name: str
    #: the operands as the model reads them
    a: Sequence[float]
    b: Sequence[float]
    steps: Sequence[Any]
    #: the accumulator by k: at the start, and after all products of the k before
    after: dict[int, Any]

    @classmethod
    def of(
        cls,
        model: Model,
        a: Sequence[float],
        b: Sequence[float],
        steps: Sequence[Any],
        start: Any,
        promote_every: int | None,
    ) -> Course:
        """Record the accumulator at each k where it includes all k before."""
        whole = not isinstance(model, Aligned) or model.emulated
        turn = promote_every or (model.instruction_depth if whole else model.depth)
        after = {0: start}
        for step in steps:  # the last one of a turn counts
            if step.ks:
                end = min((min(step.ks) // turn + 1) * turn, len(a))
                after[end] = type(start)(step.result)
        return cls(model, f"{model.device} {model.instruction}", a, b, steps, after)

    def between(self, first: int, last: int) -> list[Any]:
        """Return the steps of the k from `first` up to `last`."""
        return [s for s in self.steps if s.ks and first <= min(s.ks) < last]


class Block(NamedTuple):
    """A range of k at whose end the accumulators of all models are known."""

    first: int
    last: int
    accumulators: tuple[Any, ...]
    #: the largest distance of two accumulators, in numbers of the dtype; None: if some
    #: are NaN
    ulps: int | None


def blocks(courses: Sequence[Course]) -> list[Block]:
    """Return the ranges of k that end with a step of every model."""
    common = sorted(set.intersection(*(set(course.after) for course in courses)))
    found = []
    for first, last in pairwise(common):
        accumulators = tuple(course.after[last] for course in courses)
        found.append(Block(first, last, accumulators, _apart(accumulators)))
    return found


def parting(found: Sequence[Block]) -> Block | None:
    """Return the first block after which the accumulators are not all equal."""
    return next((block for block in found if block.ulps != 0), None)


def table(courses: Sequence[Course], found: Sequence[Block]) -> Iterator[str]:
    """Yield one line per block; runs of equal blocks share a line.

    If there are very many blocks, several share a line, too.
    """
    size = np.dtype(courses[0].model.accumulator).itemsize
    numbers = len(courses) <= _WITH_NUMBERS and size < 8
    names = [
        course.name if numbers else f"({i})" for i, course in enumerate(courses, 1)
    ]
    wide = 24 if numbers else 2 + 2 * size
    yield _line(["k", *names, "ulps"], wide)
    lines = _together(found)
    for block in lines:
        cells = [_shown(x, numbers) for x in block.accumulators]
        if block.ulps == 0:
            cells = [cells[0], "equal", *[""] * (len(cells) - 2)]
        ulps = "" if block.ulps == 0 else "-" if block.ulps is None else str(block.ulps)
        yield _line([f"{block.first}-{block.last - 1}", *cells, ulps], wide)
    yield ""
    yield "Each line shows the accumulators after these k. ulps: the largest distance"
    yield f"between two of them, in {courses[0].model.accumulator} values"
    if any(line.ulps != 0 and line not in found for line in lines):
        yield "A line of many steps shows its last accumulators and its largest ulps"


def _together(found: Sequence[Block]) -> list[Block]:
    """Equal blocks that follow each other as one; of many others, some at a time."""
    where = parting(found)
    equal = len(found) if where is None else found.index(where)
    alone = found[: equal + 1]  # the first difference, too
    size = -(-(len(found) - len(alone)) // MOST_LINES) or 1
    some = [found[i : i + size] for i in range(len(alone), len(found), size)]
    lines: list[Block] = []
    for group in [*([block] for block in alone), *some]:
        ulps = [block.ulps for block in group]
        greatest = None if None in ulps else max(x for x in ulps if x is not None)
        first = group[0].first
        if lines and lines[-1].ulps == greatest == 0:
            first = lines.pop().first
        lines.append(group[-1]._replace(first=first, ulps=greatest))
    return lines


def _apart(accumulators: Sequence[Any]) -> int | None:
    nans = [bool(np.isnan(x)) for x in accumulators]
    if any(nans):
        return 0 if all(nans) else None
    places = [_place(x) for x in accumulators]
    return max(places) - min(places)


def _place(x: Any) -> int:
    """Consecutive integers for consecutive numbers; -0 is before +0."""
    size = x.dtype.itemsize
    bits = int(x.view(f"u{size}"))
    sign = 1 << 8 * size - 1
    return bits if bits < sign else sign - 1 - bits


def _shown(x: Any, number: bool) -> str:
    bits = f"0x{int(x.view(f'u{x.dtype.itemsize}')):0{2 * x.dtype.itemsize}X}"
    return f"{bits} {x!s:>13}" if number else bits


def _line(cells: Sequence[str], wide: int) -> str:
    first, *middle, last = cells
    columns = " ".join(cell.rjust(wide) for cell in middle)
    return f"{first:>11} {columns} {last:>6}".rstrip()
