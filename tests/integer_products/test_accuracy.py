"""Emulated precisions become exact as moduli or slices are added."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import items, normal
from tf32dtype._integer_products.truncation import moduli_needed, span

KINDS = ("crt{}", "crt{}_fast", "int8x{}")


def operands(octaves: int, dtype: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(octaves)
    a, b = (
        np.ldexp(normal(rng, shape), -rng.integers(0, octaves + 1, shape)).astype(dtype)
        for shape in ((20, 60), (60, 30))
    )
    return a, b


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_modulus_or_slice_makes_the_error_smaller(kind: str, dtype: Any) -> None:
    a, b = operands(0, dtype)
    exact = td.matmul(a, b, precision="exact", dtype=np.float64)
    errors = []
    for count in range(3, 21):
        name: Any = kind.format(count)
        found = td.matmul(a, b, precision=name, dtype=np.float64)
        errors.append(float(np.abs(found - exact).max()))
    first_exact = errors.index(0)
    assert all(x > y for x, y in pairwise(errors[: first_exact + 1]))
    assert not any(errors[first_exact:])


@pytest.mark.parametrize("octaves", [0, 6, 25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_truncation_moduli_give_the_exact_product(
    octaves: int, dtype: Any
) -> None:
    a, b = operands(octaves, dtype)
    exact = td.matmul(a, b, precision="exact")
    needed = moduli_needed(a.astype(np.float64), b.T.astype(np.float64))
    if needed is None:
        assert octaves
        assert dtype == np.float64
        return
    for count in (needed, 20):
        name: Any = f"crt{count}"
        found = td.matmul(a, b, precision=name)
        assert np.array_equal(items(found), items(exact))


def test_integers_need_the_moduli_of_their_bits() -> None:
    """crt2 has 15 bits for sums of products."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-15, 16, s).astype(np.float32) for s in ((5, 30), (30, 6)))
    assert moduli_needed(a.astype(float), b.T.astype(float)) == 2
    assert np.array_equal(td.matmul(a, b, precision="crt2"), a @ b)
    assert moduli_needed(a.astype(float) + 2.0**-200, b.T.astype(float)) is None
    zero = np.zeros((2, 3))
    assert moduli_needed(zero, zero) == 2
    assert moduli_needed(np.zeros((0, 3)), zero) == 2


def test_spans_of_exponents() -> None:
    rows = np.array([[0, 1.5, -8, 0.3], [0, 0, 0, 0], [1e-3, 0, 0, 0]])
    assert span(rows) == 5
    assert span(np.zeros((2, 0))) == span(np.zeros((0, 2))) == 0
    assert span(np.array([[5e-324, 1.7e308]])) == 1023 + 1074


@pytest.mark.parametrize("precision", ["crt7", "crt14", "int8x5"])
def test_powers_of_two_only_change_exponents(precision: Any) -> None:
    a, b = operands(4, np.float64)
    rows, columns = 2.0 ** np.arange(-10, 10)[:, None], 2.0 ** np.arange(30)
    plain = td.matmul(a, b, precision=precision)
    scaled = td.matmul(a * rows, b * columns, precision=precision)
    assert np.array_equal(scaled, plain * rows * columns)
