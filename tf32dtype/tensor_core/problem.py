"""A matrix product whose results `identify` explains, with operands of one shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._base.matrices import as_matrices
from .._base.wording import one_of
from .._formats.table import format_of_dtype, own_array
from .device import MODELS
from .look_up import check_instruction, find_device, find_instruction
from .models import Model
from .products import as_accumulators, as_operand, format_name, matmul
from .splits import Elements

Array = NDArray[Any]
#: Units of CPU libraries, by the dtype that they add in.
SumType = Literal["float32", "float64"]

#: Elements of a product that are computed at once.
BLOCK = 1 << 20


class Problem:
    """The operands of a product, broadcast to stacks of matrices of one shape."""

    def __init__(
        self,
        a: Any,
        b: Any,
        c: Any,
        results: np.dtype[Any],
        unit: str | None = None,
        instruction: str | None = None,
    ) -> None:
        x, y = as_operand(a, "a"), as_operand(b, "b")
        left, right, batch, shape = as_matrices(x, y)
        self.shape: tuple[int, ...] = shape
        self._operands = x, y
        self.results = results
        #: the models that are tried, if they fit the operands and the results
        self._tried = units(unit, instruction)
        self.k: int = left.shape[-1]
        self._stack = batch or (1,)
        self._m, self._n = left.shape[-2], right.shape[-1]
        self._a = np.broadcast_to(left, (*self._stack, self._m, self.k))
        self._b = np.broadcast_to(right, (*self._stack, self.k, self._n))
        self._c = c if c is None or type(c) in (bool, int, float) else own_array(c)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return prod(self.shape)

    def models(self) -> list[Model]:
        """Those that may have given results of this dtype, with such a c.

        Raises
        ------
        TypeError, ValueError
            If there are none.
        """
        known = [
            model
            for model in self._tried
            if _may_be(model, self.results)
            and (model.a, model.b)
            == tuple(format_name(x, model.device) for x in self._operands)
        ]
        if not known:
            left, right = (x.dtype for x in self._operands)
            name = self.results.name
            formats = dict.fromkeys(
                m.a for m in self._tried if _may_be(m, self.results)
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

    def c(self, model: Model) -> Array:
        """Return the initial values of a model's accumulators, shape (stack, m, n)."""
        c = self._c
        dtype = np.dtype(model.accumulator)
        if getattr(c, "dtype", dtype) == self.results != dtype:
            c = c.astype(dtype)
        start = as_accumulators(c, model, self.shape)
        return start.reshape(*self._stack, self._m, self._n)

    def some(self, model: Model, which: Array) -> Elements:
        """Return the elements of some indices in the flat result, (rows, columns)."""
        *stack, i, j = np.unravel_index(which, (*self._stack, self._m, self._n))
        first = *(x[:, 0] for x in stack), i[:, 0]
        a = self._a[first][:, np.newaxis]
        lines = self._b.swapaxes(-1, -2)
        b = lines[(*(x[:, :1] for x in stack), j)].swapaxes(1, 2)
        c = self.c(model)[(*stack, i, j)][:, np.newaxis]
        return self._elements(model, a, b, c)

    def _elements(self, model: Model, a: Array, b: Array, c: Array) -> Elements:
        product = partial(
            matmul,
            device=model.device,
            instruction=model.instruction,
            accumulator=np.dtype(model.accumulator),
        )
        return Elements(a, b, c, product, model.instruction_depth)

    def first(self, order: Array, count: int) -> Array:
        """About so many elements of an order, by their places: (rows, columns).

        As many of each row: products of matrices take less time than those of vectors.
        But of few bits a row has few that tell anything.
        """
        wide = max(1, min(self._n, 2 if self.results.itemsize < 4 else 8))
        rows = order // max(self._n, 1)
        chosen = []
        for row in [*dict.fromkeys(rows.tolist())][: count // wide]:
            columns = [*order[rows == row], *range(row * self._n, (row + 1) * self._n)]
            chosen.append([*dict.fromkeys(int(x) for x in columns)][:wide])
        return np.array(chosen, np.intp)

    def blocks(self, model: Model, most: int) -> Iterator[tuple[slice, Elements]]:
        """All elements, about so many at a time, and where they are in the result."""
        c = self.c(model)
        count, size = prod(self._stack), self._m * self._n
        if not count * size:
            return
        stacks, rows = max(1, most // size), max(1, most // self._n)
        for first in range(0, count, stacks):
            which = np.arange(first, min(first + stacks, count))
            at: tuple[Any, ...] = np.unravel_index(which, self._stack)
            b = self._b[at]
            for row in range(0, self._m, rows):
                there: tuple[Any, ...] = (*at, slice(row, row + rows))
                begin = first * size + row * self._n
                part = c[there]
                yield (
                    slice(begin, begin + part.size),
                    self._elements(model, self._a[there], b, part),
                )


def units(unit: str | None, instruction: str | None) -> Sequence[Model]:
    """Return the models of a device and an instruction; None: of any.

    Raises
    ------
    TypeError, ValueError
        For an unknown device, or an instruction that it lacks.
    """
    models: Sequence[Model] = MODELS if unit is None else find_device(unit).models
    if instruction is None:
        return models
    check_instruction(instruction)
    if unit is not None:
        find_instruction(find_device(unit), instruction)
    known = dict.fromkeys(model.instruction for model in models)
    if instruction not in known:
        raise ValueError(one_of("instruction", instruction, known))
    return [model for model in models if model.instruction == instruction]


def as_results(total: Array, dtype: np.dtype[Any], saturates: bool) -> Array:
    """Sums as results, to nearest."""
    if total.dtype == dtype:
        return total
    with np.errstate(all="ignore"):
        form = format_of_dtype(dtype)
        if saturates and form is not None:
            total = np.clip(total, -form.max, form.max)
        return total.astype(dtype)


def _may_be(model: Model, dtype: np.dtype[Any]) -> bool:
    """Return whether results of this dtype may be a model's, rounded or not."""
    if model.accumulator == dtype.name:
        return True
    return model.accumulator == "float32" and dtype.itemsize < 4
