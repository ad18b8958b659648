"""Name the faults of a product: each known fault is tried as a hypothesis.

A fault is a changed product: a transposed operand, a missing bias. It explains the
results that are within the changed product's bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._formats.quantize import Rounding
from .._formats.table import formats
from .case import SIDE, Case, spread
from .changes import CHANGES, changed
from .k_ranges import k_ranges
from .places import where
from .product import Values
from .unit_bounds import FLOAT32, Format
from .units import Unit, round_to

Array = NDArray[Any]

#: The fewest wrong elements that a hypothesis can explain other than by chance.
_LEAST = 8
#: The share of the wrong elements that a fault must explain.
_ENOUGH = 0.98
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
    rows = spread(np.arange(case.d.shape[0]), SIDE)
    columns = spread(np.arange(case.d.shape[1]), SIDE)
    values, d, _ = case.part(rows, columns)
    negative = values.exact < -values.bound
    positive = values.exact > values.bound
    some = negative.sum() >= _LEAST
    zeros = (d == 0)[negative].mean() if some else 0.0
    others = (values.shares(d) <= 1)[positive].mean() if positive.any() else 1.0
    return bool(zeros >= _ENOUGH and others >= _ENOUGH)


# -- other products --------------------------------------------------------------------


def _changed(case: Case) -> Iterator[Diagnosis]:
    for text, change in CHANGES:
        yield Diagnosis(text, *case.explains(change(case.whole)))


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
            fit = case.explains(changed(p, name, moved))
            if fit.explains < _ENOUGH and text.startswith("k "):
                outside = slice(0, by) if by > 0 else slice(by, None)
                moved[(slice(None), outside) if axis else outside] = 0
                fit = case.explains(changed(p, name, moved))
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
    raw = case.product.part(rows, columns)
    a, b = raw.scaled()
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
        other = replace(part, a=part.a.copy(), exponents=None)
        other.a[:, first:last] *= times
        fit = case.fit(other.values())
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
        fit = case.explains(replace(p, a=a, b=b, unit=FLOAT32_SUMS))
        yield Diagnosis(
            'the operands were not rounded to tf32: use unit="float32"', *fit
        )
    for name, rounding in product(_NARROWER, _ROUNDINGS):
        a, b = (round_to(x, name, rounding) for x in (p.a, p.b))
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
        rounded = round_to(values.exact, case.product.dtype.name, rounding)
        same = (rounded == d)[clear].mean()
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


#: Sums in float32 of any operands.
FLOAT32_SUMS = Unit("float32", FLOAT32, (-126, -126))

_FAULTS = (
    _not_written, _changed, _shifted, _arithmetic, _factors, _ranges, _permuted,
    _accumulated,
)  # fmt: skip
