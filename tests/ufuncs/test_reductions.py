"""Sums and products are exact, rounded once, on every axis of every view."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec_arrays import encode
from tests.reference.formats import E8M0
from tests.support import oracle
from tests.support.bits import raised
from tests.support.interpreters import run_code

WIDE_TYPES = [td.bfloat16, td.tf32]
TYPES = [f.type for f in td.formats.values() if f.signed]
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=lambda t: t.__name__)
each_wide = pytest.mark.parametrize("scalar_type", WIDE_TYPES, ids=lambda t: t.__name__)


def greatest(scalar_type: Any) -> float:
    return float(oracle.ROWS[np.dtype(scalar_type).name].max_value)


def random(scalar_type: Any, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Draw normal values, whose sum is mostly in the range of the format."""
    scale = min(1.0, greatest(scalar_type) / 4 / math.sqrt(math.prod(shape)))
    values = np.random.default_rng(seed).normal(0, max(scale, 0.5), shape)
    return values.astype(scalar_type)


def within(got: Any, exact: Any, scalar_type: Any, ulps: float = 0.52) -> bool:
    """Return whether `got` is near to `exact`, or the result of overflow."""
    exact = np.asarray(exact, np.float64)
    name = np.dtype(scalar_type).name
    assert np.asarray(got).dtype == scalar_type
    error = np.abs(np.asarray(got).astype(np.float64) - exact)
    beyond = oracle.same(got, oracle.round_to(name, exact))
    return bool(np.all((error <= ulps * oracle.ulp(name, exact)) | beyond))


def views(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the array in other layouts."""
    yield x
    yield x.T
    yield x[::-1]
    yield x[..., ::-1]
    yield x[..., ::2]
    yield np.asfortranarray(x)
    yield np.swapaxes(x, 0, -1)[1:]


def axes(x: np.ndarray) -> Iterator[Any]:
    yield None
    yield from range(x.ndim)
    if x.ndim > 2:
        yield from ((0, 2), (0, 1), (1, 2), (-1, 0))


def test_long_sums_do_not_stick() -> None:
    """Sum past 2^24, where a float32 chain stops growing (bfloat16's at 256)."""
    ones = np.ones(2**25, td.bfloat16)
    assert ones.sum() == 33554432
    assert np.all(ones[: 2**24].reshape(-1, 2).sum(0) == 2**23)
    assert np.all(np.ones((5000, 3), td.bfloat16).sum(0) == 4992)  # 5000 rounded
    assert np.all(np.ones((3, 5000), td.bfloat16).sum(1) == 4992)


def test_long_sum_over_the_outer_axis() -> None:
    ones = np.ones((2**24 + 2**19, 2), td.bfloat16)
    assert np.array_equal(ones.sum(0), np.full(2, 2**24 + 2**19, td.bfloat16))


@each_type
def test_sum(scalar_type: Any) -> None:
    for shape in ((1,), (7,), (300,), (40, 30), (5, 6, 7), (3, 1, 4, 2), (1000, 3)):
        for x in views(random(scalar_type, shape, len(shape))):
            for axis in axes(x):
                got = x.sum(axis)
                assert within(got, oracle.exact_sum(x, axis), scalar_type), (
                    shape,
                    x.strides,
                    axis,
                )


@each_wide
def test_sum_of_wide_range(scalar_type: Any) -> None:
    """Add 40 binades of both signs, and count the small numbers."""
    rng = np.random.default_rng(3)
    values = np.ldexp(rng.normal(0, 1, (400, 5)), rng.integers(-20, 20, (400, 5)))
    x = values.astype(scalar_type)
    for axis in (0, 1, None):
        assert within(x.sum(axis), oracle.exact_sum(x, axis), scalar_type)
        assert within(x.T.sum(axis), oracle.exact_sum(x.T, axis), scalar_type)


@each_wide
def test_where_and_initial(scalar_type: Any) -> None:
    x = random(scalar_type, (50, 12), 5)
    mask = np.random.default_rng(6).random(x.shape) < 0.6
    kept = np.where(mask, x, scalar_type(0)).astype(np.float64)
    for axis in (0, 1, None):
        exact = oracle.exact_sum(kept, axis)
        assert within(x.sum(axis, where=mask), exact, scalar_type)
        assert within(x.sum(axis, where=mask, initial=10), exact + 10, scalar_type)
        got = x.T.sum(axis, where=mask.T)
        assert within(got, oracle.exact_sum(kept.T, axis), scalar_type)
        got = x.sum(axis, initial=scalar_type(-3))
        assert within(got, oracle.exact_sum(x, axis) - 3, scalar_type)
    row = mask[0]
    exact = oracle.exact_sum(np.where(row, x, scalar_type(0)), 0)
    assert within(x.sum(0, where=row), exact, scalar_type)


def test_initial_after_other_reductions() -> None:
    """Ask for an initial value after empty reductions, which may not use theirs."""
    x = np.ones((4, 3), td.float8_e8m0fnu)  # without zero: a sum from 0 is NaN
    ufuncs = [x for x in vars(np).values() if isinstance(x, np.ufunc)]
    ufuncs = [x for x in ufuncs if x.nin == 2 and x.nout == 1 and not x.signature]
    for ufunc in ufuncs:
        for scalar_type in TYPES:
            with suppress(TypeError, ValueError), np.errstate(all="ignore"):
                ufunc.reduce(np.ones((2, 0), scalar_type), axis=None)
            with np.errstate(invalid="ignore"):
                total = np.add.reduce(x, axis=None, initial=0)  # same stack depth
            assert np.isnan(total), ufunc


@each_wide
def test_initial_none(scalar_type: Any) -> None:
    """Start the sum at the first element without an initial value."""
    x = random(scalar_type, (30, 4), 8)
    assert within(
        np.add.reduce(x, 0, initial=None), oracle.exact_sum(x, 0), scalar_type
    )
    minus = np.full((3, 2), -0.0, scalar_type)
    assert np.all(np.signbit(np.add.reduce(minus, 0, initial=None)))
    with pytest.raises(ValueError, match="no identity"):
        np.add.reduce(x[:0], 0, initial=None)


@pytest.mark.parametrize("shape", [(3, 5), (4, 70_000), (3, 4, 300), (300, 2, 2)])
def test_given_initial_values(shape: tuple[int, ...]) -> None:
    """Do not take a step of a reduction, which NumPy begins itself, for `a += b`."""
    x = random(td.bfloat16, shape, 8)
    mask = np.random.default_rng(9).random(shape) < 0.5

    def check() -> None:
        for view, where in zip(views(x), views(mask), strict=True):
            for axis in axes(view):
                want = oracle.exact_sum(view, axis)
                assert within(view.sum(axis, initial=0), want, td.bfloat16)
                assert within(view.sum(axis, initial=5), want + 5, td.bfloat16)
                if axis is not None and np.size(axis) < view.ndim:
                    got = np.full(want.shape, 7, td.bfloat16)
                    np.add.reduce(view, axis, initial=None, out=got)
                    assert within(got, want, td.bfloat16)
                got = view.sum(axis, initial=0, where=where)
                want = oracle.exact_sum(np.where(where, view, 0), axis)
                assert within(got, want, td.bfloat16)

    check()
    with ThreadPoolExecutor(1) as pool:  # its stack is elsewhere
        pool.submit(check).result()


@each_type
def test_zeros_and_nothing(scalar_type: Any) -> None:
    nothing = np.empty((0, 3), scalar_type)
    assert np.all(np.sum(nothing, 0) == 0)
    assert np.sum(nothing).dtype == scalar_type
    assert not np.signbit(np.sum(nothing))
    assert np.sum(nothing, 1).shape == (0,)
    assert np.all(np.prod(nothing, 0) == 1)
    if td.formats[scalar_type.__name__].has_negative_zero:
        minus = np.full(5, -0.0, scalar_type)
        assert np.signbit(minus.sum()) == np.signbit(minus.astype(np.float32).sum())
    assert np.all(np.max(nothing, 1).shape == (0,))
    with pytest.raises(ValueError, match="no identity"):
        np.max(nothing)


def test_e8m0_sum_of_nothing_is_nan() -> None:
    nothing = np.empty(0, td.float8_e8m0fnu)
    with np.errstate(invalid="ignore"):
        assert np.isnan(nothing.sum())
    assert nothing.prod() == 1
    assert np.array([2, 4, 2], td.float8_e8m0fnu).sum() == 8


def e8m0_of(sums: np.ndarray) -> np.ndarray:
    """Round float64 sums to E8M0; zero, an empty sum, becomes NaN."""
    return encode(E8M0, np.ravel(sums))[0].reshape(np.shape(sums))


@pytest.mark.filterwarnings("ignore:invalid")
@pytest.mark.parametrize("shape", [(5, 7), (3, 1), (1, 300), (300, 2), (2, 3, 4)])
def test_sums_without_a_zero(shape: tuple[int, ...]) -> None:
    """Sum in E8M0, which has no zero to begin with, or for elements without `where`."""
    rng = np.random.default_rng(41)
    for _ in range(20):
        x = np.exp2(rng.integers(-127, 128, shape) // rng.choice([1, 9, 40]))
        x[rng.random(shape) < 0.1] = np.nan
        a = x.astype(td.float8_e8m0fnu)
        for where in (True, rng.random(shape) < 0.5, ~np.isnan(a), np.isnan(a)):
            for axis in (None, 0, -1, tuple(range(len(shape)))):
                for order in "CF":
                    got = np.sum(np.asarray(a, order=order), axis, where=where)
                    want = np.sum(np.where(where, x, 0), axis)
                    assert np.array_equal(np.asarray(got).view("u1"), e8m0_of(want))
        kept = np.where(np.isnan(x), 0, x)
        want = np.sum(kept, 0, initial=4)
        got = np.sum(a, 0, where=~np.isnan(a), initial=4)
        assert np.array_equal(got.view("u1"), e8m0_of(want))
        got = np.add.reduce(a, 0, initial=None)
        assert np.array_equal(got.view("u1"), e8m0_of(np.sum(x, 0)))
        got = np.cumsum(a, -1)
        assert np.array_equal(got.view("u1"), e8m0_of(np.cumsum(x, -1)))
        assert np.isnan(np.sum(a, initial=np.nan, where=~np.isnan(a)))
        single = np.sum(a, dtype=np.float32, where=~np.isnan(a))
        assert single == np.float32(math.fsum(kept.ravel()))


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (np.nansum, 4),  # 3, a tie, upward
        (np.nancumsum, [1, 1, 4]),
        (np.nanprod, 2),
        (np.nanmean, 2),  # 1.5
        (np.nanvar, 0.25),
        (np.nanstd, 0.5),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_without_a_zero_for_nan(function: Any, want: Any) -> None:
    """Skip NaN in E8M0, where replacing NaN by zero would make NaN again."""
    a = np.array([1, np.nan, 2], td.float8_e8m0fnu)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = function(a)
    assert got.dtype == td.float8_e8m0fnu
    assert np.array_equal(got, np.array(want, td.float8_e8m0fnu))


@each_type
def test_reduceat(scalar_type: Any) -> None:
    x = random(scalar_type, (60, 4), 9)
    starts = [0, 5, 4, 30, 59]
    ends = [5, 4, 30, 59, 60]  # if start >= end, NumPy gives x[start]
    got = np.add.reduceat(x, starts, axis=0)
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        part = x[start : max(end, start + 1)]
        assert within(got[number], oracle.exact_sum(part, 0), scalar_type)
    got = np.add.reduceat(x.T[:, ::-1], starts, axis=1)
    assert within(got[:, 3], oracle.exact_sum(x.T[:, ::-1][:, 30:59], 1), scalar_type)


@each_wide
def test_higher_precision_result(scalar_type: Any) -> None:
    """Return the accumulator for dtype=float32, not the rounded sum."""
    x = random(scalar_type, (3000, 3), 10)
    for axis in (0, 1, None):
        for view in (x, x.T, x[::-1]):
            exact = oracle.exact_sum(view, axis)
            got = view.sum(axis, dtype=np.float32)
            assert within(got, exact, np.float32)
            assert np.allclose(view.sum(axis, dtype=np.float64), exact, 1e-12, 1e-12)
    assert np.ones((5000, 3), scalar_type).sum(0, dtype=np.float32)[0] == 5000


@each_type
def test_mean(scalar_type: Any) -> None:
    for x in views(random(scalar_type, (20, 9), 11)):
        for axis in (0, 1, None):
            count = x.size if axis is None else x.shape[axis]
            total = oracle.exact_sum(x, axis)
            mean = x.mean(axis)
            assert mean.dtype == scalar_type
            name = np.dtype(scalar_type).name
            error = np.abs(np.asarray(mean).astype(np.float64) - total / count)
            near = oracle.ulp(name, total) / count + oracle.ulp(name, total / count)
            in_range = np.abs(total) <= greatest(scalar_type)
            assert np.all((error <= 0.52 * near) | ~in_range)


@each_wide
def test_prod(scalar_type: Any) -> None:
    x = (1 + random(scalar_type, (30, 4), 12) / 8).astype(scalar_type)
    for axis in (0, 1, None):
        for view in (x, x.T, x[::-1]):
            wide = view.astype(np.longdouble)
            exact = np.prod(wide, axis).astype(np.float64)
            assert within(view.prod(axis), exact, scalar_type)


@each_wide
def test_prod_beyond_the_range_of_float64(scalar_type: Any) -> None:
    """Multiply exactly: partial products may leave any range and return to it."""
    huge = [2.0**126] * 20 + [2.0**-126] * 20 + [1.5, 3.0]
    for order in (huge, huge[::-1], np.random.default_rng(1).permutation(huge)):
        x = np.array(order, scalar_type)
        exact = float(math.prod(map(Fraction, map(float, order))))
        assert x.prod() == exact
        assert np.array_equal(np.stack([x, x], 1).prod(0), np.full(2, exact))
    assert np.array([2.0**127, 2.0**127, 0], scalar_type).prod() == 0
    assert np.array([2.0**-126] * 3 + [0.0, -1], scalar_type).prod() == 0


@each_type
def test_maximum_and_minimum(scalar_type: Any) -> None:
    x = random(scalar_type, (9, 8, 5), 13)
    for view in views(x):
        for axis in axes(view):
            wide = view.astype(np.float64)
            assert np.array_equal(view.max(axis), wide.max(axis))
            assert np.array_equal(view.min(axis), wide.min(axis))
            assert view.max(axis).dtype == scalar_type
    mask = np.random.default_rng(2).random((9, 8, 5)) < 0.5
    exact = np.max(x.astype(float), 0, where=mask, initial=-1.0)
    assert np.array_equal(np.max(x, 0, where=mask, initial=-1), exact)


@each_type
def test_any_and_all(scalar_type: Any) -> None:
    x = np.array([[0, 0, 1], [0, 2, 0]], scalar_type)
    assert np.any(x)
    assert not np.all(x)
    assert np.array_equal(np.any(x, 0), [False, True, True])
    assert np.array_equal(np.all(x + x[::-1], 0), [False, True, True])
    assert np.any(x, axis=1).dtype == np.bool_
    assert not np.any(x[:0])
    assert np.all(x[:0])
    if td.formats[scalar_type.__name__].has_nan:
        assert np.any(np.array([np.nan], scalar_type))


def random_codes(form: Any, shape: tuple[int, ...], seed: int) -> np.ndarray:
    items = np.random.default_rng(seed).integers(0, 256, (*shape, form.itemsize))
    return items.astype(np.uint8).view(form.dtype)[..., 0]


def moderate(form: Any, shape: tuple[int, ...], seed: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.random.default_rng(seed).normal(0, 1, shape).astype(form.dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [random_codes, moderate])
@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_rows_have_the_bits_of_single_results(form: Any, make: Any) -> None:
    """Reduce few rows, which a single result adds in the same order. Among the flags,
    only overflow depends on the last step."""
    over = 2  # FPE_OVERFLOW
    for rows, columns in ((2, 1), (3, 127), (40, 129), (5, 1030)):
        x = make(form, (rows, columns), rows)
        for ufunc in (np.add, np.multiply):
            for view in (x, x[:, ::-1], x[::-1, ::2]):
                got, flags = raised(ufunc.reduce, view)
                single = [
                    raised(ufunc.reduce, view[:, j]) for j in range(view.shape[1])
                ]
                want = np.array([item for item, _ in single], form.dtype)
                assert np.array_equal(td.bits(got), td.bits(want)), ufunc
                each = functools.reduce(operator.or_, (f for _, f in single))
                assert flags & over == each & over


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_sums_of_rows_one_after_the_other(form: Any) -> None:
    """Round the output of a step, but continue the sum in float64."""
    x = moderate(form, (500, 300), 3)
    with np.errstate(all="ignore"):
        wide = np.add.reduce(x.astype(np.float64))
        want = encode(oracle.ROWS[form.name], wide)[0]
        assert np.array_equal(
            td.bits(np.add.reduce(x)), want.astype(f"u{form.itemsize}")
        )
        single = np.add.reduce(x, dtype=np.float32)
        assert oracle.same(single, oracle.round_to("float32", wide)).all()


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_running_extremes(form: Any) -> None:
    """Apply the operation to the previous result and the next element."""
    x = random_codes(form, (1300,), 4)
    x[::90] = x[1::90]
    with np.errstate(all="ignore"):
        zeros = np.array([-0.0, 0.0, -0.0, 1, 0.0, -0.0]).astype(form.dtype)
    for array in (x[:3], x, x[::-3], zeros, zeros[::-1], x[~np.isnan(x)]):
        for ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
            got = ufunc.accumulate(array)
            assert td.bits(got[:1]) == td.bits(array[:1])
            want = ufunc(got[:-1], array[1:])
            assert np.array_equal(td.bits(got[1:]), td.bits(want)), ufunc
            for i in range(1, min(len(array), 60)):  # one by one
                want = ufunc(got[i - 1 : i], array[i : i + 1])
                assert td.bits(got[i : i + 1]) == td.bits(want), (ufunc, i)


@each_wide
def test_cumsum(scalar_type: Any) -> None:
    """Compute a running sum of one dimension in one call, in higher precision."""
    x = random(scalar_type, (700,), 14)
    exact = [math.fsum(x[: n + 1].astype(float)) for n in range(len(x))]
    assert within(np.cumsum(x), exact, scalar_type)
    assert np.cumsum(np.ones(1000, td.bfloat16))[-1] == 1000
    table = random(scalar_type, (6, 5), 15)
    for axis in (0, 1):
        got = np.cumsum(table, axis)
        wide = np.cumsum(table.astype(float), axis)
        assert got.dtype == scalar_type
        eps = oracle.eps(np.dtype(scalar_type).name)
        assert np.allclose(got.astype(float), wide, 6 * eps, 12 * eps)
    assert np.cumsum(x, dtype=np.float32).dtype == np.float32


@each_type
def test_adding_in_place_is_no_reduction(scalar_type: Any) -> None:
    """Round each element once, whether or not `out` is the first operand."""
    a, b = random(scalar_type, (40, 7), 16), random(scalar_type, (40, 7), 17)
    wide = a.astype(float) + b.astype(float)
    rounded = oracle.round_to(np.dtype(scalar_type).name, wide)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.all(oracle.same(a + b, rounded))
        for view in (lambda x: x, np.transpose, lambda x: x[::-1], lambda x: x[:, 1:2]):
            target = a.copy()
            np.add(view(target), view(b), out=view(target))
            assert np.all(oracle.same(view(target), view(rounded)))
        for addend in (b[0], b[:, :1], np.asfortranarray(b), b[0, 0]):
            for where in (True, np.arange(7) < 4):
                for repeats in (1, 3):
                    target, want = a.copy(), a
                    for _ in range(repeats):
                        np.add(target, addend, out=target, where=where)
                        want = np.where(where, want + addend, want)
                    assert np.all(oracle.same(target, want))


def test_repeated_addition_in_place_rounds_each_time() -> None:
    x, one = np.full(3, 256, td.bfloat16), np.ones(3, td.bfloat16)
    for _ in range(5):
        np.add(x, one, out=x)
    assert np.all(x == 256)
    total = np.full(1, 256, td.bfloat16)
    np.add.at(total, [0, 0, 0, 0], one[:1])
    assert total[0] == 256


@each_wide
def test_sums_with_infinities_and_nan(scalar_type: Any) -> None:
    inf, nan = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        for values, total in (
            ([1, inf, 2], inf),
            ([-inf, 1], -inf),
            ([inf, -inf], nan),
            ([1, nan], nan),
        ):
            x = np.array([values, values], scalar_type)
            assert np.all(oracle.same(x.sum(1), [total, total]))
            assert np.all(oracle.same(x.T.sum(0), [total, total]))


@each_wide
def test_overflow_of_a_sum(scalar_type: Any) -> None:
    """Let partial sums exceed the range; the result overflows with NumPy's flag."""
    top = np.finfo(scalar_type).max
    x = np.array([top, top, -top, -top / 2], scalar_type)
    assert x.sum() == top / 2
    assert np.all(np.stack([x, x], 1).sum(0) == top / 2)
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert np.isposinf(x[:2].sum())


@pytest.mark.parametrize("scalar_type", TYPES, ids=lambda t: t.__name__)
def test_other_statistics_keep_the_dtype(scalar_type: Any) -> None:
    x = random(scalar_type, (6, 5), 18)
    with np.errstate(all="ignore"):
        for function in (np.var, np.std, np.ptp, np.nansum, np.nanmean, np.average):
            assert function(x, axis=0).dtype == scalar_type
            assert np.asarray(function(x)).dtype == scalar_type


def test_sum_into_out() -> None:
    x = random(td.bfloat16, (100, 3), 19)
    out = np.empty(3, td.bfloat16)
    assert np.sum(x, 0, out=out) is out
    assert np.array_equal(td.bits(out), td.bits(x.sum(0)))
    spaced = np.zeros(6, td.bfloat16)
    np.sum(x, 0, out=spaced[::-2])
    assert np.array_equal(td.bits(spaced[::-2].copy()), td.bits(x.sum(0)))
    assert np.array_equal(np.sum(x, 0, keepdims=True)[0], x.sum(0))


@pytest.mark.parametrize("first", ["numpy.ma, tf32dtype", "tf32dtype, numpy.ma"])
def test_masked_extremes_in_either_order_of_import(first: str) -> None:
    """Find the numbers for masked elements, which np.ma keeps in tables by type."""
    out = run_code(
        f"import {first}\n"
        "import numpy as np, tf32dtype as td\n"
        "a = np.ma.array([-np.inf, 2], mask=[0, 1], dtype=td.bfloat16)\n"
        "b = np.ma.array([-448, 2, 3], mask=[0, 1, 0], dtype=td.float8_e4m3fn)\n"
        "print(*map(float, (a.max(), (-a).min(), b.max(), b.min(), b[:2].max())))"
    )
    assert out == "-inf inf 3.0 -448.0 -448.0"


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_sums_over_rows_at_once(form: Any) -> None:
    """Round once in `sum` along an outer axis; `add.reduce` rounds for each row."""
    shapes = [(700, 3), (2, 5000), (5000, 2), (40, 9, 17), (4000, 1), (3, 4, 5, 60)]
    for seed, shape in enumerate(shapes):
        codes, usual = random_codes(form, shape, seed), moderate(form, shape, seed)
        for x in (codes, usual, usual[::-1]):
            for axis in range(-x.ndim, x.ndim):
                want, flags = raised(functools.partial(np.add.reduce, x, axis))
                for way in (x.sum, functools.partial(np.sum, x)):
                    got = raised(functools.partial(way, axis=axis))
                    assert got[0].tobytes() == want.tobytes()
                    assert got[0].shape == want.shape
                    assert (got[0].dtype, got[1]) == (form.dtype, flags)


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_sums_over_rows_at_once_of_specials(form: Any) -> None:
    """Add NaN, infinities and overflowing sums, each or together: equal results and
    flags."""
    rng = np.random.default_rng(22)
    seen = set()
    for some in ([np.nan], [np.inf], [np.inf, -np.inf], [np.nan, np.inf, -np.inf]):
        for scale in (1.0, float(np.finfo(form.dtype).max) / 4):
            for share in (0.001, 0.05):
                x = np.abs(rng.uniform(-1, 1, (3, 40, 60)) * scale)
                there = rng.random(x.shape) < share
                x[there] = rng.choice(some, there.sum())
                with np.errstate(all="ignore"):
                    x = x.astype(form.dtype)
                want, flags = raised(functools.partial(np.add.reduce, x, 1))
                got, told = raised(functools.partial(x.sum, 1))
                assert got.tobytes() == want.tobytes()
                assert told == flags
                seen.add(flags)
    assert any(seen)


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_extremes_and_unused_bits(form: Any) -> None:
    """Ignore unused bits in extremes, with NaN and zeros of both signs."""
    items = random_codes(form, (5000,), 1)
    for x in (items, items[~np.isnan(items)]):
        clean = td.from_bits(td.bits(x), form.dtype)
        for function in (np.max, np.min, np.nanmax, np.nanmin, np.argmax, np.argmin):
            got = np.asarray(function(x))
            assert got.tobytes() == np.asarray(function(clean)).tobytes()
            want = np.asarray(function(clean.astype(np.float32)))
            assert np.array_equal(got.astype(float), want, equal_nan=True)


@pytest.mark.parametrize("function", [np.nansum, np.nancumsum, np.nanmean, np.nanvar])
def test_nan_functions_of_a_format_without_zero_in_float64(function: Any) -> None:
    a = np.array([1, np.nan, 2, 8], td.float8_e8m0fnu)
    expected = function(np.array([1, np.nan, 2, 8]))
    out = np.zeros(np.shape(expected))
    found = function(a, dtype=np.float64)
    function(a, dtype=np.float64, out=out)
    assert found.dtype == np.float64
    assert np.array_equal(found, expected)
    assert np.array_equal(out, expected)
