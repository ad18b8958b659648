"""Epilogues of a product: factors, c, a bias, and roundings between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from .._formats.table import format_of_dtype
from .products import matmul

Array = NDArray[Any]

#: How several factors multiply a sum: by their product, or one after another. "none":
#: they do not, as they multiply parts of the sum.
Factors = Literal["product", "in turn", "last first", "none"]
#: The operation that is a fused multiply-add. "sum": the factor times the sum, plus the
#: number that is added next. "c": beta * c plus the sum.
Fused = Literal["nothing", "sum", "c"]
#: When numbers are rounded to the dtype of the results: at the end only, or also the
#: sum, or also before the bias is added.
Rounds = Literal["once", "sum", "before bias"]


class Terms(NamedTuple):
    """The terms of an epilogue: numbers that broadcast to the sums, or their names."""

    factors: tuple[Any, ...] = ()
    #: None: 1
    beta: Any = None
    c: Any = None
    #: None: there is no bias
    bias: Any = None


class Arithmetic(Protocol):
    """Operations on numbers, or on the words of a formula."""

    def multiply(self, x: Any, y: Any) -> Any: ...
    def add(self, x: Any, y: Any) -> Any: ...
    def fma(self, x: Any, y: Any, z: Any) -> Any: ...
    def narrow(self, x: Any) -> Any: ...


class Numbers(Arithmetic):
    """Operations in the dtype of the sums, to nearest; `narrow` rounds to results."""

    def __init__(self, results: np.dtype[Any], saturates: bool = False) -> None:
        self.results: np.dtype[Any] = results
        self.saturates: bool = saturates

    def multiply(self, x: Array, y: Array) -> Array:
        """Return x * y."""
        return x * y

    def add(self, x: Array, y: Array) -> Array:
        """Return x + y."""
        return x + y

    def fma(self, x: Array, y: Array, z: Array) -> Array:
        """Return x * y + z, rounded once."""
        return fma(x, y, z)

    def narrow(self, x: Array) -> Array:
        """Return numbers that the dtype of the results holds."""
        return as_results(x, self.results, self.saturates).astype(x.dtype)


class _Words(Arithmetic):
    """The same operations as a formula."""

    def multiply(self, x: str, y: str) -> str:
        return f"{x} * ({y})" if " * " in y else f"{x} * {y}"

    def add(self, x: str, y: str) -> str:
        return f"{x} + {y}"

    def fma(self, x: str, y: str, z: str) -> str:
        return f"fma({x}, {y}, {z})"

    def narrow(self, x: str) -> str:
        return f"round({x})"


@dataclass(frozen=True)
class Epilogue:
    """The operations between a sum and the rounding to a result.

    Examples
    --------
    >>> [first, *others] = epilogues(Terms(("alpha",), c="c"), adds_c=True)
    >>> first.words
    'sum * alpha + c'
    >>> [other.words for other in others]
    ['fma(sum, alpha, c)']
    """

    #: the formula, where fma is a fused multiply-add, and round means to the dtype of
    #: the results
    words: str = "sum"
    #: whether c is added here, not by the accumulators
    adds_c: bool = False
    factors: Factors = "product"
    fused: Fused = "nothing"
    rounds: Rounds = "once"
    #: whether the bias is added before c
    bias_first: bool = False

    def apply(self, total: Any, terms: Terms, using: Arithmetic) -> Any:
        """Return the results of sums, not yet rounded to their dtype."""
        factors = [*terms.factors] if self.factors != "none" else []
        if self.factors == "last first":
            factors.reverse()
        if self.factors == "product" and factors:
            factors = [reduce(using.multiply, factors)]
        if self.rounds == "sum":
            total = using.narrow(total)
        *some, last = factors or [None]
        for factor in some:
            total = using.multiply(total, factor)
        for is_bias, value in self._added(terms):
            fuses_c = self.fused == "c" and not is_bias and terms.beta is not None
            rounds = is_bias and self.rounds == "before bias"
            if last is not None and (self.fused != "sum" or rounds):
                total, last = using.multiply(total, last), None
            if rounds:
                total = using.narrow(total)
            if fuses_c:
                total = using.fma(terms.beta, value, total)
                continue
            if not is_bias and terms.beta is not None:
                value = using.multiply(terms.beta, value)
            if last is None:
                total = using.add(total, value)
            else:
                total, last = using.fma(total, last, value), None
        return total if last is None else using.multiply(total, last)

    def _added(self, terms: Terms) -> Iterator[tuple[bool, Any]]:
        """Yield what is added: whether it is the bias, and its value."""
        found = [(False, terms.c)] * self.adds_c
        found += [(True, terms.bias)] * (terms.bias is not None)
        yield from reversed(found) if self.bias_first else found


def epilogues(
    names: Terms,
    *,
    adds_c: bool,
    narrows: bool = False,
    exact: bool = False,
    scales: bool = True,
    of: str = "sum",
) -> list[Epilogue]:
    """Return all epilogues of these terms that differ, the simplest first.

    Parameters
    ----------
    names : Terms
        The names of the terms.
    adds_c : bool
        Whether c is added here.
    narrows : bool
        Whether results have fewer bits than sums.
    exact : bool
        Whether all factors are powers of two: fused operations make no difference.
    scales : bool
        Whether the factors multiply here.
    of : str
        The name of the sum.
    """
    found: dict[str, Epilogue] = {}
    orders: Sequence[Factors] = get_args(Factors)[:3] if scales else ("none",)
    fuses: Sequence[Fused] = ("nothing",) if exact else get_args(Fused)
    rounds: Sequence[Rounds] = get_args(Rounds) if narrows else ("once",)
    for rounding, bias_first, order, fused in product(
        rounds, (False, True), orders, fuses
    ):
        one = Epilogue("", adds_c, order, fused, rounding, bias_first)
        words = one.apply(of, names, _Words())
        if words != f"round({of})":  # which is rounded at the end anyway
            found.setdefault(words, replace(one, words=words))
    return [*found.values()]


# -- arithmetic ------------------------------------------------------------------------


def as_results(total: Array, dtype: np.dtype[Any], saturates: bool) -> Array:
    """Return sums as results, to nearest."""
    if total.dtype == dtype:
        return total
    with np.errstate(all="ignore"):
        form = format_of_dtype(dtype)
        if saturates and form is not None:
            total = np.clip(total, -form.max, form.max)
        return total.astype(dtype)


def fma(x: Array, y: Array, z: Array) -> Array:
    """Return x * y + z of float32 or float64 numbers, rounded once."""
    x, y, z = np.broadcast_arrays(x, y, z)
    if x.dtype == np.float64:
        terms = (v.reshape(-1, 1, 1) for v in (x, y, z))
        chains: Array = matmul(*terms, device="A100", accumulator="float64")
        return chains.reshape(x.shape)
    with np.errstate(all="ignore"):
        exact, added = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
        total = exact + added
        # The error of the sum is a float64 number (Knuth's TwoSum). An inexact sum is
        # rounded to odd, so that the second rounding is that of the exact sum.
        part = total - exact
        error = (exact - (total - part)) + (added - part)
        bits = np.atleast_1d(total).view(np.int64)
        even = np.isfinite(error) & (error != 0) & (bits.reshape(x.shape) & 1 == 0)
        toward = np.where((error > 0) == (total > 0), 1, -1)
        odd = bits.reshape(x.shape) + np.where(even, toward, 0)
        found: Array = np.atleast_1d(odd).view(np.float64).astype(np.float32)
    return found.reshape(x.shape)


def is_exact(factor: Any) -> bool:
    """Return whether factors are powers of two, so that products are exact."""
    return bool((np.abs(np.frexp(np.asarray(factor, np.float64))[0]) == 0.5).all())
