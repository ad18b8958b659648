"""NumPy's functions that know NumPy's dtypes alone take our arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import ALL, dtype, items_of, name

import tf32dtype as td
from tf32dtype import answers

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
    with pytest.raises(TypeError, match="'safe'; casting='same_kind'"):
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
            if axis != 0:  # where each column has a number
                assert np.array_equal(function(x, axis), function(wide, axis))
        with pytest.raises(ValueError, match="All-NaN"):
            function(np.full(3, np.nan, dtype(f)))


def test_another_numpy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this version of NumPy has is found; what is not there makes a warning."""
    answers.register()
    monkeypatch.setitem(answers.ANSWERS, "numpy.no_such_function", answers._index)
    with pytest.warns(RuntimeWarning, match="numpy.no_such_function of its formats"):
        answers.register()
