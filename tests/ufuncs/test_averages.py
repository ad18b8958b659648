"""Means, variances, medians, quantiles and norms are exact, rounded once.

The reference is `fractions.Fraction`, rounded by tests/reference.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import codec
from tests.reference.formats import Format
from tests.support.bits import ALL, dtype, items_of, name
from tests.support.interpreters import run_code

each = pytest.mark.parametrize("f", ALL, ids=name)
Exactly = Callable[[list[Fraction]], codec.Exact]


def numbers(f: Format, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Draw finite numbers up to the largest. For formats of a wide range, float64 is
    exact for the sums of their squares."""
    rng = np.random.default_rng(seed)
    finite = td.from_bits(_finite(f), dtype(f))
    values = finite.astype(np.float64)
    top = np.abs(values).max()
    wanted = np.where(values == 0, ~np.signbit(values), abs(values) > top * 2.0**-9)
    near = finite[wanted]
    return near[rng.integers(0, near.size, shape)]


def _finite(f: Format) -> np.ndarray:
    codes = np.arange(0, f.count, 1 if f.count <= 1 << 8 else 31)
    items = (codes << f.shift).astype(f"u{dtype(f).itemsize}")
    with np.errstate(all="ignore"):
        return items[np.isfinite(td.from_bits(items, dtype(f)))]


def fractions(x: Any) -> list[Fraction]:
    return [Fraction(value) for value in np.ravel(x).astype(np.float64).tolist()]


def rounded(f: Format, x: codec.Exact) -> int:
    code, _ = codec.encode(f, x)
    return int(code)


def mean(values: list[Fraction]) -> codec.Exact:
    return codec.from_fraction(sum(values, Fraction(0)) / len(values))


def _variance(values: list[Fraction], ddof: int = 0) -> Fraction:
    middle = sum(values, Fraction(0)) / len(values)
    return sum(((v - middle) ** 2 for v in values), Fraction(0)) / (len(values) - ddof)


def variance(values: list[Fraction]) -> codec.Exact:
    return codec.from_fraction(_variance(values))


def root(x: Fraction) -> codec.Exact:
    """Return a square root to 80 bits, and whether it is inexact."""
    shift = 2 * (80 + x.denominator.bit_length())
    scaled = (x.numerator << shift) // x.denominator
    whole = math.isqrt(scaled)
    more = whole * whole != scaled or scaled * x.denominator != x.numerator << shift
    return codec.Exact(False, whole, -shift // 2, more)


def deviation(values: list[Fraction]) -> codec.Exact:
    return root(_variance(values))


def norm(values: list[Fraction]) -> codec.Exact:
    return root(sum((v * v for v in values), Fraction(0)))


def median(values: list[Fraction]) -> codec.Exact:
    middle = sorted(values)[(len(values) - 1) // 2 : len(values) // 2 + 1]
    return mean(middle)


def quartile(values: list[Fraction]) -> codec.Exact:
    ordered = sorted(values)
    place = Fraction(len(values) - 1, 4)
    below = ordered[int(place)]
    above = ordered[min(int(place) + 1, len(values) - 1)]
    return codec.from_fraction(below + (above - below) * (place - int(place)))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Exactly]] = {
    "mean": (np.mean, mean),
    "nanmean": (np.nanmean, mean),
    "average": (np.average, mean),
    "var": (np.var, variance),
    "nanvar": (np.nanvar, variance),
    "std": (np.std, deviation),
    "nanstd": (np.nanstd, deviation),
    "median": (np.median, median),
    "nanmedian": (np.nanmedian, median),
    "quantile": (lambda x, **kw: np.quantile(x, 0.25, **kw), quartile),
    "percentile": (lambda x, **kw: np.percentile(x, 25, **kw), quartile),
    "nanquantile": (lambda x, **kw: np.nanquantile(x, 0.25, **kw), quartile),
    "nanpercentile": (lambda x, **kw: np.nanpercentile(x, 25, **kw), quartile),
    "norm": (
        lambda x, axis=None, **kw: np.linalg.norm(
            x.ravel() if axis is None and x.ndim > 2 else x, axis=axis, **kw
        ),
        norm,
    ),
}


def lines(x: np.ndarray, axis: Any) -> Iterator[list[Fraction]]:
    """Yield the elements of each output, in the order of the outputs."""
    if axis is None:
        yield fractions(x)
        return
    axes = [a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))]
    kept = [a for a in range(x.ndim) if a not in axes]
    rows = x.transpose(kept + axes).reshape(*(x.shape[a] for a in kept), -1)
    for place in np.ndindex(rows.shape[:-1]):
        yield fractions(rows[place])


def check(f: Format, got: Any, x: np.ndarray, axis: Any, exactly: Exactly) -> None:
    want = [rounded(f, exactly(line)) for line in lines(x, axis)]
    found = items_of(f, got)
    assert found.ravel().tolist() == want, (found, want)
    assert found.ndim == 0 if axis is None else found.ndim < x.ndim


@pytest.mark.sampled(4)
@each
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rounded_once_on_every_axis(f: Format, function: str) -> None:
    call, exactly = FUNCTIONS[function]
    x = numbers(f, (4, 3, 5))
    views = [x, x.T, x[::-1, :, ::2]] if "nan" not in function else [x]
    for view in views:
        for axis in (None, 0, 1, -1, (0, 2)):
            with np.errstate(over="ignore", invalid="ignore"):  # a variance overflows
                got = call(view, axis=axis)
                check(f, got, view, axis, exactly)
        with np.errstate(over="ignore", invalid="ignore"):
            kept = call(view, axis=1, keepdims=True)
            assert kept.shape == (view.shape[0], 1, view.shape[2])
            check(f, kept[:, 0], view, 1, exactly)


@each
def test_of_many(f: Format) -> None:
    """Add far above the range, in a long run and over many rows."""
    x = numbers(f, (8, 260), 1)
    largest = np.full(1000, dtype(f).type(float(np.finfo(dtype(f)).max)))
    assert largest.mean() == largest[0] == np.median(largest) == np.average(largest)
    assert largest.dtype == dtype(f)
    for axis in (None, 0, 1):
        check(f, x.mean(axis), x, axis, mean)
    one = dtype(f).type(1)
    assert np.full(1000, one).mean() == one
    assert np.full((3, 1000), one).mean(axis=1).tolist() == [1, 1, 1]


@each
def test_where_and_out_and_dtype(f: Format) -> None:
    x = numbers(f, (6, 7), 2)
    mask = np.random.default_rng(3).random(x.shape) < 0.6
    mask[:, :2] = True
    mask[:2] = True
    rows = [x[i][mask[i]] for i in range(6)]
    for call in (np.mean, np.nanmean):
        got = items_of(f, call(x, axis=1, where=mask))
        assert got.tolist() == [rounded(f, mean(fractions(row))) for row in rows]
    want = items_of(f, x.mean(0))
    for call in (np.mean, np.nanmean, np.median, np.nanmedian):
        out = np.zeros(7, dtype(f))
        assert call(x, axis=0, out=out) is out
        assert items_of(f, out).tolist() == items_of(f, call(x, axis=0)).tolist()
        with pytest.raises(ValueError, match=r"dim|shape|broadcast"):
            call(x, axis=0, out=np.zeros(6, dtype(f)))
        if call is np.nanmean:  # as for float16
            with pytest.raises(TypeError, match="same_kind"):
                call(x, axis=0, out=np.zeros(7, int))
        else:
            whole = call(x.astype(np.float64), axis=0).astype(int)
            assert call(x, axis=0, out=np.zeros(7, int)).tolist() == whole.tolist()
        wide = np.zeros(7, np.float32)  # rounded to the dtype of `out`
        call(x, axis=0, out=wide)
        if call is np.mean:
            means = [sum(line, Fraction(0)) / 6 for line in lines(x, 0)]
            assert wide.tolist() == [float(np.float32(float(m))) for m in means]
            assert items_of(f, out).tolist() == want.tolist()
    for wide_type in (np.float32, np.float64):
        got = x.mean(0, dtype=wide_type)
        assert got.dtype == wide_type
        means = [sum(line, Fraction(0)) / 6 for line in lines(x, 0)]
        assert got.tolist() == [float(wide_type(float(m))) for m in means]
    single = x.astype(np.float32)
    assert items_of(f, single.mean(0, dtype=dtype(f))).tolist() == want.tolist()
    out = np.zeros(7, dtype(f))
    single.mean(0, out=out)
    assert items_of(f, out).tolist() == want.tolist()


@each
def test_variance_with_ddof_and_mean(f: Format) -> None:
    x = numbers(f, (5, 4), 4)
    with np.errstate(all="ignore"):
        want = [rounded(f, codec.from_fraction(_variance(v, 1))) for v in lines(x, 0)]
        for call in (np.var, np.nanvar):
            assert items_of(f, call(x, axis=0, ddof=1)).tolist() == want
            assert items_of(f, call(x, axis=0, correction=1)).tolist() == want
        given = x.mean(0, keepdims=True, dtype=float)
        assert items_of(f, np.var(x, axis=0, ddof=1, mean=given)).tolist() == want


@pytest.mark.parametrize("f", [f for f in ALL if f.nan is not None], ids=name)
def test_nan(f: Format) -> None:
    """Skip NaN in the nan-functions, else return NaN; every NaN is positive."""
    x = numbers(f, (5, 4), 5)
    x[1, 2] = x[3, 0] = np.nan
    kept = [[v for v in x[:, j] if not np.isnan(v)] for j in range(4)]
    for call, exactly in (
        (np.nanmean, mean),
        (np.nanmedian, median),
        (np.nanvar, variance),
        (np.nanstd, deviation),
    ):
        with np.errstate(over="ignore", invalid="ignore"):
            got = items_of(f, call(x, axis=0))
        want = [rounded(f, exactly(fractions(line))) for line in kept]
        assert got.tolist() == want, call
    nan = rounded(f, codec.NAN)
    negative = np.copysign(x, -1) if f.signed else x
    for call in (np.mean, np.median, np.var, np.linalg.norm):
        assert int(items_of(f, call(negative))) == nan
    if f.infinity is not None:
        both = np.array([np.inf, -np.inf], dtype(f))
        with np.errstate(invalid="ignore"):
            assert int(items_of(f, both.mean())) == nan
            assert int(items_of(f, both.var())) == nan
    with pytest.warns(RuntimeWarning, match="Mean of empty"), np.errstate(all="ignore"):
        assert int(items_of(f, x[:0].mean(dtype=dtype(f)))) == nan


def with_specials(rng: np.random.Generator, f: Format) -> np.ndarray:
    """Draw small numbers, among them NaN and infinities. Half of the arrays are a
    single line, as lines hide exceptions of others. NumPy adds a line from left to
    right: NaN is last, as it hides the numbers after it."""
    shape = tuple(rng.integers(1, 40, rng.integers(2, 4)))
    if rng.random() < 0.5:
        shape = (rng.integers(1, 8),)
    x = rng.standard_normal(shape)
    some = rng.permutation([np.nan, np.inf, -np.inf])[: rng.integers(1, 4)]
    there = rng.random(shape) < rng.choice([0.02, 0.2, 0.6])
    x[there] = rng.choice(some, there.sum())
    x = np.sort(x) if x.ndim == 1 else x
    return x.astype(dtype(f))


def told(call: Callable[..., Any], x: Any, **keywords: Any) -> tuple[Any, set[str]]:
    """Return a result, and the names of its warnings."""
    with (
        warnings.catch_warnings(record=True) as given,
        np.errstate(under="ignore", invalid="warn"),
    ):
        warnings.simplefilter("always")
        result = np.asarray(call(x, **keywords))
    return result, {str(one.message).partition(" encountered")[0] for one in given}


@pytest.mark.parametrize("count", [50, pytest.param(250, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("f", [f for f in ALL if f.infinity is not None], ids=name)
@pytest.mark.parametrize(
    "call",
    [np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd, np.linalg.norm],
    ids=lambda call: call.__name__,
)
def test_specials_are_those_of_float64(
    f: Format, call: Callable[..., Any], count: int
) -> None:
    """Compare NaN, infinities and warnings with float64's."""
    rng = np.random.default_rng(21)
    kinds = set()
    for _ in range(count):
        x = with_specials(rng, f)
        axis = int(rng.choice([0, x.ndim - 1]))
        got, warned = told(call, x, axis=axis)
        wide, expected = told(call, x.astype(np.float64), axis=axis)
        with np.errstate(all="ignore"):
            want = wide.astype(dtype(f))
        is_nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), is_nan)
        assert set(items_of(f, got[is_nan]).tolist()) <= {rounded(f, codec.NAN)}
        np.testing.assert_array_equal(
            items_of(f, got)[~is_nan], items_of(f, want[~is_nan])
        )
        assert warned == expected
        kinds |= {*is_nan.flat} | warned
    assert kinds >= {True, False}
    assert call is np.linalg.norm or "invalid value" in kinds


@each
def test_average_with_weights(f: Format) -> None:
    x, w = numbers(f, (3, 5), 6), np.abs(numbers(f, (5,), 7))
    w[0] = numbers(f, (1000,)).max()  # not all zero
    with np.errstate(over="ignore", invalid="ignore"):
        got, total = np.average(x, axis=1, weights=w, returned=True)
    weights = fractions(w)
    for i in range(3):
        pairs = zip(fractions(x[i]), weights, strict=True)
        exact = sum((a * b for a, b in pairs), Fraction(0)) / sum(weights)
        assert items_of(f, got)[i] == rounded(f, codec.from_fraction(exact))
    assert items_of(f, total)[0] == rounded(f, codec.from_fraction(sum(weights)))
    assert np.average(x, axis=1, weights=w.astype(float)).dtype == np.float64
    with pytest.raises(ZeroDivisionError):
        np.average(np.ones(2, td.bfloat16), weights=np.zeros(2, td.bfloat16))


def test_quantiles_have_float16s_dtypes() -> None:
    half = np.arange(5, dtype=np.float16)
    x = half.astype(td.bfloat16)
    for q in (0.3, [0.3, 0.5], np.float32(0.3), np.array(0.5), [0, 1], 1):
        for method in ("linear", "nearest", "inverted_cdf", "hazen"):
            for call in (np.quantile, np.nanquantile):
                like = call(half, q, method=method).dtype
                want = td.bfloat16 if like == np.float16 else like
                assert call(x, q, method=method).dtype == want
    assert np.quantile(x, np.array([0.25], td.bfloat16)).dtype == td.bfloat16
    with pytest.raises(ValueError, match="range"):
        np.quantile(x, 2)


def test_norms() -> None:
    x = np.random.default_rng(8).normal(0, 9, (3, 4)).astype(td.float8_e4m3fn)
    wide = x.astype(float)
    for order in (None, "fro", 1, -1, np.inf, -np.inf, 2, "nuc"):
        got = np.linalg.norm(x, order)
        assert got.dtype == x.dtype
        assert got == x.dtype.type(np.linalg.norm(wide, order))
        assert np.linalg.norm(x, order, keepdims=True).shape == (1, 1)
    for order in (None, 0, 1, 2, 3, np.inf):
        got = np.linalg.norm(x, order, axis=0)
        assert got.dtype == x.dtype
        assert np.array_equal(got, np.linalg.norm(wide, order, axis=0).astype(x.dtype))
    assert np.linalg.norm(x.reshape(2, 2, 3)) == np.linalg.norm(x)
    with pytest.raises(ValueError, match="dimensions"):
        np.linalg.norm(x.reshape(2, 2, 3), 2)
    assert np.linalg.vector_norm(x).dtype == x.dtype
    assert np.linalg.matrix_norm(x).dtype == x.dtype


def test_from_lists_scalars_and_subclasses() -> None:
    one = td.float8_e4m3fn(1)
    for values in ([one, one + one], (one, one + one), [True, one + one]):
        assert np.mean(values) == np.median(values) == np.average(values) == 1.5
        assert np.mean(values).dtype == td.float8_e4m3fn
    assert (one.mean(), one.var(), one.std()) == (1, 0, 0)
    assert type(one.mean()) is td.float8_e4m3fn
    matrix = np.ones((2, 1000), td.float8_e4m3fn).view(np.matrix)
    assert type(matrix.mean(1)) is np.matrix
    assert matrix.mean(1).tolist() == [[1], [1]]
    within: list[Any] = []
    within.append(within)
    with pytest.raises(ValueError, match="sequence"):
        np.median(within)


def test_integers_into_a_format() -> None:
    out = np.empty((), td.float8_e4m3fn)
    for x in (np.full(1000, 4), np.full(9, 200, np.uint8), np.ones(500, bool)):
        for call in (np.mean, np.var, np.std, np.median):
            assert call(x, out=out) is out
            assert out == td.float8_e4m3fn(call(x))


@each
def test_extremes_that_begin_beyond_the_range(f: Format) -> None:
    x = numbers(f, (4, 5), 9)
    mask = np.ones(x.shape, bool)
    mask[0, 0] = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for low in (-np.inf, -1e39, -(10**50)):
            for call in (np.max, lambda x, *a, **k: x.max(*a, **k)):
                got = call(x, axis=1, initial=low, where=mask)
                assert np.array_equal(
                    got, np.max(x.astype(float), 1, initial=low, where=mask)
                )
                assert got.dtype == x.dtype
            got = np.min(x, axis=1, initial=-low, where=mask)
            assert np.array_equal(
                got, np.min(x.astype(float), 1, initial=-low, where=mask)
            )
    with np.errstate(over="ignore"):
        assert np.array_equal(np.max(x, initial=1e39), dtype(f).type(1e39), True)
    matrix = np.ones((2, 2), dtype(f)).view(np.matrix)
    assert np.max(matrix) == 1


def test_a_given_mean_is_not_rounded_away() -> None:
    x = np.array([30] + [0] * 15, td.float8_e4m3fn)
    middle = np.mean(x, keepdims=True)
    exact = np.var(x.astype(float), mean=middle.astype(float))
    for call in (np.var, np.nanvar):
        assert call(x, mean=middle) == td.float8_e4m3fn(exact)


def test_positions_and_masks() -> None:
    x = np.ones(3, td.bfloat16)
    for call in (np.quantile, np.nanquantile):
        assert call(x, 0.5, 0, None, False, "linear", True).shape == (1,)
    assert np.median(np.ma.masked_all(3, td.bfloat16)) is np.ma.masked
    assert np.average(np.ma.masked_all(3, td.bfloat16), weights=x) is np.ma.masked


# -- masked arrays ---------------------------------------------------------------------


@each
@pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom)")
def test_of_masked_arrays(f: Format) -> None:
    """Return the bits of a plain array's functions without the masked elements, and
    those of float64 for variances and deviations, which are float64."""
    for call in ("mean", "var", "std", "sum"):
        check_masked(f, call)


def check_masked(f: Format, call: str) -> None:
    x = numbers(f, (6, 7))
    mask = np.random.default_rng(2).random(x.shape) < 0.4
    mask[2] = True
    masked = np.ma.array(x, mask=mask)
    of_double = masked.astype(float)
    is_double = call in ("var", "std")
    with np.errstate(all="ignore"):
        whole = getattr(masked, call)()
        assert type(whole) is (np.float64 if is_double else dtype(f).type)
        if is_double:
            assert whole == getattr(of_double, call)()
            assert np.ma.allequal(getattr(masked, call)(0), getattr(of_double, call)(0))
            return
        for again in (
            getattr(np, call)(x, where=~mask),
            getattr(np.ma, call)(masked),
            getattr(np, call)(masked),
        ):
            assert td.bits(again) == td.bits(whole)
        for axis in (0, 1, (0, 1)):
            for keepdims in (False, True):
                found = getattr(masked, call)(axis, keepdims=keepdims)
                where = {"where": ~mask, "axis": axis, "keepdims": keepdims}
                if axis == 1:  # a row is empty
                    assert np.ma.getmaskarray(found).ravel().tolist() == [
                        row == 2 for row in range(6)
                    ]
                want = getattr(np, call)(x, **where)
                shown = ~np.ma.getmaskarray(found)
                assert found.dtype == dtype(f)
                assert found.shape == want.shape
                assert np.array_equal(
                    items_of(f, np.ma.getdata(found)[shown]), items_of(f, want[shown])
                )
                out = np.ma.zeros(found.shape, dtype(f))
                assert getattr(masked, call)(axis, out=out, keepdims=keepdims) is out
                assert np.array_equal(np.ma.getmaskarray(out), ~shown)


@each
@pytest.mark.filterwarnings("ignore:(invalid|overflow)")
def test_of_masked_arrays_that_mask_nothing(f: Format) -> None:
    x = numbers(f, (6, 7))
    for call, axis in product(("mean", "var", "std", "sum"), (None, 0)):
        found = getattr(np.ma.array(x), call)(axis)
        want = getattr(x, call)(axis)
        assert np.array_equal(td.bits(np.ma.getdata(found)), td.bits(want))
        out = np.ma.zeros(want.shape, x.dtype)
        assert getattr(np.ma.array(x), call)(axis, out=out) is out
        assert np.array_equal(td.bits(np.ma.getdata(out)), td.bits(want))


def test_what_masked_arrays_keep() -> None:
    x = np.ma.array([1, 2, 4], td.bfloat16, mask=[0, 1, 0], fill_value=7)
    assert x.mean() == np.ma.average(x) == 2.5
    assert x.mean(dtype=np.float32).dtype != x.dtype
    assert x.astype(np.float32).mean() == 2.5
    assert x.mean(0, keepdims=True).fill_value == 7
    assert np.ma.masked_all(3, td.bfloat16).mean() is np.ma.masked
    assert x[1:2].var() is np.ma.masked
    out = np.zeros((), td.bfloat16)
    assert np.isnan(np.ma.masked_all(3, td.bfloat16).mean(out=out))
    assert x.var(ddof=1, out=out) is out
    assert out == 4.5
    assert np.ma.array([1, 2, 3], mask=[0, 1, 0]).mean() == 2
    assert str(inspect.signature(np.ma.MaskedArray.mean)).startswith("(self, axis=None")


# -- NumPy's own arrays ----------------------------------------------------------------


def test_numpys_arrays_see_nothing_of_it() -> None:
    x = np.array([1, 2, np.nan], np.float32)
    assert np.nanmean(x) == 1.5
    assert str(inspect.signature(np.nanmean)).startswith("(a, axis=None, dtype=None")
    assert np.mean(np.array([1 + 2j])) == 1 + 2j
    assert np.mean([1, 2]) == np.median([[1, 2]]) == 1.5
    assert np.mean(np.array([Fraction(1), Fraction(2)])) == Fraction(3, 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        np.nanmean(x[2:])
        np.nanvar(x[2:])
    assert [warning.filename for warning in seen] == [__file__] * 2
    with pytest.raises(TypeError):
        np.median()
    with pytest.raises(TypeError, match="resolved dtypes") as error:
        np.median("abc")
    assert "routes" not in "".join(map(str, error.traceback))
    a = np.random.default_rng(0).normal(size=(50, 60))
    got = np.einsum("ij,kj->ik", a, a, order="K")  # the letter of a format, too
    assert np.array_equal(got, np.einsum("ij,kj->ik", a, a))
    for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
        assert np.einsum(letter, np.arange(3)) is not None
        assert np.einsum(f"{letter}->", [1, 2], dtype=int, casting="unsafe") == 3


def test_functions_that_python_already_knows() -> None:
    """Replace `_mean` also where NumPy keeps a copy of it, and in loops in which Python
    remembers the function that it called."""
    out = run_code(
        "import numpy as np\n"
        "x = np.arange(4, dtype=np.float32)\n"
        "nanmean = np.nanmean\n"
        "def mean(x):\n"
        "    return np._core._methods._mean(x)\n"
        "def all_of(x):\n"
        "    return x.mean(), np.mean(x), np.var(x), nanmean(x), np.median(x)\n"
        "for _ in range(500): all_of(x), mean(x)\n"
        "import tf32dtype as td\n"
        "y = np.full(1000, 2, td.float8_e4m3fn)\n"
        "print(*map(float, all_of(y)), *map(float, all_of(x)))"
    )
    assert out == "2.0 2.0 0.0 2.0 2.0 1.5 1.5 1.25 1.5 1.5"


def outcome(function: Callable[[np.ndarray], Any], x: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(x)
        except Exception as error:
            return type(error), str(error)
    return np.asarray(result, np.float64).tolist()


ODD_ARGUMENTS: list[Callable[[np.ndarray], Any]] = [
    lambda x: np.average(x, axis=()),
    lambda x: np.average(x, axis=5),
    lambda x: np.average(x, axis="x"),  # type: ignore[call-overload]
    lambda x: np.average(x, axis=5, weights=x),
    lambda x: np.average(x, axis=(0, 0), weights=x),
    lambda x: np.linalg.norm(x.reshape(2, 2, 2), axis=(0, 1, 2)),
    lambda x: np.linalg.norm(x.reshape(2, 2, 2), axis=()),
    lambda x: x.mean(ddof=1),  # type: ignore[call-overload]
    lambda x: x.prod(ddof=1),  # type: ignore[call-overload]
    lambda x: x.mean(None, None, None, False, True),
    lambda x: x.mean(None, None, None, False, keepdims=True),
    lambda x: x.var(None, None, None, 0, True),
    lambda x: np.var(x, ddof=10**400),
    lambda x: np.nanargmax(x[0, ...], axis=0),
]


@pytest.mark.parametrize("number", range(len(ODD_ARGUMENTS)))
def test_odd_arguments_do_what_they_do_to_float16(number: int) -> None:
    function = ODD_ARGUMENTS[number]
    x = np.array([1, 1, 2, 2, 1, 1, 2, 2], td.bfloat16)
    assert outcome(function, x) == outcome(function, x.astype(np.float16))
