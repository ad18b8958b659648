"""`tf32dtype.matmul` with a bound of the errors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import ROUNDINGS
from tf32dtype._matmul.precisions import PRECISIONS

Array = np.ndarray[Any, Any]


def exact(a: Array, b: Array) -> list[list[Fraction]]:
    rows = [[Fraction(float(x)) for x in row] for row in a]
    columns = [[Fraction(float(x)) for x in column] for column in b.T]
    return [
        [sum((p * q for p, q in zip(x, y, strict=True)), Fraction(0)) for y in columns]
        for x in rows
    ]


def check(a: Array, b: Array, **keywords: Any) -> float:
    """Return the largest error relative to its bound."""
    c, bound = td.matmul(a, b, bound=True, **keywords)
    assert (td.matmul(a, b, **keywords) == c).all()
    assert bound.dtype == np.float64
    assert bound.shape == c.shape
    shares = [
        abs(Fraction(float(c[i, j])) - value) / Fraction(float(bound[i, j]))
        for i, row in enumerate(exact(a, b))
        for j, value in enumerate(row)
    ]
    return float(max(shares))


@pytest.fixture
def operands() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return (
        rng.standard_normal((5, 40)).astype(np.float32),
        rng.standard_normal((40, 6)).astype(np.float32),
    )


@pytest.mark.parametrize("precision", [*(row.short for row in PRECISIONS), "exact"])
def test_precisions(precision: Any, operands: tuple[Array, Array]) -> None:
    for dtype in (None, np.float16, td.bfloat16):
        assert 0 < check(*operands, precision=precision, dtype=dtype) <= 1


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_exact(rounding: Any, operands: tuple[Array, Array]) -> None:
    for dtype in (np.float32, np.float64, td.tf32, td.fp8_e5m2):
        share = check(*operands, precision="exact", rounding=rounding, dtype=dtype)
        assert 0.5 < share <= 1


def test_without_a_precision(operands: tuple[Array, Array]) -> None:
    assert 0 < check(*operands) <= 1
    assert 0 < check(*(x.astype(np.float64) for x in operands)) <= 1
    for dtype in (td.bfloat16, td.fp8_e4m3):
        assert 0 < check(*(x.astype(dtype) for x in operands)) <= 1


def test_special_values() -> None:
    a = np.array([[np.inf, 1], [np.nan, 1], [3e38, 3e38], [1, 1]], np.float32)
    with np.errstate(all="ignore"):
        c, bound = td.matmul(a, np.ones(2, np.float32), precision="exact", bound=True)
    assert np.isinf(bound[[0, 2]]).all()
    assert np.isnan(bound[1])
    assert bound[3] == 2.0**-23
    assert c.shape == bound.shape == (4,)


def test_complex() -> None:
    a = np.full((1, 3), 0.1 + 0.3j, np.complex64)
    c, bound = td.matmul(a, a.T, precision="exact", bound=True)
    assert c.dtype == np.complex64
    off = c.item() - 3 * complex(a[0, 0]) ** 2
    assert 0 < abs(off) <= bound.item()


def test_out_may_be_an_operand() -> None:
    a = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)
    wanted = td.matmul(a, a, precision="bf16", bound=True)
    found = td.matmul(a, a, precision="bf16", bound=True, out=a)
    assert found[0] is a
    assert (found[0] == wanted[0]).all()
    assert (found[1] == wanted[1]).all()


def test_arguments_without_a_bound(operands: tuple[Array, Array]) -> None:
    with pytest.raises(ValueError, match="rounding must not be given with bound=True"):
        td.matmul(*operands, precision="tf32", rounding="toward_zero", bound=True)
    with pytest.raises(ValueError, match="device must not be given with bound=True"):
        td.matmul(*operands, precision="tf32", device="H100", bound=True)
    with (
        td.matmul_precision("bf16"),
        pytest.raises(ValueError, match="precision must be given with bound=True"),
    ):
        td.matmul(*operands, bound=True)
    with pytest.raises(TypeError, match="bound=True must be given with a precision"):
        td.matmul(operands[0] * 1j, operands[1], bound=True)
