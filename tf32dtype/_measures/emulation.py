"""The error of exact and emulated products, compared with the exact product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._integer_products.schemes import Scheme
from .._integer_products.truncation import moduli_needed, span
from .._matmul.matmul import matmul
from .ulps import ulp_distance

Array = NDArray[Any]


class Result(NamedTuple):
    """How far a product is from the exact one."""

    name: str
    #: the emulated precision; None: another one
    scheme: Scheme | None
    #: the share of elements that are the exact ones, rounded once
    correct: float
    #: the largest distance from these; None if a finite one became Inf or NaN
    ulps: int | None
    #: the largest error relative to the sum of the products' magnitudes; inf for NaN
    error: float


class Needed(NamedTuple):
    """The spans of exponents in rows, and the moduli that truncate no number."""

    row_span: int
    column_span: int
    moduli: int | None


class Emulation(NamedTuple):
    """The products of two matrices in several precisions."""

    #: float32 or float64, the dtype of operands and results
    dtype: np.dtype[Any]
    results: Sequence[Result]
    #: NumPy's products in float32 and float64
    native: Sequence[Result]
    needed: Needed

    def accurate_as(self, native: Result) -> list[Result]:
        """Return the first result of each kind that is as accurate as NumPy's."""
        return self._first(lambda result: result.error <= native.error)

    @property
    def has_emulated(self) -> bool:
        """Whether a precision is emulated, and not only "exact" is given."""
        return any(result.scheme is not None for result in self.results)

    def correct(self) -> list[Result]:
        """Return the first result of each kind that has no wrong element."""
        return self._first(lambda result: result.correct == 1)

    def _first(self, suffices: Callable[[Result], bool]) -> list[Result]:
        found: dict[tuple[str, bool], Result] = {}
        emulated = [(x.scheme, x) for x in self.results if x.scheme is not None]
        for scheme, result in sorted(emulated, key=lambda pair: pair[0].number):
            if suffices(result):
                found.setdefault((scheme.kind, scheme.is_fast), result)
        return [*found.values()]


def measure(
    a: Array, b: Array, names: Sequence[str], advance: Callable[[], None]
) -> Emulation:
    """Compare products in emulated precisions with the exact product.

    Parameters
    ----------
    a, b : numpy.ndarray
        Finite matrices, (m, k) and (k, n). If one is of float64 or of integers, both
        are multiplied in float64, else in float32.
    names : sequence of str
        "exact", or names of emulated precisions.
    advance : callable
        Called after each name.
    """
    narrow = all(x.dtype.itemsize <= 4 and x.dtype.kind not in "biu" for x in (a, b))
    dtype = np.dtype(np.float32 if narrow else np.float64)
    x, y = a.astype(dtype), b.astype(dtype)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        exact: Array = np.asarray(matmul(x, y, precision="exact", dtype=dtype))
        wide = np.asarray(matmul(x, y, precision="exact", dtype=np.float64))
        magnitudes = np.abs(wide_x) @ np.abs(wide_y)

    def compared(name: str, product: Array, unrounded: Array) -> Result:
        wrong = unrounded != wide
        errors = np.abs(unrounded[wrong] - wide[wrong]) / magnitudes[wrong]
        errors[np.isnan(errors)] = np.inf
        apart = ulp_distance(product, exact)
        lost = np.any(~np.isfinite(product) & (product != exact))
        scheme = Scheme.of(name)
        return Result(
            name if scheme is None else scheme.name,
            scheme,
            float(np.mean(apart == 0)) if apart.size else 1.0,
            None if lost else int(np.max(apart, initial=0)),
            float(np.max(errors, initial=0.0)),
        )

    results = []
    with np.errstate(all="ignore"):
        native = []
        for kind in (np.float32, np.float64):
            product: Array = np.matmul(a.astype(kind), b.astype(kind))
            row = compared(kind.__name__, product.astype(dtype), product)
            native.append(row)
        for name in names:
            own: Any = name
            product = np.asarray(matmul(x, y, precision=own))
            unrounded = product
            if dtype != np.float64:
                unrounded = np.asarray(matmul(x, y, precision=own, dtype=np.float64))
            results.append(compared(name, product, unrounded))
            advance()
    rows, columns = wide_x, wide_y.T
    needed = Needed(span(rows), span(columns), moduli_needed(rows, columns))
    return Emulation(dtype, results, native, needed)
