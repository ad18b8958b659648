"""Correctly rounded sums against Python's integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tf32dtype as td
from tests.exact.cases import DRAWN, FORMS, ROUNDINGS, Array, Drawn, dtype_of, items
from tests.reference import exact, exact_arrays

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

finite = st.floats(allow_nan=False, allow_infinity=False)


def check(x: Array, name: str, rounding: Any = "ties_to_even") -> None:
    found = np.asarray(td.exact_sum(x, dtype=dtype_of(name), rounding=rounding))
    wanted = exact.total([float(v) for v in x.ravel()], FORMS[name], rounding)
    assert items(found).item() == wanted, (name, rounding)


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
def test_sums(drawn: Drawn) -> None:
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 31, 512, 513, 3000):
        for source in (np.float32, np.float64):
            with np.errstate(all="ignore"):
                x = drawn(rng, (1, n)).astype(source)
            for rounding in ROUNDINGS:
                check(x, "float32", rounding)
                check(x, "float64", rounding)
                check(np.concatenate([x, -x, x[:, :1]], axis=1), "float64", rounding)


@pytest.mark.parametrize("name", FORMS)
def test_formats(name: str) -> None:
    rng = np.random.default_rng(2)
    with np.errstate(all="ignore"):
        x = abs(rng.standard_normal((3, 40))).astype(dtype_of(name))
    for rounding in ROUNDINGS:
        check(x, name, rounding)
        check(x, "float32", rounding)
    whole = td.exact_sum(x, axis=1)
    assert whole.dtype == x.dtype
    assert all(items(whole)[i] == items(td.exact_sum(x[i]))[0] for i in range(3))


@given(st.lists(finite, max_size=40), st.sampled_from(ROUNDINGS))
def test_any_numbers(values: list[float], rounding: Any) -> None:
    x = np.array(values)
    check(x, "float64", rounding)
    check(np.concatenate([x, -x[::2]]), "float64", rounding)
    check(x, "float32", rounding)


@given(st.lists(finite, max_size=60))
def test_math_fsum(values: list[float]) -> None:
    try:
        wanted = math.fsum(values)
    except OverflowError:  # of a partial sum
        return
    assert td.exact_sum(np.array(values)) == wanted


def test_ties_at_every_bit_of_long_sums() -> None:
    rng = np.random.default_rng(4)
    for place in (1, 23, 24, 25, 40, 52, 53, 54, 80, 106, 107):
        for below in (0.0, 2.0**-1000, -(2.0**-1000)):
            x = np.zeros(1500)
            noise = rng.standard_normal(700)
            x[:4] = 1.0, 2.0**-52, 2.0**-place, below
            x[4:704], x[704:1404] = noise, -noise
            rng.shuffle(x)
            for rounding in ROUNDINGS:
                check(x, "float64", rounding)
                check(x, "float32", rounding)


def test_special_values() -> None:
    values = [np.inf, -np.inf, np.nan, 1.0, 0.0, -0.0, 1e308, -1e308]
    for i, x in enumerate(values):
        for y in values[i:]:
            for n in (2, 700):
                given = np.resize(np.array([x, y]), n)
                check(given, "float64")
                check(given, "float32")


# -- many short rows -------------------------------------------------------------------

LENGTHS = (1, 2, 3, 4, 7, 16, 20, 64, 200, 512)


def check_rows(x: Array, names: tuple[str, ...] = ("float32", "float64")) -> None:
    """Check the sums of rows of finite numbers, which also are products with ones."""
    ones = np.ones((x.shape[1], 1))
    values = exact_arrays.products(x.astype(np.float64), ones)
    for name in names:
        for rounding in ROUNDINGS:
            wanted = exact_arrays.encode(FORMS[name], values, rounding)
            dtype, given = dtype_of(name), np.asfortranarray(x)
            for found in (
                td.exact_sum(x, 1, dtype=dtype, rounding=rounding),
                td.exact_sum(given, 1, dtype=dtype, rounding=rounding),
                td.matmul(
                    x, ones, dtype=dtype, rounding=rounding, precision="exact"
                ).ravel(),
            ):
                differ = np.flatnonzero(items(found) != wanted.ravel())
                assert not differ.size, (name, rounding, x[differ[0]])


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_short_rows(drawn: Drawn, source: Any) -> None:
    rng = np.random.default_rng(9)
    for n in LENGTHS:
        with np.errstate(all="ignore"):
            x = drawn(rng, (max(1500 // n, 17), n)).astype(source)
        x[~np.isfinite(x)] = 1
        check_rows(x, ("float32", "float64", "bfloat16"))


@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_short_rows_that_cancel(source: Any) -> None:
    rng = np.random.default_rng(10)
    for n in LENGTHS[2:]:
        shape = 2000 // n + 17, n
        x = np.ldexp(rng.standard_normal(shape), rng.integers(-60, 60, shape))
        x = x.astype(source)
        half = n // 2
        x[:, half : 2 * half] = -x[:, :half]
        x[::3, 0] *= 1 + np.finfo(source).eps
        check_rows(rng.permuted(x, axis=1), ("float32", "float64", "float16"))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("far", [0, 30, 900])
def test_ties_of_short_rows(name: str, far: int) -> None:
    """Rows hold a number, half a unit, perhaps a small number, and two that cancel."""
    rng = np.random.default_rng(11)
    form = FORMS[name]
    bits = form.mantissa_bits
    for low in (-60, form.least_exponent + bits + 4):
        value = rng.integers(1 << bits, 2 << bits, 400).astype(np.float64)
        x = np.zeros((400, 5))
        x[:, 0] = np.ldexp(value, low - bits)
        x[:, 1] = 2.0 ** (low - bits - 1)
        x[:, 2] = rng.choice([-1.0, 0.0, 1.0], 400) * 2.0 ** max(low - 150, -1074)
        x[:, 3] = 2.0 ** (low + far)
        x[:, 4] = -x[:, 3]
        x[::2] *= -1
        check_rows(x)
        check_rows(rng.permuted(x, axis=1))
        check_rows(x[:, [3, 0, 4]])
        check_rows(x[:, [3, 0, 1, 4]])
        check_rows(x[:, :2])


def test_short_rows_at_the_ends_of_the_range() -> None:
    rng = np.random.default_rng(12)
    for low, high in ((-1074, -1010), (-1022, -960), (1000, 1024), (-160, -120)):
        for n in (1, 2, 3, 20):
            x = np.ldexp(
                rng.uniform(0.5, 1, (300, n)), rng.integers(low, high, (300, n))
            )
            x *= rng.choice([-1.0, 1.0], x.shape)
            check_rows(x)
            check_rows(np.hstack([x, -x[:, ::-1], x[:, :1] / 2]))


def test_special_values_in_short_rows() -> None:
    rng = np.random.default_rng(13)
    values = [np.inf, -np.inf, np.nan, 1.0, 0.0, -0.0, 1.7e308, -1.7e308, 5e-324]
    for n in (1, 2, 3, 20):
        x = rng.choice(
            values, (300, n), p=[0.04] * 3 + [0.4, 0.2, 0.2, 0.03, 0.03, 0.02]
        )
        for name in ("float32", "float64", "bfloat16"):
            for y in (x, np.asfortranarray(x)):
                found = items(td.exact_sum(y, 1, dtype=dtype_of(name)))
                wanted = [exact.total(row.tolist(), FORMS[name]) for row in x]
                assert found.tolist() == wanted


@pytest.mark.parametrize("n", [1, 2, 5, 130, 512])
def test_any_number_of_short_rows(n: int) -> None:
    rng = np.random.default_rng(14)
    x = rng.standard_normal((100, n))
    wanted = [math.fsum(row) for row in x.tolist()]
    strided = np.repeat(np.repeat(x, 2, 0), 3, 1)[1::2, 2::3]
    for m in (*range(40), 100):
        assert td.exact_sum(x[:m], 1).tolist() == wanted[:m]
        assert td.exact_sum(x.T[:, :m], 0).tolist() == wanted[:m]
        assert td.exact_sum(x[::-1, ::-1][:m], 1).tolist() == wanted[::-1][:m]
        assert td.exact_sum(strided[:m], 1).tolist() == wanted[:m]
    rows = np.broadcast_to(x[:, :1], (100, n))
    assert td.exact_sum(rows, 1).tolist() == [math.fsum(row) for row in rows.tolist()]


# -- arrays ----------------------------------------------------------------------------


def test_axes_and_layouts() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((3, 4, 5, 6)).astype(np.float32)
    x = x[::-1, :, ::2].swapaxes(1, 3)
    for axis in (None, 0, -1, (0, 2), (1, 3), (), (0, 1, 2, 3)):
        for keepdims in (False, True):
            found = td.exact_sum(x, axis, keepdims=keepdims)
            wide = np.sum(x, axis, keepdims=keepdims, dtype=np.float64)
            assert found.dtype == np.float32
            assert found.shape == wide.shape
            np.testing.assert_allclose(found, wide, rtol=1e-6, atol=1e-6)
    for i in range(x.shape[3]):
        one = td.exact_sum(x, (0, 1, 2))[i]
        assert one == np.float32(math.fsum(x[..., i].ravel().tolist()))
    out = np.empty(x.shape[:2], np.float64)
    assert td.exact_sum(x, (2, 3), out=out) is out
    assert (out == td.exact_sum(x, (2, 3), dtype=np.float64)).all()
    assert np.isscalar(td.exact_sum(x))


def test_complex() -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((2, 50)) + 1j * rng.standard_normal((2, 50))
    for dtype in (np.complex64, np.complex128):
        y = x.astype(dtype)
        found = td.exact_sum(y, 1)
        assert found.dtype == dtype
        assert (found.real == td.exact_sum(y.real, 1)).all()
        assert (found.imag == td.exact_sum(y.imag, 1)).all()


def test_errors() -> None:
    x = np.ones(3)
    for wrong in (x.astype(int), x.astype(np.longdouble), x.astype(object)):
        with pytest.raises(TypeError, match="x must hold floating-point numbers"):
            td.exact_sum(wrong)
    with pytest.raises(ValueError, match="rounding must be one of 'ties_to_even'"):
        td.exact_sum(x, rounding="stochastic")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dtype must be complex for complex numbers"):
        td.exact_sum(x * 1j, dtype=float)
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        td.exact_sum(x, 1)
    with pytest.warns(RuntimeWarning, match="overflow encountered in exact_sum"):
        td.exact_sum(np.full(2, 1e308))
    with pytest.warns(RuntimeWarning, match="invalid value encountered in exact_sum"):
        td.exact_sum(np.array([np.inf, -np.inf]))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float6_e3m2fn", "bfloat16"])
def test_overflow_of_formats(name: str) -> None:
    """Overflow is reported whether the result is NaN, the largest number or Inf."""
    x = np.full(2, td.formats[name].max).astype(td.formats[name].dtype)
    with np.errstate(invalid="raise"):
        with pytest.warns(RuntimeWarning, match="overflow encountered in exact_sum"):
            td.exact_sum(x)
        with pytest.warns(RuntimeWarning, match="overflow encountered in matmul"):
            td.matmul(x[None], x[:, None], precision="exact")


@pytest.mark.exhaustive
def test_ten_million_numbers() -> None:
    rng = np.random.default_rng(8)
    x = np.ldexp(rng.standard_normal(10**7), rng.integers(-60, 60, 10**7))
    assert td.exact_sum(x) == math.fsum(x)
    x[: x.size // 2] = -x[x.size // 2 :]
    x[0] += 1e-30
    assert td.exact_sum(x) == math.fsum(x)
