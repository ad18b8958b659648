"""Arithmetic of NumPy's scalars, which does not call ufuncs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.arithmetic.operands import inside, quiet, rounded, same_bits

VALUES = (1.2345, -3.3333, 0.0, -0.0, 257.0, 1e-3, 3e4, np.inf, np.nan, 7.0)
#: Formats with and without Inf, NaN, and -0.
FORMATS = (
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2fnuz",
    "float6_e3m2fn",
    "float4_e2m1fn",
)
OPERATIONS = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    divmod,
)


def kinds(type_: type[Any], x: float) -> list[Any]:
    """Return the number in several types, as the other operand of a scalar."""
    found = [type_(x), x]
    if abs(x) < 1e9 and x == int(x) and str(x) != "-0.0":
        found += [int(x)]
    return found


def of_many(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("type_", [np.float32, np.float64])
@pytest.mark.parametrize("function", OPERATIONS)
def test_two(function: Callable[..., Any], type_: type[Any], format: str) -> None:
    for x in VALUES:
        for y in VALUES:
            low = [type_(rounded(type_(z), format)) for z in (x, y)]
            with quiet():
                wanted = [type_(rounded(z, format)) for z in of_many(function(*low))]
            for other in kinds(type_, y):
                found = inside(format, lambda a=x, b=other: function(type_(a), b))
                assert all(map(same_bits, of_many(found), wanted)), (x, other)
                assert {type(z) for z in of_many(found)} == {type_}
            for other in kinds(type_, x):
                found = inside(format, lambda a=other, b=y: function(a, type_(b)))
                assert all(map(same_bits, of_many(found), wanted)), (other, y)


@pytest.mark.parametrize("type_", [np.float32, np.float64])
@pytest.mark.parametrize("function", [operator.neg, operator.pos, abs])
def test_one(function: Callable[..., Any], type_: type[Any]) -> None:
    for x in VALUES:
        found = inside("bfloat16", lambda x=x: function(type_(x)))
        with quiet():
            assert same_bits(found, type_(function(rounded(type_(x), "bfloat16"))))


def test_beside_others() -> None:
    x = np.float32(1.2345)
    low = rounded(x, "bfloat16")
    for other, exact in ((np.int8(1), x + 1), (True, low + 1)):
        found = inside("bfloat16", lambda other=other: x + other)
        assert same_bits(found, np.float32(rounded(exact, "bfloat16")))
    wide = inside("bfloat16", lambda: (x + np.float64(1.1), np.float64(1.1) + x))
    assert wide == (2.34375, 2.34375)
    assert all(isinstance(one, np.float64) for one in wide)
    narrow = inside("bfloat16", lambda: x + np.float64(1.1), float64=False)
    assert narrow == x + np.float64(1.1)
    assert same_bits(inside("bfloat16", lambda: x + 1j), x + 1j)
    huge = 10**400
    for function in OPERATIONS[:3]:
        plain, here = (
            _outcome(lambda f=function: f(x, huge), format) for format in (None, "bf16")
        )
        assert plain == here
    with pytest.raises(TypeError), td.arithmetic("bf16"):
        x + "text"
    with pytest.raises(TypeError), td.arithmetic("bf16"):
        pow(x, x, 3)


def _outcome(compute: Callable[[], Any], format: str | None) -> str:
    try:
        with quiet():
            return str(inside(format, compute) if format else compute())
    except Exception as error:
        return repr(error)


def test_slots_are_numpys_again() -> None:
    x, y = np.float32(1.2345), np.float64(1.2345)
    before = (x * x, y * y, -x, divmod(x, x))
    with td.arithmetic("bf16", float64=True):
        assert (x * x, y * y) != before[:2]
    assert (x * x, y * y, -x, divmod(x, x)) == before


def test_figures() -> None:
    x, y = np.float32(1.2345), np.float32(-1.23)
    with td.arithmetic("bf16", watch=True):
        z = x + y
        x / y
        divmod(x, y)
    rows = {row["function"]: row for row in td.arithmetic.call_sites()}
    assert set(rows) == {"add", "divide", "divmod"}
    assert (rows["divmod"]["results"], rows["divmod"]["operands"]) == (2, 2)
    assert rows["add"]["user"][0] == __file__
    row = rows["add"]
    assert (row["results"], row["operands"], row["rounded_operands"]) == (1, 2, 2)
    assert (row["sums"], row["inexact"], row["most_bits_lost"]) == (1, 0, 7)
    assert z == 2.0**-7
    low = [float(rounded(one, "bfloat16")) for one in (x, y)]
    truth = low[0] / low[1]
    error = abs(float(rounded(np.float32(truth), "bfloat16")) - truth) / 2.0**-8
    assert truth < -1 or rows["divide"]["largest_ulps"] == pytest.approx(error)


def test_errors_are_numpys() -> None:
    with td.arithmetic("float8_e5m2"):
        with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
            assert np.float32(6e4) + np.float32(6e4) == np.inf
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            np.float32(1) / np.float32(0)
        with np.errstate(all="raise"):
            np.float32(1) + np.float32(1)
            with pytest.raises(FloatingPointError, match="overflow"):
                np.float32(6e4) * 2
