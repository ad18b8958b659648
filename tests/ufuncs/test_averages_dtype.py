"""Sums, products, means and variances with `dtype=`: exact, rounded once to it.

The reference is `fractions.Fraction`. With a narrower dtype, each element is first
rounded to it, as in NumPy. The nan-functions skip elements that are NaN before.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import codec
from tests.support.bits import ALL, dtype, items_of, name
from tests.ufuncs.test_averages import _variance, fractions, numbers, root, rounded

NUMPY_DTYPES = [np.dtype(t) for t in (np.float32, np.float64, np.longdouble)]
FORMATS = {
    f.name: f
    for f in ALL
    if f.name in ("bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn")
}
DTYPES = [None, *NUMPY_DTYPES, *map(dtype, FORMATS.values())]
FUNCTIONS = [
    prefix + how for prefix in ("", "nan") for how in "sum prod mean var std".split()
]
SHAPE = (7, 3)


def exactly(how: str, values: list[Fraction], ddof: int) -> codec.Exact:
    if how == "std":
        return root(_variance(values, ddof))
    return codec.from_fraction(
        {
            "sum": lambda: sum(values, Fraction(0)),
            "prod": lambda: math.prod(values, start=Fraction(1)),
            "mean": lambda: sum(values, Fraction(0)) / len(values),
            "var": lambda: _variance(values, ddof),
        }[how]()
    )


def is_near(got: Any, want: codec.Exact) -> bool:
    """Return whether a result is near: a few roundings away, or out of the range."""
    value = Fraction(want.integer) * Fraction(2) ** want.exponent
    value *= -1 if want.negative else 1
    info = np.finfo(got.dtype)
    if abs(value) > Fraction(*info.max.as_integer_ratio()):
        return bool(np.isinf(got))
    least = Fraction(*info.tiny.as_integer_ratio())
    eps = Fraction(*info.eps.as_integer_ratio())
    error = abs(Fraction(*got.as_integer_ratio()) - value)
    return bool(error <= 8 * eps * max(abs(value), least))


def lines(x: np.ndarray, axis: Any) -> np.ndarray:
    return x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, -1)


def options(how: str, axis: Any, target: Any) -> Any:
    """Yield the other arguments, one or two at a time."""
    kept = np.zeros(SHAPE)
    where = np.arange(kept.size).reshape(SHAPE) % 5 != 3
    for ddof in (0, 1) if how[-3:] in ("var", "std") else (0,):
        given = {"ddof": ddof} if ddof else {}
        yield given
        yield given | {"keepdims": True}
        yield given | {"where": where}
        yield given | {"out": np.zeros(kept.sum(axis).shape, target)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", ALL, ids=name)
@pytest.mark.filterwarnings("ignore")
@np.errstate(all="ignore")
def test_a_dtype_is_what_the_exact_result_is_rounded_to(f, compared):
    form = td.formats[f.name]
    whole = numbers(f, SHAPE)
    holed = whole.copy()
    if form.has_nan:
        holed[[0, 2, 5], [0, 1, 2]] = np.nan
    wrong = []
    for function, wanted, axis in product(FUNCTIONS, DTYPES, (None, 0, 1)):
        nans = function.startswith("nan")
        how = function.removeprefix("nan")
        x = holed if nans else whole
        target = x.dtype if wanted is None else wanted
        ours = FORMATS.get(target.name, f if wanted is None else None)
        skipped = np.isnan(x.astype(float))
        elements = np.where(skipped, x.dtype.type(1), x)
        if ours is not None:
            elements = elements.astype(target)
        for keywords in options(function, axis, target):
            got = getattr(np, function)(x, axis=axis, dtype=wanted, **keywords)
            counted = ~skipped & keywords.get("where", True)
            shape = np.sum(
                counted, axis, keepdims=keywords.get("keepdims", False)
            ).shape
            if (got.dtype, got.shape) != (target, shape):
                wrong.append((function, axis, keywords, got.dtype, target))
            if ours is None and how == "prod":
                continue  # NumPy's, whose steps overflow
            for row, mask, result in zip(
                lines(elements, axis), lines(counted, axis), np.ravel(got), strict=True
            ):
                values = row[mask]
                ddof = keywords.get("ddof", 0)
                if len(values) <= ddof or not np.all(np.isfinite(values)):
                    continue
                want = exactly(how, fractions(values), ddof)
                if ours is None:
                    good = is_near(result, want)
                else:
                    good = items_of(ours, result) == rounded(ours, want)
                    good |= want.integer == 0 == result  # either zero
                compared(1)
                if not good:
                    wrong.append((function, axis, target, keywords, result, want))
    assert not wrong, "\n".join(map(str, wrong[:20]))


def test_a_missing_number_raises_no_flag_where_the_dtype_has_none():
    x = np.array([1, np.nan, 2], td.bfloat16)
    with np.errstate(all="raise"):
        assert np.nanmean(x, dtype=td.float4_e2m1fn) == 1.5
        assert np.nanvar(x, dtype=td.float6_e3m2fn) == 0.25
        assert np.nansum(x, dtype=td.float8_e8m0fnu) == 4
    assert np.isnan(x[1])
