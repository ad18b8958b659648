"""Text files: each number is rounded once by every function that reads them."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.bits import ALL, dtype, name

each = pytest.mark.parametrize("f", ALL, ids=name)
READERS: dict[str, Callable[..., Any]] = {
    "loadtxt": lambda text, dtype: np.loadtxt(io.StringIO(text), dtype),
    "genfromtxt": lambda text, dtype: np.genfromtxt(io.StringIO(text), dtype),
    "records": lambda text, dtype: np.genfromtxt(io.StringIO(text), [("x", dtype)])[
        "x"
    ],
    "usecols": lambda text, dtype: np.genfromtxt(
        io.StringIO(text), dtype, usecols=(0,), encoding="utf-8"
    ),
    "fromstring": lambda text, dtype: np.fromstring(text, dtype, sep="\n"),
    "astype": lambda text, dtype: np.array(text.split("\n")).astype(dtype),
}


def near_ties(dtype: np.dtype[Any]) -> tuple[list[str], list[float]]:
    """Return strings of two neighbors and of numbers next to their midpoint, and the
    results. Float64 does not resolve the distance to the midpoint."""
    x = np.array([1, 2], dtype)
    below, above = (float(v) for v in (x[0], np.nextafter(x[0], x[1])))
    middle = (Fraction(below) + Fraction(above)) / 2
    with localcontext(prec=60):
        tie = Decimal(middle.numerator) / Decimal(middle.denominator)
        texts = [str(tie + beside * Decimal("1e-30")) for beside in (-1, 1)]
    return [*texts, str(below), str(above)], [below, above, below, above]


@each
@pytest.mark.parametrize("reader", READERS)
def test_numbers_are_rounded_once(f, reader):
    texts, numbers = near_ties(dtype(f))
    found = READERS[reader]("\n".join(texts), dtype(f))
    assert found.dtype == dtype(f)
    assert found.tolist() == numbers


def test_a_column_without_a_dtype_is_none_of_ours():
    for text, expected in (("1\n2.5", np.float64), ("1\n2", np.int64), ("x\ny", str)):
        found = np.genfromtxt(io.StringIO(text), dtype=None, encoding="utf-8")
        assert found.dtype.type is np.dtype(expected).type


def test_what_is_missing_is_nan_or_what_fills_it():
    text = "1,,3\n4,bad,6"
    found = np.genfromtxt(io.StringIO(text), td.bfloat16, delimiter=",")
    assert np.array_equal(found, [[1, np.nan, 3], [4, np.nan, 6]], equal_nan=True)
    filled = np.genfromtxt(
        io.StringIO("1,,3"), td.float4_e2m1fn, delimiter=",", filling_values=2
    )
    assert filled.tolist() == [1, 2, 3]
