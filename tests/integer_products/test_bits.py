"""Emulated precisions against Python's integers: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import DRAWN, FORMS, Drawn, assert_items, items, normal
from tests.reference import integer_products as reference
from tf32dtype._integer_products import products

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Array = np.ndarray[Any, np.dtype[Any]]
FEW = ("crt2", "crt3", "crt8", "crt13", "crt20", "int8x2", "int8x4", "int8x7")
FAST = ("crt2_fast", "crt5_fast", "crt14_fast", "crt20_fast")
PRECISIONS = (*FEW, *FAST, "int8x20")
SHAPES = ((1, 1, 1), (3, 4, 5), (2, 40, 3), (5, 0, 2), (4, 130, 3))
each_precision = pytest.mark.parametrize("precision", PRECISIONS)
each_drawn = pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)


def check(a: Array, b: Array, precision: Any, dtype: str | None = None) -> Array:
    """Compare `tf32dtype.matmul` with the reference; return the result."""
    with np.errstate(all="ignore"):
        found = td.matmul(a, b, precision=precision, dtype=dtype)
    rows, columns = ([[float(x) for x in row] for row in matrix] for matrix in (a, b.T))
    is_double = np.result_type(a, b) == np.float64
    form = FORMS[found.dtype.name]
    wanted = reference.matmul(rows, columns, precision, form, is_double)
    assert_items(found, np.array(wanted, np.uint64).reshape(found.shape), precision)
    return found


@each_precision
@each_drawn
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_kinds_of_numbers(drawn: Drawn, dtype: str, precision: str) -> None:
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        for m, k, n in SHAPES:
            a, b = (drawn(rng, shape).astype(dtype) for shape in ((m, k), (k, n)))
            check(a, b, precision)
            check(a, b, precision, "float64" if dtype == "float32" else "float32")


@each_precision
@pytest.mark.parametrize("octaves", [3, 12, 40, 90])
def test_spans_of_exponents(octaves: int, precision: str) -> None:
    """Small numbers next to large ones are truncated, in rows and in columns."""
    rng = np.random.default_rng(octaves)
    for dtype in (np.float32, np.float64):
        a, b = (
            np.ldexp(rng.standard_normal(shape), -rng.integers(0, octaves, shape))
            for shape in ((4, 30), (30, 5))
        )
        a[1] = 0
        b[:, 2] *= 2.0**20
        check(a.astype(dtype), b.astype(dtype), precision)


@each_precision
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinities_and_nans_stay_in_their_rows(value: float, precision: str) -> None:
    rng = np.random.default_rng(5)
    for dtype in (np.float32, np.float64):
        a, b = (normal(rng, s).astype(dtype) for s in ((5, 20), (20, 6)))
        a[1, 3] = b[4, 2] = value
        a[2, 4] = b[5, 3] = 0
        found = check(a, b, precision)
        assert np.isfinite(found[[0, 2, 3, 4]][:, [0, 1, 3, 4, 5]]).all()
        assert not np.isfinite(found[1]).any()


@each_precision
def test_subnormal_operands_and_results(precision: str) -> None:
    rng = np.random.default_rng(6)
    for dtype, low in ((np.float32, -149), (np.float64, -1074)):
        for top in (0, 1, 5, 20, 30):
            a = np.ldexp(rng.integers(-7, 8, (3, 9)).astype(float), low).astype(dtype)
            b = np.ldexp(normal(rng, (9, 4)), top).astype(dtype)
            check(a, b, precision)
        small = normal(rng, (4, 9)) * 2.0 ** (low // 2)
        check(small.astype(dtype), small.T.astype(dtype), precision)


@each_precision
def test_ties_of_results(precision: str) -> None:
    """Sums that are halfway between two numbers, and close to that."""
    for dtype, bits in ((np.float32, 24), (np.float64, 53)):
        a = np.array([[1.0, 2.0**-bits, s * 2.0**-q] for q in (26, 40, 55, 70)
                      for s in (-1, 0, 1)], dtype)  # fmt: skip
        b = np.array([[1, 1, 1], [1 + 2.0 ** (1 - bits), 1, 1], [-1, -1, 1]], dtype).T
        check(a, b, precision)


@pytest.mark.parametrize(
    ("k", "precision"),
    [(1 << 17, "crt10"), (1 << 17, "int8x4"), (4097, "crt9_fast"), (4097, "int8x9")],
)
def test_many_terms(k: int, precision: str) -> None:
    """Parts of the integers are smaller where more products are added."""
    rng = np.random.default_rng(7)
    drawn = normal(rng, (1, k)), normal(rng, (k, 1))
    full = np.full((1, k), 1 - 2.0**-24), np.full((k, 1), 1 - 2.0**-24)
    for a, b in (drawn, full) if k < 1 << 17 else (full,):
        check(a.astype(np.float32), b.astype(np.float32), precision)


def test_tiles_are_products_of_their_rows_and_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(8)
    a, b = (normal(rng, s).astype(np.float32) for s in ((150, 6), (6, 40)))
    names: Any = ("crt9", "crt6_fast", "int8x4")
    whole = [td.matmul(a, b, precision=name) for name in names]
    monkeypatch.setattr(products, "_WIDTH", 7)
    monkeypatch.setattr(products, "_TILE", 1)
    for name, wanted in zip(names, whole, strict=True):
        found = td.matmul(a, b, precision=name)
        assert np.array_equal(items(found), items(wanted))


def test_fast_mode_wraps_products_of_small_numbers() -> None:
    """GEMMul8's scales in fast mode ensure the bound only for numbers of about 1.

    The norms of these rows are below 2, so that fast mode takes them for 2.
    """
    a = np.full((2, 4096), 2.0**-30, np.float32)
    wrapped = check(a, a.T, "crt8_fast")
    assert (wrapped != 4096 * 2.0**-60).all()
    assert (check(a, a.T, "crt8") == 4096 * 2.0**-60).all()
