"""Emulated precisions as arguments: shapes, dtypes, scopes, flags and errors."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import items, normal
from tf32dtype._integer_products.schemes import COUNTS, IntegerPrecision, Scheme


@pytest.fixture
def factors() -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    return normal(rng, (6, 40)).astype("f4"), normal(rng, (40, 5)).astype("f4")


def same(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert np.array_equal(items(found), items(wanted))


def test_the_names_are_those_of_the_type() -> None:
    names = [f"crt{count}{fast}" for fast in ("", "_fast") for count in COUNTS]
    names += [f"int8x{count}" for count in COUNTS]
    assert [*get_args(IntegerPrecision)] == names
    for name in names:
        scheme = Scheme.of(name.upper())
        assert scheme is not None
        assert scheme.name == name
    others = (
        "crt",
        "crt1",
        "crt21",
        "crt07",
        "crt7fast",
        "int8x1",
        "int8x7_fast",
        None,
    )
    assert not any(map(Scheme.of, others))


@pytest.mark.parametrize("precision", ["crt8", "crt8_fast", "int8x4"])
def test_stacks_vectors_strides_and_out(precision: Any, factors: Any) -> None:
    a, b = factors
    wanted = td.matmul(a, b, precision=precision)
    stack = np.stack([a, a[::-1]])
    found = td.matmul(stack, b, precision=precision)
    same(found[0], wanted)
    same(found[1], wanted[::-1])
    same(td.matmul(a[::-1], np.asfortranarray(b), precision=precision), wanted[::-1])
    row = td.matmul(a[:1], b, precision=precision)
    same(td.matmul(a[0], b, precision=precision), row[0])
    out = np.empty_like(wanted)
    assert td.matmul(a, b, precision=precision, out=out) is out
    same(out, wanted)
    square = a[:, :6].copy()
    product = td.matmul(square, square, precision=precision)
    td.matmul(square, square, precision=precision, out=square)
    same(square, product)


def test_dtypes(factors: Any) -> None:
    a, b = factors
    assert td.matmul(a, b.astype(float), precision="crt8").dtype == np.float64
    narrow = td.matmul(a, b, precision="crt8", dtype=np.float16)
    same(narrow, td.matmul(a, b, precision="crt8").astype(np.float16))
    short = td.matmul(a, b, precision="crt8", dtype=td.bfloat16)
    assert short.dtype == td.bfloat16
    for bad in (a.astype("f2"), a.astype("c8"), a.astype(td.bfloat16), a.astype(int)):
        with pytest.raises(TypeError, match="operands must be float32 or float64 with"):
            td.matmul(bad, b, precision="crt8")
    with pytest.raises(TypeError, match="dtype must be a floating-point dtype"):
        td.matmul(a, b, precision="crt8", dtype=int)


@pytest.mark.parametrize("precision", ["crt8", "int8x7"])
def test_scopes(precision: Any, factors: Any) -> None:
    a, b = factors
    with td.matmul_precision(precision):
        found, wide = a @ b, a.astype(float) @ b.astype(float)
        stacked = np.matmul(np.stack([a, a]), b)
        by_sums = np.einsum("ij,jk->ik", a, b, optimize=True)
        imaginary = (a + 0j) @ (b + 0j)
    wanted = td.matmul(a, b, precision=precision)
    same(found, wanted)
    same(by_sums, wanted)
    same(stacked[1], wanted)
    same(wide, td.matmul(a.astype(float), b.astype(float), precision=precision))
    same(imaginary, (a + 0j) @ (b + 0j))


def test_flags() -> None:
    huge = np.full((2, 3), 3e38, np.float32)
    with np.errstate(all="raise"):
        with pytest.raises(FloatingPointError, match="overflow"):
            td.matmul(huge, huge.T, precision="crt8")
        infinite = huge.copy()
        infinite[:, 0] = np.inf
        assert np.isinf(td.matmul(infinite, huge.T, precision="crt8")).all()
        huge[:, 0] = 0
        with pytest.raises(FloatingPointError, match="invalid"):
            td.matmul(infinite, huge.T, precision="int8x4")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "H100"}, "device must not be given with precision 'crt8'"),
        ({"scale": "row"}, "scale='row' must be given with precision fp8"),
        ({"special_values": "saturate"}, "special_values='saturate' must be given"),
        ({"rounding": "toward_zero"}, "rounding must be 'ties_to_even' with"),
    ],
)
def test_options_that_make_no_sense(options: Any, message: str, factors: Any) -> None:
    with pytest.raises(ValueError, match=message):
        td.matmul(*factors, precision="CRT8", **options)


def test_unknown_numbers_of_moduli(factors: Any) -> None:
    unknown: Any = "crt21"
    with pytest.raises(ValueError, match=r"precision must be one of .*got 'crt21'"):
        td.matmul(*factors, precision=unknown)
    with pytest.raises(ValueError, match="blas=True must not be given"):
        td.matmul_precision("crt8", blas=True).__enter__()


def test_rounded_arithmetic_is_refused(factors: Any) -> None:
    with (
        td.arithmetic("bfloat16", float64=True),
        pytest.raises(ValueError, match=r"scope of td\.arithmetic"),
    ):
        td.matmul(*factors, precision="crt8")
    with td.arithmetic("bfloat16"):
        found = td.matmul(*factors, precision="crt8")
    same(found, td.matmul(*factors, precision="crt8"))


def test_empty_products() -> None:
    a, b = np.zeros((0, 3), np.float32), np.zeros((3, 4), np.float32)
    assert td.matmul(a, b, precision="crt8").shape == (0, 4)
    assert td.matmul(b.T, a.T, precision="int8x4").shape == (4, 0)
    same(td.matmul(a.T, np.zeros((0, 2), np.float32), precision="crt8"),
         np.zeros((3, 2), np.float32))  # fmt: skip


def test_plans_are_refused(factors: Any) -> None:
    name: Any = "crt8"
    with pytest.raises(ValueError, match=r"products consist .* got 'crt8'"):
        td.explain_matmul(*factors, precision=name)
    with td.matmul_precision(name), pytest.raises(ValueError, match="got None"):
        td.explain_matmul(*factors)
