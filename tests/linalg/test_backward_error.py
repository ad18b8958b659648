"""Backward errors are upper bounds of the exact ones, and near to them."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tf32dtype as td
from tests.linalg.systems import Array, exact_errors, matrix

#: The largest distance above the exact figure, relative to it.
NEAR = 1 + Fraction(8, 2**52)


def check(a: Array, x: Array, b: Array, *, near: bool = True) -> None:
    found = td.linalg.backward_error(a, x, b)
    for bound, exact in zip(found, exact_errors(a, x, b), strict=True):
        if exact is None or bound == np.inf:
            assert bound == np.inf
            assert exact is None or not near
            continue
        assert Fraction(float(bound)) >= exact
        assert not near or Fraction(float(bound)) <= exact * NEAR


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_are_near(dtype: type) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 30):
        for condition in (1.0, 1e6, 1e14):
            a = matrix(rng, n, condition).astype(dtype)
            b = rng.standard_normal(n).astype(dtype)
            x = np.linalg.solve(a, b)
            for found in (x, x * dtype(1.001), np.zeros_like(x), b):
                check(a, found, b)


values = st.floats(allow_nan=False, allow_infinity=False)


@given(st.integers(0, 4).flatmap(
    lambda n: st.lists(values, min_size=n * n + 2 * n, max_size=n * n + 2 * n)
))  # fmt: skip
def test_bounds_of_any_numbers(numbers: list[float]) -> None:
    n = round((len(numbers) + 1) ** 0.5) - 1
    a, x, b = np.split(np.array(numbers), [n * n, n * n + n])
    check(a.reshape(n, n), x, b, near=False)


def test_exact_solutions_have_no_error() -> None:
    a = np.array([[3.0, 1.0], [2.0, 2.0**-1000]])
    x = np.array([2.0, -5.0])
    b = np.array([1.0, 4 - 5 * 2.0**-1000])
    assert td.linalg.backward_error(a[:1, :1], x[:1], 2 * a[0, :1]) == (0, 0)
    found = td.linalg.backward_error(a, x, b)  # b lost a bit far below
    assert 0 < found.normwise < 1e-300
    assert td.linalg.backward_error(np.zeros((2, 2)), x, np.zeros(2)) == (0, 0)
    zero = td.linalg.backward_error(np.zeros((2, 2)), np.zeros(2), x)
    assert np.allclose(zero, 1)


def test_an_error_in_one_row_is_componentwise() -> None:
    a, x = np.diag([1.0, 2.0**-60]), np.ones(2)
    found = td.linalg.backward_error(a, x, np.array([1.0, 2.0**-59]))
    assert found.normwise < 2.0**-60
    assert found.componentwise == pytest.approx(1 / 3)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_solutions_that_are_not_finite(value: float) -> None:
    for a in (np.eye(2), np.zeros((2, 2)), np.diag([1.0, 0.0])):
        found = td.linalg.backward_error(a, [1.0, value], [1.0, 1.0])
        assert found == (np.inf, np.inf)


def test_overflow() -> None:
    big = sys.float_info.max
    for x in ([big, big], [big, -big], [1.0, 0.0]):
        check(np.array([[big, big], [1.0, big]]), np.array(x), np.ones(2), near=False)


def test_columns_and_stacks() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 1, 3, 3)), rng.standard_normal((4, 3, 5))
    x = rng.standard_normal((4, 3, 5))
    found = td.linalg.backward_error(a, x, b)
    assert found.normwise.shape == found.componentwise.shape == (2, 4, 5)
    for i, j, k in np.ndindex(2, 4, 5):
        one = td.linalg.backward_error(a[i, 0], x[j, :, k], b[j, :, k])
        assert one == (found.normwise[i, j, k], found.componentwise[i, j, k])


def test_empty() -> None:
    none = np.empty(0)
    assert td.linalg.backward_error(np.empty((0, 0)), none, none) == (0, 0)
    found = td.linalg.backward_error(np.eye(3), np.empty((3, 0)), np.empty((3, 0)))
    assert found.normwise.shape == (0,)
    found = td.linalg.backward_error(
        np.empty((0, 3, 3)), np.ones((3, 2)), np.ones((3, 2))
    )
    assert found.normwise.shape == (0, 2)


def test_formats_and_mixed_dtypes() -> None:
    a = np.array([[2.0, 1.0], [0.5, 4.0]])
    x, b = np.array([1.0, 2.0]), np.array([4.0, 8.0])
    wanted = td.linalg.backward_error(a, x, b)
    for dtype in (td.bfloat16, td.fp8_e4m3, np.float16, np.float32):
        assert td.linalg.backward_error(a.astype(dtype), x, b) == wanted
        assert td.linalg.backward_error(a, x.astype(dtype), b) == wanted
        assert td.linalg.backward_error(a, x, b.astype(dtype)) == wanted
    assert td.linalg.backward_error(a.tolist(), [1, 2], [4, 8]) == wanted


@pytest.mark.skipif(sys.platform != "linux", reason="loops are replaced on Linux")
def test_a_scope_that_rounds_float64() -> None:
    a, x = np.eye(3, dtype=np.float32) * np.float32(1.1), np.ones(3, np.float32)
    wanted = td.linalg.backward_error(a, x, x)
    with td.arithmetic("bf16"):
        assert td.linalg.backward_error(a, x, x) == wanted
    with (
        td.arithmetic("bf16", float64=True),
        pytest.raises(RuntimeError, match="rounds float64"),
    ):
        td.linalg.backward_error(a, x, x)
