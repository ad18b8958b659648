"""td.einsum in a precision: the bits of td.matmul, and exact sums."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

Array = np.ndarray[Any, Any]

SHAPES = {"a": (3, 40), "b": (40, 5), "c": (3, 5), "t": (2, 3, 40), "u": (2, 40, 4)}


def draw(names: str, dtype: Any) -> list[Array]:
    rng = np.random.default_rng(0)
    numbers = [rng.standard_normal((2, *SHAPES[name])) for name in names]
    if np.dtype(dtype).kind == "c":
        return [(x[0] + 1j * x[1]).astype(dtype) for x in numbers]
    return [x[0].astype(dtype) for x in numbers]


@pytest.mark.parametrize("precision", ["bf16", "tf32x3", "fp8_e4m3", "f32", "crt6"])
@pytest.mark.parametrize(
    ("subscripts", "names"),
    [
        ("ij,jk->ik", "ab"),
        ("ij,jk->", "ab"),
        ("bij,bjk->bki", "tu"),
        ("ij,jk,ik->j", "abc"),
        ("ij->j", "a"),
    ],
)
def test_the_bits_of_a_scope(subscripts: str, names: str, precision: Any) -> None:
    arrays = draw(names, np.float32)
    with td.matmul_precision(precision):
        wanted = td.einsum(subscripts, *arrays)
    for scope in (None, "bf16"):
        with td.matmul_precision(scope):
            found = td.einsum(subscripts, *arrays, precision=precision)
        assert found.dtype == np.float32
        assert np.array_equal(found, wanted)


def test_options() -> None:
    a, b = draw("ab", np.float32)
    for options in (
        {"precision": "tf32", "rounding": "toward_zero"},
        {"precision": "fp8_e4m3", "scale": "row"},
        {"precision": "bf16", "device": "H100"},
    ):
        found = td.einsum("ij,jk", a, b, **options)
        assert np.array_equal(found, td.matmul(a, b, **options))


def test_all_steps_are_float32() -> None:
    """A dtype is that of the result, for precisions of float32 operands."""
    a, b, c = draw("abc", np.float32)
    sums = td.einsum("ij,jk,ik->i", a, b, c, precision="bf16")
    out = np.empty(3)
    for dtype in (np.float64, np.float16, td.bfloat16):
        found = td.einsum("ij,jk,ik->i", a, b, c, precision="bf16", dtype=dtype)
        assert found.dtype == dtype
        assert (found == sums.astype(dtype)).all()
    assert td.einsum("ij,jk,ik->i", a, b, c, precision="bf16", out=out) is out
    assert (out == sums).all()


# -- exact -----------------------------------------------------------------------------


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(
    ("subscripts", "names"),
    [
        ("ij,jk->ik", "ab"),
        ("ij,jk->ki", "ab"),
        ("ij,ij->i", "aa"),
        ("ij,ij", "aa"),
        ("ij,ij->ij", "aa"),
        ("ij,kl->lkij", "ac"),
        ("bij,bjk->bik", "tu"),
        ("bij,bjk->", "tu"),
        ("ij->i", "a"),
        ("ij->", "a"),
        ("bij->ib", "t"),
    ],
)
def test_exact_results(subscripts: str, names: str, optimize: bool) -> None:
    """Compare with fractions, which float() rounds once."""
    arrays = [x * 2.0 ** np.arange(x.shape[-1]) for x in draw(names, np.float64)]
    if subscripts == "bij,bjk->":  # a first step sums letters, and rounds
        arrays = [np.round(x * 4) for x in arrays]
    fractions = [np.vectorize(Fraction, otypes=[object])(x) for x in arrays]
    wanted = np.asarray(np.einsum(subscripts, *fractions), dtype=object)
    found = td.einsum(subscripts, *arrays, optimize=optimize, precision="exact")
    assert (np.asarray(found) == np.vectorize(float)(wanted)).all()


@pytest.mark.parametrize(
    "dtype", ["float32", "complex64", "complex128", td.bfloat16, td.float8_e4m3fn]
)
def test_exact_dtypes(dtype: Any) -> None:
    a, b = draw("ab", dtype)
    found = td.einsum("ij,jk", a, b, precision="exact")
    assert found.dtype == dtype
    assert (found == td.matmul(a, b, precision="exact")).all()
    found = td.einsum("ij->i", a, precision="exact")
    assert found.dtype == dtype
    assert (found == td.exact_sum(a, 1)).all()
    outer = td.einsum("i,j->ij", a[0], b[0], precision="exact")
    wanted = td.matmul(a[0][:, None], b[0][None], precision="exact")
    assert (outer == wanted).all()


def test_directions() -> None:
    a, b = draw("ab", np.float32)
    below, above = (
        td.einsum("ij,jk", a, b, precision="exact", rounding=rounding)
        for rounding in ("toward_negative", "toward_positive")
    )
    assert (above == np.nextafter(below, np.float32(np.inf))).all()
    narrow = td.einsum(
        "ij->", a, precision="exact", rounding="toward_zero", dtype="bf16"
    )
    assert narrow == td.exact_sum(a, dtype=td.bfloat16, rounding="toward_zero")


def test_overflow_names_the_function() -> None:
    big = np.full(2, 3e38, np.float32)
    with pytest.warns(RuntimeWarning, match="overflow encountered in einsum"):
        td.einsum("i,i", big, big, precision="exact")


# -- errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"precision": "fp16x2"}, ValueError, "precision must be one of"),
        ({"rounding": "toward_zero"}, ValueError, "rounding='toward_zero' must be"),
        ({"precision": "exact", "device": "H100"}, ValueError, "device must not be"),
        ({"precision": "bf16", "bound": True}, TypeError, "argument 'bound'"),
        ({"precision": "bf16"}, TypeError, "must be float32 .*; got bfloat16"),
        ({"precision": "crt6"}, TypeError, "must be float32 or float64 .*; got bfl"),
    ],
)
def test_errors(keywords: Any, error: type[Exception], message: str) -> None:
    a, b = draw("ab", td.bfloat16)
    with pytest.raises(error, match=message):
        td.einsum("ij,jk", a, b, **keywords)


def test_operands_of_other_dtypes() -> None:
    a, b = draw("ab", np.float32)
    with pytest.raises(TypeError, match=r"must be float32 .*; got float64"):
        td.einsum("ij->i", a.astype(np.float64), precision="bf16")
    with pytest.raises(TypeError, match="must be floating-point numbers"):
        td.einsum("ij,jk", a.astype(int), b.astype(int), precision="exact")
