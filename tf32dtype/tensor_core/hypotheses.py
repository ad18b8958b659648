"""How results may have come about: what `identify` finds, and its table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._formats.table import find_dtype
from .cpu_units import CpuUnit
from .elements import Bundle
from .epilogues import Epilogue, Numbers, as_results
from .models import Model
from .problem import BLOCK, Problem
from .scaling import Scaling
from .splits import Split
from .ways import Begins, Lanes, Order, Way

Array = NDArray[Any]

#: The fields in which equal models may differ. The depth of an instruction is one of
#: them: zeros that fill it up do not change the result.
_NAMES = ("device", "instruction", "instruction_depth", "verified")
_SHOWN = 12


@dataclass(frozen=True)
class Hypothesis:
    """A possible origin of results: a model, and the way a library used it.

    See Also
    --------
    identify : Find the hypotheses that explain results.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x, y = np.float16([1, 2**-12, -1]), np.float16([1, 2**-13, 1])
    >>> [hypothesis, *_] = td.tensor_core.identify(x, y, None, np.float32(2**-25))
    >>> hypothesis.name, hypothesis.parts, hypothesis.how
    ('H100 wgmma float16 -> float32', (3,), 'one chain')
    >>> float(hypothesis.matmul(x, y)) == 2**-25
    True
    """

    #: the model of the instruction
    model: Model
    #: the k of each part; one: all of k is one chain
    parts: tuple[int, ...]
    #: k that a part takes before the next part's turn; None: parts follow each other
    turn: int | None
    #: whether the last part has the k that follow all turns
    rest: bool
    #: the order in which sums of parts are added, in float32 (or float64 if they are)
    order: Order
    #: whether no sums are added: a part's accumulators begin with the sum before
    chained: bool
    #: where c is added, if it is not 0: the sum of the parts begins with it, or the
    #: first part's accumulators do, or it is added at the end, by the epilogue
    c_begins: Begins
    #: the dtype that sums of parts are rounded to before they are added; None: they
    #: are not
    partials: str | None
    #: the dtype that the sum is rounded to after each addition; None: it is not
    running: str | None
    #: how factors multiply a part, and how it is added to the sum "acc" before it: its
    #: ``words`` are the formula. None: no factors multiply parts
    promotion: Epilogue | None
    #: how the parts are added if they are the lanes of vectors: the ``width`` of a
    #: vector, the number of ``vectors``, and the order. None: they are not lanes
    lanes: Lanes | None
    #: what follows the sum: factors, c, a bias, and roundings between them. Its
    #: ``words`` are the formula, such as "fma(sum, alpha, beta * c) + bias"
    epilogue: Epilogue
    #: the format of the results, if sums were rounded to another than theirs
    rounded_to: str | None
    #: whether numbers above that format's range became its largest number
    saturates: bool
    #: number of compared elements that are equal
    explains: int
    #: number of all compared elements
    compared: int

    @property
    def promote_every(self) -> int | None:
        """The `promote_every` of `matmul` that adds this way; None if there is none."""
        unit = isinstance(self.model, CpuUnit)
        if self.model.accumulator != "float32" or unit:
            return None
        plain = self._way == Way() and self.turn is None and self.epilogue == Epilogue()
        first, *rest = self.parts
        if not (plain and rest and self.order == "ascending"):
            return None
        if first % self.model.instruction_depth or {*rest[:-1], first} != {first}:
            return None
        return first if rest[-1] <= first and not self.rounded_to else None

    @property
    def _way(self) -> Way:
        return Way(
            self.order,
            self.c_begins,
            self.chained,
            self.partials is not None,
            self.running is not None,
            self.promotion,
            self.lanes,
        )

    @property
    def name(self) -> str:
        """The model and all else, in words."""
        return ", ".join([self.model.name, *self._words(), *self._rounding()])

    @property
    def how(self) -> str:
        """All but the model, in words."""
        words = [*self._words(), *self._rounding()]
        return ", ".join(words) if words else "one chain"

    def _words(self) -> Iterator[str]:
        count = len(self.parts)
        if self.lanes is not None:
            yield self.lanes.words + f", then {self.parts[-1]} k more" * self.rest
        elif count > 1:
            yield f"{count} parts {self._lengths()}"
            every = self.promote_every
            yield f"{'chained' if self.chained else 'added'} {self.order}" + (
                f" (promote_every={every})" if every else ""
            )
        if self.promotion is not None:
            yield f"each as {self.promotion.words}"
        if self.partials:
            yield f"parts rounded to {self.partials}"
        if self.running:
            yield f"rounded to {self.running} after each addition"
        if self.c_begins == "first part":
            yield "c in the first part"
        if self.epilogue.words == "sum + c":
            yield "c at the end"
        elif self.epilogue.words != "sum":
            yield self.epilogue.words

    def _rounding(self) -> Iterator[str]:
        if self.rounded_to:
            yield f"rounded to {self.rounded_to}{' (saturates)' * self.saturates}"

    def _lengths(self) -> str:
        if self.turn is not None:
            return f"in turns of {self.turn} k"
        first, *middle, last = self.parts
        if {first, *middle} == {last}:
            return f"of {last} k"
        runs: list[list[int]] = []
        for length in self.parts:
            if runs and runs[-1][0] == length:
                runs[-1].append(length)
            else:
                runs.append([length])
        return (
            "of "
            + " + ".join(
                f"{len(run)} * {run[0]}" if len(run) > 1 else f"{run[0]}"
                for run in runs
            )
            + " k"
        )

    def matmul(
        self,
        a: ArrayLike,
        b: ArrayLike,
        c: ArrayLike | None = None,
        *,
        alpha: float = 1,
        beta: float = 1,
        bias: ArrayLike | None = None,
        scale_a: ArrayLike | None = None,
        scale_b: ArrayLike | None = None,
    ) -> Any:
        """Compute the results as the hypothesis says.

        Parameters
        ----------
        a, b, c, alpha, beta, bias, scale_a, scale_b
            As for `identify`, and as they were given there.

        Returns
        -------
        ndarray or scalar
            The product of shape (..., m, n), of the dtype of the explained results.

        Raises
        ------
        TypeError, ValueError
            As for `identify`.
        """
        dtype = find_dtype(self.rounded_to or self.model.accumulator)
        scaling = Scaling(alpha, beta, bias, scale_a, scale_b)
        problem = Problem(a, b, c, dtype, scaling)
        split = Split(self.parts, self.turn, self.rest)
        using = Numbers(dtype, self.saturates)
        found = np.empty(problem.shape, dtype)
        for where, elements in problem.blocks(self.model, lambda: BLOCK):
            total = elements.add([split], self._way)[0]
            with np.errstate(all="ignore"):
                total = self.epilogue.apply(total, elements.terms, using)
            found.reshape(-1)[where] = as_results(total, dtype, self.saturates)
        return found[()]


class Identification(Sequence[Hypothesis]):
    """The hypotheses that explain all results, the simplest first.

    `repr` returns a table of these hypotheses, and of the nearest of the others.

    See Also
    --------
    identify : Find the hypotheses that explain results.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x, y = np.float16([1, 2**-12, -1]), np.float16([1, 2**-13, 1])
    >>> found = td.tensor_core.identify(x, y, None, np.float32(2**-25))
    >>> len(found), found.tried, found[0].model.device
    (7, 14, 'H100')
    """

    def __init__(
        self,
        found: Sequence[Entry],
        nearest: Sequence[Hypothesis],
        tried: int,
        told: bool = True,
    ) -> None:
        self._found = found
        self._ends = [*accumulate(len(entry.which) for entry in found)]
        #: the best of the other hypotheses, the one that explains most first
        self.nearest: tuple[Hypothesis, ...] = tuple(nearest)
        #: the number of hypotheses that were tried
        self.tried = tried
        #: whether the search ended early: 8-bit results fit too many hypotheses
        self.tells_nothing: bool = not told

    def __len__(self) -> int:
        """Return the number of hypotheses that explain all results."""
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Hypothesis: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hypothesis]: ...
    def __getitem__(self, index: int | slice) -> Hypothesis | list[Hypothesis]:
        there = range(len(self))[index]
        if isinstance(there, range):
            return [self[i] for i in there]
        entry = bisect_right(self._ends, there)
        before = self._ends[entry - 1] if entry else 0
        return self._found[entry].hypothesis(there - before)

    def __repr__(self) -> str:
        """Return the table."""
        alike = ", and these results do not distinguish them" * (len(self) > 1)
        if self.tells_nothing:
            alike = (
                ": the search stopped, because too many hypotheses explain these"
                " results. Give the float32 results, before they are rounded"
            )
        lines = [f"{len(self):,} of {self.tried:,} hypotheses explain all{alike}"]
        shown = [*self[:_SHOWN]]
        lines += _lines(shown)
        if len(self) > len(shown):
            lines.append(f"  and {len(self) - len(shown):,} more")
        if self.nearest:
            lines += ["closest other hypotheses", *_lines(self.nearest[: _SHOWN // 2])]
        return "\n".join(lines)


def _lines(hypotheses: Sequence[Hypothesis]) -> Iterator[str]:
    """Yield a line for each, models that compute the same together."""
    together: dict[tuple[str, int, int, tuple[Any, ...]], list[Hypothesis]] = {}
    for h in hypotheses:
        key = h.how, h.explains, h.compared, parameters(h.model)
        together.setdefault(key, []).append(h)
    for (how, explains, compared, _), those in together.items():
        first = those[0].model
        names = [h.model.title for h in those]
        formats = first.name.removeprefix(names[0]).strip(" :")
        yield f"  {explains:,} of {compared:,}  {how}"
        yield f"    {', '.join(names)}: {formats}"


def parameters(model: Model) -> tuple[Any, ...]:
    """Return the parameters of a model; models with the same ones compute the same."""
    names = [field.name for field in fields(model) if field.name not in _NAMES]
    if isinstance(model, CpuUnit):
        names.append("instruction")
    return tuple(getattr(model, name) for name in names)


class Entry(NamedTuple):
    """Hypotheses of one model that differ only in the split."""

    model: Model
    bundle: Bundle
    way: Way
    epilogue: Epilogue
    simplicity: tuple[int, ...]
    which: Sequence[int] | Array
    results: str
    saturates: bool
    explains: Array
    compared: Array

    def hypothesis(self, place: int) -> Hypothesis:
        """Return one of them."""
        which = self.which[place]
        split, way = self.bundle.split(which), self.way
        results = self.results
        return Hypothesis(
            self.model,
            split.lengths,
            split.turn,
            split.rest,
            way.order,
            way.chained,
            way.begins,
            results if way.partials else None,
            results if way.running else None,
            way.promotion,
            way.lanes,
            self.epilogue,
            None if results == self.model.accumulator else results,
            self.saturates,
            int(self.explains[which]),
            int(self.compared[which]),
        )
