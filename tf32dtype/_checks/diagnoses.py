"""Name the faults of a product: each known fault is tried as a hypothesis.

A fault is a changed product: a transposed operand, a missing bias. It explains the
results that are within the changed product's bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._formats.quantize import Rounding, quantize
from .._formats.table import formats
from .k_ranges import k_ranges
from .places import where
from .product import Product, Values
from .unit_bounds import Format
from .units import Unit

Array = NDArray[Any]

#: Wrong rows and columns that hypotheses are tried on.
_SIDE = 64
#: Rows and columns that refute most hypotheses.
_FEW = 8
#: The share of the wrong elements that a fault must explain, and the least share that a
#: fault of parts of the operands explains.
_ENOUGH, _POSSIBLE = 0.98, 0.3
#: The largest ratio of errors that are of one origin.
_SIMILAR = 6.0
#: Formats and roundings of operands that may have lost bits.
_NARROWER = ("tf32", "bfloat16", "float16", "float8_e4m3fn")
_ROUNDINGS: tuple[Rounding, ...] = ("ties_to_even", "ties_to_away", "toward_zero")
_SHIFTS = (1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64, 128, -128)


class Diagnosis(NamedTuple):
    """A fault that explains wrong elements."""

    #: the fault in one sentence
    text: str
    #: share of the wrong elements, of a sample, that it explains
    explains: float


@dataclass(frozen=True)
class Case:
    """A matrix of results with wrong elements, and a sample of these."""

    product: Product
    d: Array
    #: share of its bound that each result is off
    shares: Array

    @property
    def wrong(self) -> Array:
        """Which elements are beyond their bound."""
        found: Array = self.shares > 1
        return found

    @cached_property
    def sample(self) -> tuple[Array, Array]:
        """Rows and columns that have most of the wrong elements."""
        return self._lines(_SIDE)

    @cached_property
    def _few(self) -> tuple[Array, Array]:
        return self._lines(_FEW)

    def _lines(self, side: int) -> tuple[Array, Array]:
        wrong = self.wrong
        rows = np.argsort(-wrong.sum(1), kind="stable")[:side]
        columns = np.argsort(-wrong[rows].sum(0), kind="stable")[:side]
        return np.sort(rows), np.sort(columns)

    def explains(self, changed: Product | None) -> float:
        """Return the share of the sampled wrong elements that a change explains."""
        if changed is None or changed.shape != self.product.shape:
            return 0.0
        changed = replace(changed, exponents=None)  # those of other operands
        for rows, columns in (self._few, self.sample):  # few elements refute most
            values = changed.part(rows, columns).values()
            within = values.shares(self.d[rows][:, columns]) <= 1
            share = float(within[self.wrong[rows][:, columns]].mean())
            if share < _POSSIBLE:
                return 0.0
        return share

    def share(self, values: Values) -> float:
        """Return the share of the sampled wrong elements within these bounds."""
        rows, columns = self.sample
        within = values.shares(self.d[rows][:, columns]) <= 1
        return float(within[self.wrong[rows][:, columns]].mean())


def diagnose(case: Case) -> list[Diagnosis]:
    """Return what explains wrong elements: the simplest faults first."""
    for faults in _FAULTS:
        with np.errstate(all="ignore"):
            found = [x for x in faults(case) if x.explains >= _ENOUGH]
        if found:
            return found
    return []


# -- results that are not finite, or were not written ----------------------------------


def _not_finite(case: Case) -> Iterator[Diagnosis]:
    d, wrong = case.d.astype(np.float64), case.wrong
    odd = wrong & ~np.isfinite(d)
    if not odd.any():
        return
    share = float(odd.sum()) / float(wrong.sum())
    names = []
    if np.isnan(d[odd]).any():
        names.append("NaN")
    if np.isinf(d[odd]).any():
        names.append("Inf")
    text = f"{' and '.join(names)} where the operands give finite results: {where(odd)}"
    yield Diagnosis(text, 1.0 if share > 0.5 else share)


def _not_written(case: Case) -> Iterator[Diagnosis]:
    wrong = case.wrong
    values = case.d[wrong]
    if len(values) < 2 or not (values == values[0]).all():
        return
    if values[0] == 0 and _relu(case) >= _ENOUGH:
        yield Diagnosis("negative results are 0, as after a ReLU", 1.0)
        return
    zero = values[0] == 0
    what = "0" if zero else f"{float(values[0]):g}"
    end = ", as if they were never written" if zero else ""
    yield Diagnosis(f"all wrong results are {what}{end}: {where(wrong)}", 1.0)


# -- other products --------------------------------------------------------------------


def _changed(case: Case) -> Iterator[Diagnosis]:
    for text, change in _CHANGES:
        share = case.explains(change(case.product))
        if share:
            yield Diagnosis(text, share)
    yield from _shifted(case)


def _with(p: Product, name: str, value: Array | None) -> Product:
    change: dict[str, Any] = {name: value}
    return replace(p, **change)


def _transposed(p: Product) -> Product | None:
    if p.a.shape[0] != p.a.shape[1]:
        return None
    return replace(p, a=p.a.T)


def _other_transposed(p: Product) -> Product | None:
    if p.b.shape[0] != p.b.shape[1]:
        return None
    return replace(p, b=p.b.T)


def _result_transposed(p: Product) -> Product | None:
    m, n = p.shape
    plain = p.c is None and p.bias is None and p.scale_a is None and p.scale_b is None
    return replace(p, a=p.b.T, b=p.a.T) if m == n and plain else None


def _swapped(p: Product) -> Product | None:
    same = p.a.shape == p.b.shape and p.a.shape[0] == p.a.shape[1]
    return replace(p, a=p.b, b=p.a) if same else None


def _without(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        return None if getattr(p, name) is None else _with(p, name, None)

    return change


def _twice(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        if x is None:
            return None
        power = name.startswith("scale")
        return _with(p, name, x * x if power else 2 * x)

    return change


def _bias_by_rows(p: Product) -> Product | None:
    m, n = p.shape
    if p.bias is None or m != n:
        return None
    return replace(p, bias=np.broadcast_to(p.bias, p.shape).T)


def _inverse(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        return None if x is None or not x.all() else _with(p, name, 1 / x)

    return change


def _both_scales(p: Product) -> Product | None:
    if p.scale_a is None or p.scale_b is None:
        return None
    return replace(p, scale_a=None, scale_b=None)


def _of_alpha(p: Product) -> Product | None:
    return None if p.alpha == 1 else replace(p, alpha=1.0)


def _of_beta(p: Product) -> Product | None:
    return None if p.c is None or p.beta == 1 else replace(p, beta=1.0)


#: Faults of the whole product, in words.
_CHANGES: tuple[tuple[str, Callable[[Product], Product | None]], ...] = (
    ("c is missing", _without("c")),
    ("c is added twice", _twice("c")),
    ("beta is not applied: c is added as it is", _of_beta),
    ("alpha is not applied", _of_alpha),
    ("the bias is missing", _without("bias")),
    ("the bias is added twice", _twice("bias")),
    ("the bias is added along the wrong axis: to rows, not to columns", _bias_by_rows),
    ("scale_a and scale_b are not applied", _both_scales),
    ("scale_a is not applied", _without("scale_a")),
    ("scale_b is not applied", _without("scale_b")),
    ("scale_a is applied twice", _twice("scale_a")),
    ("scale_b is applied twice", _twice("scale_b")),
    ("the results are divided by scale_a", _inverse("scale_a")),
    ("the results are divided by scale_b", _inverse("scale_b")),
    ("a is transposed: the results are those of a.T @ b", _transposed),
    ("b is transposed: the results are those of a @ b.T", _other_transposed),
    ("d is transposed", _result_transposed),
    ("the operands are exchanged: the results are those of b @ a", _swapped),
)


def _shifted(case: Case) -> Iterator[Diagnosis]:
    """Try operands that begin at another row, column or k."""
    p = case.product
    for by in _SHIFTS:
        tries = (
            (f"row i of a is used for row i {_by(by)}", 0, "a", p.a),
            (f"column j of b is used for column j {_by(by)}", 1, "b", p.b),
            (f"k of a is shifted by {by}", 1, "a", p.a),
            (f"k of b is shifted by {by}", 0, "b", p.b),
        )
        for text, axis, name, x in tries:
            if abs(by) >= x.shape[axis]:
                continue
            share = case.explains(_with(p, name, np.roll(x, by, axis)))
            if share >= _ENOUGH * (1 - abs(by) / x.shape[axis]) * 0.9:
                yield Diagnosis(text, max(share, _ENOUGH))
                return


def _by(by: int) -> str:
    return f"+ {by}" if by > 0 else f"- {-by}"


def _relu(case: Case) -> float:
    rows, columns = case.sample
    values = case.product.part(rows, columns).values()
    return case.share(Values(np.maximum(values.exact, 0), values.bound))


# -- factors and rank-one terms --------------------------------------------------------


def _factors(case: Case) -> Iterator[Diagnosis]:
    """Fit a factor of all results, of rows or columns, and zero points."""
    p, wrong = case.product, case.wrong
    rows, columns = case.sample
    exact, bound = p.part(rows, columns).values()
    d = case.d[rows][:, columns].astype(np.float64)
    used = wrong[rows][:, columns] & np.isfinite(d) & np.isfinite(exact)
    if not used.any():
        return
    exact = np.where(used, exact, 0.0)
    weights = np.where(used & (bound > 0) & np.isfinite(bound), 1 / bound, 0.0)
    for text, axis in (
        ("all results", None),
        ("the results of a row", 1),
        ("the results of a column", 0),
    ):
        top = (weights**2 * exact * d).sum(axis, keepdims=True)
        low = (weights**2 * exact**2).sum(axis, keepdims=True)
        count = used.sum(axis, keepdims=True)
        with np.errstate(all="ignore"):
            factor = np.where(low > 0, top / low, 1.0)
        if axis is not None and (np.min(count[count > 0], initial=9) < 4):
            continue
        share = case.share(Values(factor * exact, bound * np.abs(factor)))
        if share >= _ENOUGH:
            shown = np.unique(np.round(factor[count > 0], 6))
            some = (
                f"{shown[0]:.6g}"
                if len(shown) == 1
                else (f"{shown[0]:.6g} to {shown[-1]:.6g}")
            )
            yield Diagnosis(f"{text} are multiplied by {some}: a scale is wrong", share)
            return
    yield from _zero_points(case, exact, bound, d, weights)


def _zero_points(
    case: Case, exact: Array, bound: Array, d: Array, weights: Array
) -> Iterator[Diagnosis]:
    p = case.product
    rows, columns = case.sample
    residual = np.where(np.isfinite(d), d - exact, 0.0)
    for name, sums in (
        ("a", np.broadcast_to(p.b[:, columns].sum(0), exact.shape)),
        ("b", np.broadcast_to(p.a[rows].sum(1)[:, None], exact.shape)),
    ):
        low = (weights**2 * sums**2).sum()
        if not low > 0:
            continue
        point = float((weights**2 * sums * residual).sum() / low)
        share = case.share(Values(exact + point * sums, bound * (1 + 2.0**-20)))
        if share >= _ENOUGH:
            yield Diagnosis(
                f"the zero point of {name} is missing or wrong: the results are those"
                f" of {name} {'+' if point > 0 else '-'} {abs(point):.6g}",
                share,
            )


# -- ranges of k -----------------------------------------------------------------------


def _ranges(case: Case) -> Iterator[Diagnosis]:
    """Find ranges of k that are missing or counted twice."""
    rows, columns = case.sample
    part = case.product.part(rows, columns)
    d = case.d[rows][:, columns].astype(np.float64)
    wrong = case.wrong[rows][:, columns]
    for first, last, times in k_ranges(part, d, wrong):
        changed = replace(part, a=part.a.copy())
        changed.a[:, first:last] *= times
        share = case.share(changed.values())
        if share >= _ENOUGH:
            what = {0: "is missing", 2: "is counted twice"}.get(
                times, f"counts {times} times"
            )
            ks = f"k {first}" if last == first + 1 else f"k {first} to {last - 1}"
            yield Diagnosis(f"{ks} {what}: {where(case.wrong)}", share)
            return


# -- narrower arithmetic ---------------------------------------------------------------


def _narrow(case: Case) -> Iterator[Diagnosis]:
    """Try operands of fewer bits, and results that were not rounded to nearest."""
    p = case.product
    for name, rounding in product(_NARROWER, _ROUNDINGS):
        a, b = (_rounded(x, name, rounding) for x in (p.a, p.b))
        if np.array_equal(a, p.a) and np.array_equal(b, p.b):
            continue
        share = case.explains(replace(p, a=a, b=b, unit=_any_order(p.unit)))
        if share >= _ENOUGH:
            yield Diagnosis(f"the operands were rounded to {name}, {rounding}", share)
            return
    rows, columns = case.sample
    values = p.part(rows, columns).values()
    form = Format.of(p.dtype)
    ulp = form.quantum(np.abs(values.exact) + values.bound)
    if case.share(Values(values.exact, values.bound + ulp)) >= _ENOUGH and (
        form.kept < p.unit.form.kept
    ):
        yield Diagnosis(f"sums were not rounded to the nearest {p.dtype.name}", 1.0)
        return


def _accumulated(case: Case) -> Iterator[Diagnosis]:
    """Try sums in a narrower format."""
    for dtype in (np.dtype(np.float16), formats["bfloat16"].dtype):
        if _is_accumulated(case, dtype):
            yield Diagnosis(
                f"sums were accumulated in {dtype.name}: errors are as large as"
                f" those of {dtype.name} sums",
                1.0,
            )
            return


def _is_accumulated(case: Case, dtype: np.dtype[Any]) -> bool:
    """Return whether errors are about those of a chain of sums in a narrow format."""
    p, form = case.product, Format.of(dtype)
    if form.kept >= p.unit.form.kept:
        return False
    rows, columns = case.sample
    if case.explains(replace(p, unit=Unit(dtype.name, form, p.unit.least))) < _ENOUGH:
        return False
    part = p.part(rows, columns)
    exact = part.values().exact
    sums = np.zeros(part.shape, dtype)
    with np.errstate(all="ignore"):
        for k in range(p.k):
            term = np.outer(part.a[:, k], part.b[k])
            sums = (sums.astype(np.float64) + term).astype(dtype)
        chain = np.abs(sums.astype(np.float64) - part.a @ part.b)
        found = np.abs(case.d[rows][:, columns].astype(np.float64) - exact)
        ratio = np.median(found) / np.median(chain * abs(p.alpha))
    return bool(1 / _SIMILAR < ratio < _SIMILAR)


def _any_order(unit: Unit) -> Unit:
    """Return a unit with sums in the same format, for any operands."""
    return Unit(unit.name, unit.form, (-126, -126))


def _rounded(x: Array, name: str, rounding: Rounding) -> Array:
    """Return numbers rounded to a format, in float64."""
    dtype = np.dtype(np.float16) if name == "float16" else formats[name].dtype
    with np.errstate(all="ignore"):
        found = (
            quantize(x, dtype, rounding=rounding)
            if name in formats
            else (x.astype(dtype))
        )
        return found.astype(np.float64)


_FAULTS = (
    _not_finite, _not_written, _changed, _narrow, _factors, _ranges, _accumulated,
)  # fmt: skip
