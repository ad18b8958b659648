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
from .unit_bounds import FLOAT32, Format
from .units import Unit

Array = NDArray[Any]

#: Wrong rows and columns that hypotheses are tried on.
_SIDE = 64
#: Rows and columns that refute most hypotheses.
_FEW = 8
#: The fewest wrong elements that a hypothesis can explain other than by chance.
_LEAST = 8
#: The share of the wrong elements that a fault must explain, and the least share that a
#: fault of parts of the operands explains.
_ENOUGH, _POSSIBLE = 0.98, 0.3
#: A fault is sure if it leaves this share of the errors, as a median.
_SURE = 0.1
#: Formats and roundings of operands that may have lost bits.
_NARROWER = ("tf32", "bfloat16", "float16", "float8_e4m3fn")
_ROUNDINGS: tuple[Rounding, ...] = ("ties_to_even", "ties_to_away", "toward_zero")
_DIRECTED: tuple[Rounding, ...] = ("toward_zero", "toward_negative", "toward_positive")
_SHIFTS = (1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64, 128, -128)
#: The most rows or columns among which a permutation is searched.
_PERMUTED = 4096


class Diagnosis(NamedTuple):
    """A fault that explains wrong elements."""

    #: the fault in one sentence
    text: str
    #: share of the wrong elements, of a sample, that it explains
    explains: float = 1.0
    #: median of the errors that it leaves, relative to those without it
    left: float = 0.0

    @property
    def line(self) -> str:
        """The sentence, which says if the fault is not sure."""
        return self.text if self.left <= _SURE else f"possible: {self.text}"


class Fit(NamedTuple):
    """How well a hypothesis explains the wrong elements of a sample."""

    explains: float
    left: float


@dataclass(frozen=True)
class Case:
    """A matrix of results with wrong elements, and a sample of these."""

    #: the product, and its results
    product: Product
    d: Array
    #: share of its bound that each result is off
    shares: Array
    #: the product from which rows and columns were chosen, and these
    whole: Product
    rows: Array
    columns: Array
    #: operands before they were rounded to the formats of the unit
    given: tuple[Array, Array]

    @cached_property
    def wrong(self) -> Array:
        """Which elements are beyond their bound."""
        found: Array = self.shares > 1
        return found

    @cached_property
    def sample(self) -> tuple[Array, Array]:
        """Rows and columns that have wrong elements."""
        return self._lines(_SIDE)

    def _lines(self, side: int) -> tuple[Array, Array]:
        rows = _spread(np.flatnonzero(self.wrong.any(1)), side)
        columns = _spread(np.flatnonzero(self.wrong[rows].any(0)), side)
        return rows, columns

    def finite(self) -> Case:
        """Return the case without the elements that are Inf or NaN."""
        odd = ~np.isfinite(self.d.astype(np.float64))
        return replace(self, shares=np.where(odd, 0, self.shares))

    def part(self, rows: Array, columns: Array) -> tuple[Values, Array, Array]:
        """Return values and results of rows and columns, and which are wrong."""
        values = self.product.part(rows, columns).values()
        return values, self.d[rows][:, columns], self.wrong[rows][:, columns]

    def explains(self, changed: Product | None) -> Fit:
        """Return how well a change of the whole product explains the sample."""
        if changed is None or changed.shape != self.whole.shape:
            return Fit(0.0, 1.0)
        changed = replace(changed, exponents=None)  # those of other operands
        fit = Fit(0.0, 1.0)
        for side in (_FEW, _SIDE):  # few elements refute most hypotheses
            rows, columns = self._lines(side)
            part = changed.part(self.rows[rows], self.columns[columns])
            fit = self.fit(part.values(), rows, columns)
            if fit.explains < _POSSIBLE:
                break
        return fit

    def fit(
        self, values: Values, rows: Array | None = None, columns: Array | None = None
    ) -> Fit:
        """Return how well values explain the wrong elements of rows and columns."""
        if rows is None or columns is None:
            rows, columns = self.sample
        wrong = self.wrong[rows][:, columns]
        after = values.shares(self.d[rows][:, columns])[wrong]
        before = self.shares[rows][:, columns][wrong]
        if not len(after):
            return Fit(0.0, 1.0)
        left = np.median(after) / max(float(np.median(before)), 1e-300)
        return Fit(float((after <= 1).mean()), float(left))


def _spread(indices: Array, count: int) -> Array:
    """Return up to `count` of the indices, at equal distances."""
    if len(indices) <= count:
        return indices
    found: Array = indices[np.arange(count) * len(indices) // count]
    return found


def diagnose(case: Case) -> list[str]:
    """Return what explains wrong elements: the simplest faults first."""
    lines: list[str] = []
    with np.errstate(all="ignore"):
        lines += [x.text for x in _not_finite(case)]
        case = case.finite()
        lines += [x.text for x in _too_large(case)]
        if lines and case.wrong.sum() < _LEAST:
            return lines
        unsure: list[Diagnosis] = []
        for faults in _FAULTS:
            if faults is not _not_written and case.wrong.sum() < _LEAST:
                break
            found = [x for x in faults(case) if x.explains >= _ENOUGH]
            sure = [x for x in found if x.left <= _SURE]
            if sure:
                best = min(sure, key=lambda x: x.left)
                return [*lines, best.line]
            unsure += found
    unsure.sort(key=lambda x: x.left)
    return [*lines, *(x.line for x in unsure[:2])]


# -- results that are not finite, or were not written ----------------------------------


def _not_finite(case: Case) -> Iterator[Diagnosis]:
    d, wrong = case.d.astype(np.float64), case.wrong
    odd = wrong & ~np.isfinite(d)
    if not odd.any():
        return
    names = []
    if np.isnan(d[odd]).any():
        names.append("NaN")
    if np.isinf(d[odd]).any():
        names.append("Inf")
    yield Diagnosis(
        f"{' and '.join(names)} where the operands give finite results: {where(odd)}"
    )


def _too_large(case: Case) -> Iterator[Diagnosis]:
    """Find results that are larger than the sum of all magnitudes."""
    rows, columns = case.sample
    if not len(rows) or not len(columns):
        return
    p = case.product.part(rows, columns)
    a, b = p.scaled()
    most = np.abs(a) @ np.abs(b)
    for x in (p.c, p.bias):
        most = most if x is None else most + np.abs(x)
    d = np.abs(case.d[rows][:, columns].astype(np.float64))
    large = case.wrong[rows][:, columns] & (d > 1e3 * most)
    if large.sum() > 0.1 * case.wrong[rows][:, columns].sum():
        yield Diagnosis(
            "results are more than 1000 times the sum of all magnitudes, as if memory"
            f" was not initialized: {where(case.wrong)}"
        )


def _not_written(case: Case) -> Iterator[Diagnosis]:
    wrong = case.wrong
    values = case.d[wrong]
    if len(values) < 2 or not (values == values[0]).all():
        return
    if values[0] == 0 and _is_relu(case):
        yield Diagnosis(
            "negative results are 0, as after a ReLU. Check the results before it"
        )
        return
    zero = values[0] == 0
    what = "0" if zero else f"{float(values[0]):g}"
    end = ", as if they were never written" if zero else ""
    yield Diagnosis(f"all wrong results are {what}{end}: {where(wrong)}")


def _is_relu(case: Case) -> bool:
    """Return whether all negative results are 0, and only these."""
    rows = _spread(np.arange(case.d.shape[0]), _SIDE)
    columns = _spread(np.arange(case.d.shape[1]), _SIDE)
    values, d, _ = case.part(rows, columns)
    negative = values.exact < -values.bound
    positive = values.exact > values.bound
    some = negative.sum() >= _LEAST
    zeros = (d == 0)[negative].mean() if some else 0.0
    others = (values.shares(d) <= 1)[positive].mean() if positive.any() else 1.0
    return bool(zeros >= _ENOUGH and others >= _ENOUGH)


# -- other products --------------------------------------------------------------------


def _changed(case: Case) -> Iterator[Diagnosis]:
    for text, change in _CHANGES:
        yield Diagnosis(text, *case.explains(change(case.whole)))


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


def _exchanged_scales(p: Product) -> Product | None:
    if p.scale_a is None or p.scale_b is None or p.scale_a.shape != p.scale_b.T.shape:
        return None
    return replace(p, scale_a=p.scale_b.T, scale_b=p.scale_a.T)


def _next_scale(name: str, by: int) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x, axis = getattr(p, name), 1 if name == "scale_a" else 0
        if x is None or x.shape[axis] < 2:
            return None
        return _with(p, name, np.roll(x, -by, axis))

    return change


def _first_scale(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x, axis = getattr(p, name), 1 if name == "scale_a" else 0
        if x is None or x.shape[axis] < 2:
            return None
        return _with(p, name, np.repeat(x.take([0], axis), x.shape[axis], axis))

    return change


def _in_other_order(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        return _with(p, name, np.ravel(x).reshape(x.shape[::-1]).T)

    return change


def _reversed(p: Product) -> Product:
    return replace(p, a=p.a[:, ::-1])


def _negated(name: str) -> Callable[[Product], Product | None]:
    def change(p: Product) -> Product | None:
        x = getattr(p, name)
        return None if x is None else _with(p, name, -x)

    return change


def _c_transposed(p: Product) -> Product | None:
    m, n = p.shape
    if p.c is None or m != n:
        return None
    return replace(p, c=np.broadcast_to(p.c, p.shape).T)


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
    ("scale_a and scale_b are exchanged", _exchanged_scales),
    ("scale_a is that of the next range of k", _next_scale("scale_a", 1)),
    ("scale_b is that of the next range of k", _next_scale("scale_b", 1)),
    ("scale_a is that of the range of k before", _next_scale("scale_a", -1)),
    ("scale_b is that of the range of k before", _next_scale("scale_b", -1)),
    ("scale_a is always that of the first range of k", _first_scale("scale_a")),
    ("scale_b is always that of the first range of k", _first_scale("scale_b")),
    ("a is read in column order", _in_other_order("a")),
    ("b is read in column order", _in_other_order("b")),
    ("k of a is reversed", _reversed),
    ("c is subtracted", _negated("c")),
    ("the bias is subtracted", _negated("bias")),
    ("c is transposed", _c_transposed),
    ("the operands are exchanged: the results are those of b @ a", _swapped),
)


def _shifted(case: Case) -> Iterator[Diagnosis]:
    """Try operands that begin at another row, column or k."""
    p = case.whole
    for by in _SHIFTS:
        tries = (
            (f"row i of d has the results of row i {_by(-by)}", 0, "a", p.a),
            (f"column j of d has the results of column j {_by(-by)}", 1, "b", p.b),
            (f"k of a is shifted by {by}", 1, "a", p.a),
            (f"k of b is shifted by {by}", 0, "b", p.b),
        )
        for text, axis, name, x in tries:
            if abs(by) >= x.shape[axis]:
                continue
            moved = np.roll(x, by, axis)
            fit = case.explains(_with(p, name, moved))
            if fit.explains < _ENOUGH and text.startswith("k "):
                outside = slice(0, by) if by > 0 else slice(by, None)
                moved[(slice(None), outside) if axis else outside] = 0
                fit = case.explains(_with(p, name, moved))
            if fit.explains >= _ENOUGH * (1 - abs(by) / x.shape[axis]) * 0.9:
                yield Diagnosis(text, max(fit.explains, _ENOUGH), fit.left)


def _by(by: int) -> str:
    return f"+ {by}" if by > 0 else f"- {-by}"


def _permuted(case: Case) -> Iterator[Diagnosis]:
    """Find rows or columns that have the results of other ones."""
    m, n = case.d.shape
    rows, columns = case.sample
    for name, axis, count in (("row", 0, m), ("column", 1, n)):
        if count > _PERMUTED:
            continue
        few, lines = (columns[:12], rows) if axis == 0 else (rows[:12], columns)
        every = np.arange(count)
        at = (every, few) if axis == 0 else (few, every)
        values, d, _ = case.part(*at)
        exact, bound, results = (
            x if axis == 0 else x.T
            for x in (values.exact, values.bound, d.astype(np.float64))
        )
        found = {}
        for i in lines:
            off = np.abs(results[i] - exact) / np.maximum(bound, 1e-300)
            near = int(np.argmin(np.max(off, axis=1)))
            if np.max(off[near]) <= 1 and near != i:
                found[int(i)] = near
        if len(found) >= _ENOUGH * len(lines):
            some = ", ".join(f"{i} from {j}" for i, j in [*found.items()][:4])
            yield Diagnosis(f"{name}s of d have the results of other {name}s: {some}")


# -- factors and rank-one terms --------------------------------------------------------


def _factors(case: Case) -> Iterator[Diagnosis]:
    """Fit a factor of all results, of rows or columns, and zero points."""
    rows, columns = case.sample
    values, results, wrong = case.part(rows, columns)
    d = results.astype(np.float64)
    used = wrong & np.isfinite(d) & np.isfinite(values.exact)
    if used.sum() < _LEAST:
        return
    exact = np.where(used, values.exact, 0.0)
    bound = values.bound
    weights = np.where(used & (bound > 0) & np.isfinite(bound), 1 / bound, 0.0)
    for text, axis in (
        ("the results are", None),
        ("the results of a row are", 1),
        ("the results of a column are", 0),
    ):
        top = (weights**2 * exact * np.where(used, d, 0)).sum(axis, keepdims=True)
        low = (weights**2 * exact**2).sum(axis, keepdims=True)
        count = used.sum(axis, keepdims=True)
        factor = np.where(low > 0, top / low, 1.0)
        if axis is not None and np.min(count[count > 0], initial=9) < 4:
            continue
        scaled = values._replace(exact=factor * exact, bound=bound * np.abs(factor))
        fit = case.fit(scaled)
        shown = factor[count > 0]
        if np.median(np.abs(shown)) < 1e-3 or fit.explains < _ENOUGH:
            continue
        yield Diagnosis(f"{text} {_factor(shown)}: {where(case.wrong)}", *fit)
        return
    yield from _zero_points(case, values, d, used, weights)


def _factor(shown: Array) -> str:
    """Return the factor of results in words."""
    low, high = float(shown.min()), float(shown.max())
    if high - low > 1e-4 * abs(high):
        return f"multiplied by {low:.4g} to {high:.4g}, so a scale is wrong"
    whole = round(low)
    if abs(low - whole) < 1e-3 and whole in (-1, 2, 3, 4):
        ends = {-1: "-1, so the sign is wrong", 2: "2, as if added twice"}
        return f"multiplied by {ends.get(whole, whole)}"
    return f"multiplied by {low:.5g}, so a scale is wrong"


def _zero_points(
    case: Case, values: Values, d: Array, used: Array, weights: Array
) -> Iterator[Diagnosis]:
    rows, columns = case.sample
    a, b = case.product.part(rows, columns).scaled()
    raw = case.product.part(rows, columns)
    residual = np.where(used, d - values.exact, 0.0)
    by_a = np.where(raw.a != 0, a / raw.a, np.nan)
    by_b = np.where(raw.b != 0, b / raw.b, np.nan)
    scale_a, scale_b = (float(np.nanmedian(x)) for x in (by_a, by_b))
    for name, sums, scale in (
        ("a", np.broadcast_to(b.sum(0), d.shape), scale_a),
        ("b", np.broadcast_to(a.sum(1)[:, None], d.shape), scale_b),
    ):
        low = (weights**2 * sums**2).sum()
        if not low > 0:
            continue
        point = float((weights**2 * sums * residual).sum() / low)
        moved = values._replace(exact=values.exact + point * sums)
        fit = case.fit(moved)
        value = point / (scale or 1.0)
        yield Diagnosis(
            f"the zero point of {name} is missing or wrong: the results are those of"
            f" {name} {'+' if value > 0 else '-'} {abs(value):.4g}",
            *fit,
        )


# -- ranges of k -----------------------------------------------------------------------


def _ranges(case: Case) -> Iterator[Diagnosis]:
    """Find ranges of k that are missing or counted twice."""
    rows, columns = case.sample
    part = case.product.part(rows, columns)
    d = case.d[rows][:, columns].astype(np.float64)
    wrong = case.wrong[rows][:, columns]
    for first, last, times in k_ranges(part, d, wrong):
        changed = replace(part, a=part.a.copy(), exponents=None)
        changed.a[:, first:last] *= times
        fit = case.fit(changed.values())
        if fit.explains >= _ENOUGH and last - first < part.k:
            what = {0: "is missing", 2: "is counted twice"}.get(
                times, f"counts {times} times"
            )
            ks = f"k {first}" if last == first + 1 else f"k {first} to {last - 1}"
            yield Diagnosis(f"{ks} {what}: {where(case.wrong)}", *fit)


# -- other arithmetic ------------------------------------------------------------------


def _arithmetic(case: Case) -> Iterator[Diagnosis]:
    """Try operands of more or fewer bits, and other roundings of results."""
    p = case.whole
    a, b = case.given
    if not (np.array_equal(a, p.a) and np.array_equal(b, p.b)):
        fit = case.explains(replace(p, a=a, b=b, unit=_any_order(FLOAT32_SUMS)))
        yield Diagnosis(
            'the operands were not rounded to tf32: use unit="float32"', *fit
        )
    for name, rounding in product(_NARROWER, _ROUNDINGS):
        a, b = (_rounded(x, name, rounding) for x in (p.a, p.b))
        if np.array_equal(a, p.a) and np.array_equal(b, p.b):
            continue
        fit = case.explains(replace(p, a=a, b=b, unit=_any_order(p.unit)))
        yield Diagnosis(f"the operands were rounded to {name}, {rounding}", *fit)
        if fit.explains >= _ENOUGH:
            break
    if Format.of(p.dtype).kept < p.unit.form.kept:
        yield from _directed(case)


def _directed(case: Case) -> Iterator[Diagnosis]:
    """Find results that are not rounded to nearest."""
    rows, columns = case.sample
    values, d, wrong = case.part(rows, columns)
    form = Format.of(case.product.dtype)
    clear = wrong & (values.bound < form.quantum(np.abs(values.exact)))
    if clear.sum() < _LEAST:
        return
    for rounding in _DIRECTED:
        rounded = _rounded(values.exact, case.product.dtype.name, rounding)
        same = (rounded == d.astype(np.float64))[clear].mean()
        if same >= 0.9:
            name = case.product.dtype.name
            yield Diagnosis(
                f"results were rounded to {name} {rounding}, not to nearest"
            )


def _accumulated(case: Case) -> Iterator[Diagnosis]:
    """Find sums that are numbers of a narrower format than that of the unit."""
    d = case.d.astype(np.float64)
    for name in ("bfloat16", "float16"):  # float16 has most numbers of bfloat16
        dtype = np.dtype(np.float16) if name == "float16" else formats[name].dtype
        form = Format.of(dtype)
        if form.kept >= min(case.product.unit.form.kept, Format.of(case.d.dtype).kept):
            continue
        narrow = Unit(name, form, case.product.unit.least)
        fit = case.explains(replace(case.whole, unit=narrow))
        if (d.astype(dtype).astype(np.float64) == d)[case.wrong].all():
            text = f"sums were accumulated in {name}: all results are {name} numbers"
            yield Diagnosis(text, fit.explains, 0.0)


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


#: Sums in float32 of any operands.
FLOAT32_SUMS = Unit("float32", FLOAT32, (-126, -126))

_FAULTS = (
    _not_written, _changed, _shifted, _arithmetic, _factors, _ranges, _permuted,
    _accumulated,
)  # fmt: skip
