"""A matrix product whose results `identify` explains, with operands of one shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from .._base.matrices import as_matrices
from .._base.wording import one_of
from .._formats.table import own_array
from .cpu_units import CpuUnit, SumType, cpu_units
from .device import MODELS
from .elements import Elements
from .epilogues import Epilogue, Terms, epilogues, is_exact
from .look_up import check_instruction, find_device, find_instruction
from .models import Model
from .products import as_accumulators, as_operand, format_name, matmul
from .scaling import Scales, Scaling
from .ways import Facts

Array = NDArray[Any]

#: Elements of a product that are computed at once.
BLOCK = 1 << 18


class Problem:
    """The operands of a product, broadcast to stacks of matrices of one shape."""

    def __init__(
        self,
        a: Any,
        b: Any,
        c: Any,
        results: np.dtype[Any],
        scaling: Scaling | None = None,
    ) -> None:
        x, y = as_operand(a, "a"), as_operand(b, "b")
        left, right, batch, shape = as_matrices(x, y)
        self.shape: tuple[int, ...] = shape
        self._operands = x, y
        self.results = results
        self.k: int = left.shape[-1]
        self._stack = batch or (1,)
        self._m, self._n = left.shape[-2], right.shape[-1]
        self._a = np.broadcast_to(left, (*self._stack, self._m, self.k))
        self._b = np.broadcast_to(right, (*self._stack, self.k, self._n))
        self._c = c if c is None or type(c) in (bool, int, float) else own_array(c)
        scaling = scaling or Scaling()
        self._beta = scaling.number("beta")
        self.scales: Scales = scaling.of(shape, self._stack, self._m, self.k, self._n)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return prod(self.shape)

    # -- what is tried -----------------------------------------------------------------

    def models(self, unit: str | None, instruction: str | None) -> list[Model]:
        """Those that may have given results of this dtype, with such a c.

        Raises
        ------
        TypeError, ValueError
            If there are none.
        """
        tried = self._units(unit, instruction)
        known = [
            model
            for model in tried
            if _may_be(model, self.results)
            and (isinstance(model, CpuUnit) or self._takes(model))
        ]
        if not known:
            left, right = (x.dtype for x in self._operands)
            name = self.results.name
            formats = dict.fromkeys(m.a for m in tried if _may_be(m, self.results))
            if not formats:
                sums = ", ".join(dict.fromkeys(model.accumulator for model in tried))
                raise ValueError(
                    f"d must have the dtype of the unit's sums, {sums}, or one that"
                    f" they are rounded to; got {name}"
                )
            raise ValueError(
                f"a and b must be formats that a model multiplies into {name}; got"
                f" {left} x {right}. The formats are {', '.join(formats)}"
            )
        dtype = getattr(self._c, "dtype", None)
        if dtype in (None, self.results):
            return known
        fit = [model for model in known if model.accumulator == dtype.name]
        if not fit:
            self.c(known[0])  # says what c may be
        return fit

    def _takes(self, model: Model) -> bool:
        formats = tuple(format_name(x, model.device) for x in self._operands)
        return (model.a, model.b) == formats

    def _units(self, unit: str | None, instruction: str | None) -> Sequence[Model]:
        """Return the models of a device and an instruction; None: of any."""
        check_instruction(instruction)
        if unit in get_args(SumType):
            formats = [x.dtype.name for x in self._operands]
            models: Sequence[Model] = cpu_units(unit, *formats)  # type: ignore[arg-type]
        elif unit is not None:
            models = find_device(unit).models
            if instruction is not None:
                find_instruction(find_device(unit), instruction)
        else:
            models = MODELS
        known = dict.fromkeys(model.instruction for model in models)
        if instruction is None:
            return models
        if instruction not in known:
            raise ValueError(one_of("instruction", instruction, known))
        return [model for model in models if model.instruction == instruction]

    def facts(self, model: Model) -> Facts:
        """Return what decides which ways of a model to add parts differ."""
        names = self.scales.names()
        promoted: Sequence[Epilogue] = ()
        cpu = isinstance(model, CpuUnit)
        if self.scales.blocks or (cpu and names.factors):
            factors = self.scales.block_names or names.factors
            exact = self._exact and not self.scales.blocks
            promoted = epilogues(
                Terms(factors, c="acc"), adds_c=True, exact=exact, of="part"
            )
        return Facts(
            self._has_c(model),
            self.results.itemsize == 2 and model.accumulator == "float32",
            promoted,
            self.scales.blocks,
        )

    def epilogues(self, model: Model) -> list[Epilogue]:
        """Return all epilogues that differ, the simplest first."""
        facts, found = self.facts(model), []
        names = self.scales.names()._replace(
            c="c", beta=None if self._beta == 1 else "beta"
        )
        narrows = self.results.name != model.accumulator
        for adds_c in (False, True) if facts.with_c else (False,):
            if adds_c or not (facts.with_c and names.factors):
                found += epilogues(
                    names,
                    adds_c=adds_c,
                    narrows=narrows,
                    exact=self._exact and is_exact(self._beta),
                )
        if facts.promotions and names.factors and not facts.blocks:
            found += epilogues(names, adds_c=False, narrows=narrows, scales=False)
        return found

    @property
    def _exact(self) -> bool:
        return self.scales.exact

    def _has_c(self, model: Model) -> bool:
        if self._c is None or self._beta == 0:
            return False
        # -0 is not +0.
        c = np.ascontiguousarray(self.c(model))
        return bool(c.view(f"u{c.dtype.itemsize}").any())

    # -- elements ----------------------------------------------------------------------

    def c(self, model: Model, *, scaled: bool = True) -> Array:
        """Return the initial values of a model's accumulators, shape (stack, m, n).

        They are multiplied by beta, if `scaled`.
        """
        c = self._c
        dtype = np.dtype(model.accumulator)
        shape = *self._stack, self._m, self._n
        if c is None or self._beta == 0:
            return np.broadcast_to(np.zeros((), dtype), shape)
        if getattr(c, "dtype", dtype) == self.results != dtype:
            c = c.astype(dtype)
        start = as_accumulators(c, model, self.shape).reshape(shape)
        if self._beta == 1 or not scaled:
            return start
        with np.errstate(all="ignore"):
            scaled_c: Array = start * dtype.type(self._beta)
        return scaled_c

    def some(self, model: Model, which: Array) -> Elements:
        """Return the elements of some indices in the flat result, (rows, columns)."""
        *stack, i, j = np.unravel_index(which, (*self._stack, self._m, self._n))
        first = *(x[:, 0] for x in stack), i[:, 0]
        a = self._a[first][:, np.newaxis]
        lines = self._b.swapaxes(-1, -2)
        b = lines[(*(x[:, :1] for x in stack), j)].swapaxes(1, 2)
        return self._elements(model, a, b, (*stack, i, j))

    def _elements(self, model: Model, a: Array, b: Array, at: Any) -> Elements:
        """Return those at some places of stacks of matrices of accumulators."""
        if isinstance(model, CpuUnit):
            product = model.product
        else:
            product = partial(
                matmul,
                device=model.device,
                instruction=model.instruction,
                accumulator=np.dtype(model.accumulator),
            )
        c = self.c(model)[at]
        c = c.reshape(len(a), -1, b.shape[-1])
        wide = np.promote_types(model.accumulator, np.float32)
        terms = Terms()
        if self._c is not None:
            raw = self.c(model, scaled=False)[at].astype(wide).ravel()
            beta = None if self._beta == 1 else wide.type(self._beta)
            terms = Terms((), beta, raw)
        terms, factors = self.scales.at(at, terms, wide)
        return Elements(
            a, b, c, product, model.instruction_depth, terms, factors, self.results
        )

    def first(self, order: Array, count: int) -> Array:
        """About so many elements of an order, by their places: (rows, columns).

        As many of each row: products of matrices take less time than those of vectors.
        But of few bits a row has few that tell anything.
        """
        wide = max(1, min(self._n, 2 if self.results.itemsize < 4 else 8))
        rows = order // max(self._n, 1)
        some = [*dict.fromkeys(rows.tolist())][: max(1, count // wide)]
        wide = min(max(wide, count // max(1, len(some))), max(1, self._n))
        chosen = []
        for row in some:
            others = range(row * self._n, row * self._n + min(self._n, 2 * wide))
            columns = [*order[rows == row][:wide], *others]
            chosen.append([*dict.fromkeys(int(x) for x in columns)][:wide])
        return np.array(chosen, np.intp)

    def sample(self, model: Model, count: int) -> tuple[Array, Elements]:
        """Return whole rows at random, about so many elements, and their indices."""
        rng = np.random.default_rng(0)
        stacks, size = prod(self._stack), self._m * self._n
        some = rng.choice(stacks, min(stacks, max(1, count // size)), replace=False)
        each = min(self._m, max(1, count // (len(some) * self._n)))
        rows = np.sort(rng.choice(self._m, each, replace=False))
        at = np.unravel_index(np.sort(some), self._stack)
        there = *(x[:, np.newaxis] for x in at), rows[np.newaxis]
        flat = np.sort(some)[:, np.newaxis] * self._m + rows
        indices = (flat[..., np.newaxis] * self._n + np.arange(self._n)).ravel()
        return indices, self._elements(model, self._a[there], self._b[at], there)

    def blocks(
        self, model: Model, most: Callable[[], int]
    ) -> Iterator[tuple[slice, Elements]]:
        """All elements, about so many at a time, and where they are in the result."""
        count, size = prod(self._stack), self._m * self._n
        first = row = 0
        while first < count and size:
            stacks, rows = max(1, most() // size), max(1, most() // self._n)
            if row:
                stacks = 1
            which = np.arange(first, min(first + stacks, count))
            at: tuple[Any, ...] = np.unravel_index(which, self._stack)
            there: tuple[Any, ...] = (*at, slice(row, row + rows))
            begin = first * size + row * self._n
            elements = self._elements(model, self._a[there], self._b[at], there)
            yield slice(begin, begin + elements.c.size), elements
            row += rows
            if row >= self._m:
                first, row = first + stacks, 0


def _may_be(model: Model, dtype: np.dtype[Any]) -> bool:
    """Return whether results of this dtype may be a model's, rounded or not."""
    if model.accumulator == dtype.name:
        return True
    return model.accumulator == "float32" and dtype.itemsize < 4
