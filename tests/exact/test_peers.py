"""Correctly rounded products against other libraries that add exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import DRAWN, FORMS, Array, Drawn, dtype_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

each_drawn = pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)


def finite(x: Array) -> Array:
    return np.where(np.isfinite(x), x, 1.0)


def operands(
    draw: Drawn, shape: tuple[int, int, int], seed: int
) -> tuple[Array, Array]:
    """Return operands of which the second half nearly cancels the first one."""
    m, k, n = shape
    rng = np.random.default_rng(seed)
    x, y = finite(draw(rng, (m, k))), finite(draw(rng, (k, n)))
    near = y + y * rng.choice([0.0, 0.0, 2.0**-12, 2.0**-50], y.shape)
    near[:, 0] = y[:, 0]
    return np.hstack([x, -x]), np.vstack([y, finite(near)])


def few_bits(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return float32 numbers of at most 2^9, all multiples of 2^-36."""
    x = np.ldexp(rng.standard_normal(shape), rng.integers(-5, 6, shape))
    return np.ldexp(np.rint(np.ldexp(x.astype(np.float32), 36)), -36).astype(np.float64)


def exact(a: Array, b: Array, **keywords: Any) -> list[list[float]]:
    found = td.matmul(a, b, precision="exact", **keywords)
    rows: list[list[float]] = found.astype(np.float64).tolist()
    return rows


def dots(function: Callable[..., Any], a: Array, b: Array) -> list[list[Any]]:
    columns = b.T.tolist()
    return [[function(row, column) for column in columns] for row in a.tolist()]


@pytest.mark.skipif(not hasattr(math, "sumprod"), reason="needs Python 3.12")
@pytest.mark.parametrize("k", [1, 30, 500])
def test_sumprod(k: int) -> None:
    """math.sumprod adds with three float64 numbers, and rounds their sum in two steps.

    It is correctly rounded if products are multiples of a unit, 2^-72 here, and their
    magnitudes add up to at most 2^100 units.
    """
    a, b = operands(few_bits, (20, k, 20), k)
    b = np.ldexp(np.rint(np.ldexp(b, 36)), -36)
    assert exact(a, b) == dots(math.sumprod, a, b)


@pytest.mark.parametrize("k", [10, 2000, 10**6])
def test_fsum(k: int) -> None:
    """Products of float32 numbers are exact in float64."""
    a, b = (x.astype(np.float32) for x in operands(few_bits, (2, k // 2, 2), k))
    columns = b.T.astype(np.float64)
    wanted = [[math.fsum(row * column) for column in columns] for row in a]
    assert exact(a, b, dtype=np.float64) == wanted


def sum_of_fractions(x: list[float], y: list[float]) -> float:
    total = sum(Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@each_drawn
def test_fractions(drawn: Drawn) -> None:
    for k in (1, 20):
        a, b = operands(drawn, (15, k, 15), 1)
        assert exact(a, b) == dots(sum_of_fractions, a, b)


@each_drawn
@pytest.mark.parametrize("name", ["float8_e4m3", "bfloat16", "float32", "float64"])
def test_mpmath(drawn: Drawn, name: str, compared: Callable[..., None]) -> None:
    """mpmath's numbers have any exponents: results must be normal numbers."""
    mp = pytest.importorskip("mpmath").mp
    form = FORMS[name]
    a, b = operands(drawn, (12, 12, 12), 2)

    def total(x: list[float], y: list[float]) -> Any:
        result = mp.mpf(0)
        for one, other in zip(x, y, strict=True):
            product = mp.fmul(one, other, exact=True)
            result = mp.fadd(result, product, exact=True)
        return result

    sums = [x for row in dots(total, a, b) for x in row]
    for rounding, mode in {
        "ties_to_even": "n",
        "toward_zero": "d",
        "toward_positive": "c",
        "toward_negative": "f",
    }.items():
        found = exact(a, b, dtype=dtype_of(name), rounding=rounding)
        for own, wanted in zip(np.ravel(found), sums, strict=True):
            if 2.0**form.normal_exponent <= abs(wanted) <= float(form.max_value):
                rounded = mp.fadd(wanted, 0, prec=form.mantissa_bits + 1, rounding=mode)
                assert own == float(rounded), (rounding, wanted)
                compared(1)
