"""NumPy's functions that know only NumPy's dtypes take our arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.bits import ALL, dtype, items_of, name
from tf32dtype._functions import answers

each = pytest.mark.parametrize("f", ALL, ids=name)


@each
def test_einsum_is_ours(f: Any) -> None:
    x = np.random.default_rng(0).integers(0, 2, (3, 3)).clip(f.powers).astype(dtype(f))
    for subscripts in ("ij,jk->ik", "ij->ji", "ii", "ij,jk,kl"):
        operands = [x] * (subscripts.count(",") + 1)
        for optimize in (False, True, "greedy"):
            got = np.einsum(subscripts, *operands, optimize=optimize)
            want = td.einsum(subscripts, *operands, optimize=optimize)
            assert np.array_equal(items_of(f, got), items_of(f, want))
    out = np.empty((3, 3), dtype(f))
    assert np.einsum(x, [0, 1], x, [1, 2], out=out) is out
    assert np.array_equal(items_of(f, out), items_of(f, x @ x))


def test_einsums_keywords() -> None:
    x = np.ones((2, 3), td.bfloat16)
    assert np.einsum("ij,kj->ik", x, x, dtype=np.float32).dtype == np.float32
    assert np.einsum("ij,kj->ik", x, x, order="F").flags.f_contiguous
    assert np.einsum("ij,kj->ik", x, x.astype(np.float32)).dtype == np.float32
    with pytest.raises(TypeError, match=r"'safe'\. Use casting='same_kind'"):
        np.einsum("ij->j", x, dtype=td.float8_e4m3fn)
    same_kind = {"dtype": td.float8_e4m3fn, "casting": "same_kind"}
    assert np.einsum("ij->j", x, **same_kind).dtype == td.float8_e4m3fn


def test_einsums_casting() -> None:
    x = np.full((2, 2), 1.5, td.bfloat16)
    out = np.empty((2, 2), int)
    assert np.einsum("ij,jk", x, x, out=out, casting="unsafe") is out
    assert out.tolist() == [[4, 4], [4, 4]]
    got = np.einsum("ij,jk", x, x, dtype=int, casting="unsafe")
    assert got.tolist() == [[2, 2], [2, 2]]
    with pytest.raises((TypeError, ValueError), match="casting"):
        np.einsum("ij,jk", x, x, casting="bad")
    assert np.einsum("ij->", x, optimize=None) == 6


def test_is_close_is_of_the_numbers() -> None:
    six = np.array([1, 2, 4], td.float6_e2m3fn)
    assert not np.isclose(six, 1e6).any()
    assert not np.allclose(six[:1], 1e39)
    assert not np.isclose(td.float8_e5m2(1), 1.1)
    assert np.isclose([td.bfloat16(1.5)], 1.5).tolist() == [True]
    assert np.isclose(six, six, rtol=td.bfloat16(0.5)).all()
    assert np.isclose(b=six, a=six).all()


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_isclose_of_arrays(form: Any) -> None:
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        x = rng.normal(0, 1, (300, 101)).astype(form.dtype)
        y = (x.astype(float) * rng.choice([1, 1.01, 1.5], x.shape)).astype(form.dtype)
    if form.has_nan:
        x[3, :50] = y[3, 20:70] = np.nan
    for options in ({}, {"rtol": 0.02}, {"atol": 0.1}, {"equal_nan": True}):
        for a, b in ((x, y), (x.T, y.T), (x, y.astype(np.float32)), (x, y[:1])):
            want = np.isclose(a.astype(float), b.astype(float), **options)
            assert np.array_equal(np.isclose(a, b, **options), want)
    assert np.isclose(x, y, rtol=np.zeros(101)).shape == x.shape
    codes = rng.integers(0, 1 << form.bits, (2, 3000), np.uint32)
    unused = 13 if form.name == "tf32" else 0
    a, b = td.from_bits((codes << unused).astype(f"u{form.itemsize}"), form.dtype)
    for options in ({}, {"rtol": 0.5, "equal_nan": True}, {"rtol": -1, "atol": 1e-300}):
        for x, y in ((a, b), (a[::-2], a[::-2]), (a, b[:1]), (a, a[::-1])):
            want = np.isclose(x.astype(float), y.astype(float), **options)
            assert np.array_equal(np.isclose(x, y, **options), want)


@each
def test_common_type(f: Any) -> None:
    x = np.ones(2, dtype(f))
    assert np.common_type(x) is dtype(f).type
    assert np.common_type(x, np.ones(2)) is np.float64
    assert np.common_type(x, np.ones(2, int)) is np.float64
    assert np.common_type(x, np.ones(2, np.complex64)) is np.complex64
    with pytest.raises(TypeError, match="non-numeric"):
        np.common_type(x, np.array(["a"]))


@pytest.mark.parametrize("f", [f for f in ALL if f.nan is not None], ids=name)
def test_index_of_an_extreme_beside_nan(f: Any) -> None:
    values = [2, np.nan, 8, 4] if f.powers else [np.nan, 1, 3, 2]
    x = np.array([values, values[::-1]], dtype(f))
    wide = x.astype(np.float64)
    for function in (np.nanargmax, np.nanargmin):
        for axis in (None, 0, 1):
            if axis != 0:  # each column has a number
                assert np.array_equal(function(x, axis), function(wide, axis))
        with pytest.raises(ValueError, match="All-NaN"):
            function(np.full(3, np.nan, dtype(f)))


def test_another_numpy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the functions of this version of NumPy; warn if a function is missing."""
    answers.register()
    monkeypatch.setitem(answers.ANSWERS, "numpy.no_such_function", answers._index)
    with pytest.warns(RuntimeWarning, match="numpy.no_such_function of its dtypes"):
        answers.register()


@each
@pytest.mark.filterwarnings("ignore:overflow")
def test_dot_and_inner_are_products_of_matrices(f: Any) -> None:
    """Compute dot and inner with the bits of NumPy's dot products of row and column."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 3, (2, 3, 4, 5)).clip(f.powers).astype(dtype(f))
    a, b, v = numbers[0], numbers[1].swapaxes(-1, -2), numbers[0, 0, 0]

    def one_by_one(x: Any, y: Any) -> Any:
        rows = x.reshape(-1, 5)
        columns = np.moveaxis(y, max(y.ndim - 2, 0), 0).reshape(5, -1).T
        found = [[np.dot(row, column) for column in columns] for row in rows]
        return np.array(found, dtype(f)).reshape(
            x.shape[:-1] + y.shape[:-2] + y.shape[-1:] * (y.ndim > 1)
        )

    for x, y in [(a, b), (a[0], b[1]), (a[0], v), (v, b[0]), (a[:, 0], b), (v, b)]:
        want = one_by_one(x, y)
        turned = y if y.ndim < 2 else y.swapaxes(-1, -2)
        out = np.empty(want.shape, dtype(f))
        for got in (
            np.dot(x, y),
            np.dot(b=y, a=x),
            x.dot(y),
            np.inner(x, turned),
            np.ndarray.dot(x, b=y, out=out),
            np.dot(x, y, np.empty_like(out)),
        ):
            assert got.dtype == dtype(f)
            assert got.shape == want.shape
            assert np.array_equal(items_of(f, got), items_of(f, want))
        assert np.array_equal(items_of(f, out), items_of(f, want))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # np.matrix
def test_what_dot_leaves_to_numpy() -> None:
    x = np.ones((2, 3), td.bfloat16)
    assert (x @ x.T == 3).all()
    assert np.array_equal(np.dot(x, 2), x + x)
    assert x.dot(np.ones((3, 1), np.float32)).dtype == np.float32
    assert np.ones((2, 2), np.int8).dot(x).dtype == td.bfloat16
    assert type(np.asmatrix(x).dot(x.T)) is np.matrix
    assert np.dot(x[:, :0], x[:, :0].T).tolist() == [[0, 0], [0, 0]]
    for call in (np.dot, np.ndarray.dot, np.inner):
        with pytest.raises(ValueError, match="not aligned"):
            call(x, x if call is not np.inner else x.T)
    for out in (np.empty((2, 2)), np.empty((2, 3), td.bfloat16)):
        with pytest.raises(ValueError, match="output array"):
            x.dot(x.T, out=out)
    for method, wrong, unknown in [
        (x.dot, (), {}),
        (x.dot, (x.T, None, None, None, None), {}),
        (x.dot, (x.T,), {"c": 1}),
        (np.dot, (x,), {}),
        (np.dot, (x, x.T, None, None), {}),
        (np.dot, (x, x.T), {"c": 1}),
        (np.inner, (x,), {}),
        (np.inner, (x, x), {"out": None}),
    ]:
        with pytest.raises(TypeError, match=r"argument|inner\(\)"):
            method(*wrong, **unknown)


def test_a_warning_of_dot_is_of_the_line_that_calls() -> None:
    x = np.full((2, 2), 3e38, td.bfloat16)
    for call in (np.dot, np.ndarray.dot, np.inner):
        with pytest.warns(RuntimeWarning, match="overflow") as found:
            call(x, x)
        assert found[0].filename == __file__
