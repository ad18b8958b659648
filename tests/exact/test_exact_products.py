"""Correctly rounded products against Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.exact.cases import (
    DRAWN,
    FORMS,
    ROUNDINGS,
    Drawn,
    check,
    dtype_of,
    items,
    normal,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

each_rounding = pytest.mark.parametrize("rounding", ROUNDINGS)
each_drawn = pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
SHAPES = ((1, 1, 1), (3, 4, 5), (2, 40, 3), (7, 300, 9), (5, 0, 2))


@each_rounding
@each_drawn
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpy_dtypes(drawn: Drawn, dtype: str, rounding: str) -> None:
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        for m, k, n in SHAPES:
            a, b = (drawn(rng, shape).astype(dtype) for shape in ((m, k), (k, n)))
            finite = np.isfinite(a).all() and np.isfinite(b).all()
            assert finite or drawn.__name__ in ("wide", "huge")
            check(a, b, rounding)
            check(a, b, rounding, "float64" if dtype == "float32" else "float32")


@pytest.mark.parametrize("name", FORMS)
def test_formats_as_operands_and_results(name: str) -> None:
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        for scale in (1, 0.01, 30):
            a = (abs(normal(rng, (6, 33))) * scale).astype(dtype_of(name))
            b = (normal(rng, (33, 5)) * scale).astype(np.float32).astype(dtype_of(name))
            for rounding in ROUNDINGS:
                check(a, b, rounding)
                check(a, b, rounding, "float32")
                check(a.astype("f4"), b.astype("f4"), rounding, name)


@each_rounding
def test_ties_at_every_bit(rounding: str) -> None:
    """Results are a number, half a unit, and nothing or a term far below."""
    for form, bits in (("float32", 24), ("float64", 53)):
        rows, columns = [], []
        for place in range(1, 70):
            for below in (0.0, 2.0**-300, -(2.0**-300)):
                for lowest in (0, 1):
                    last = lowest * 2.0 ** (1 - bits)
                    rows.append([1.0, last, 2.0**-place, below])
                    columns.append([1.0, 1.0, 1.0, 1.0])
        a = np.array(rows)
        check(a, np.ones((4, 1)), rounding, form)
        check(-a, np.ones((4, 1)), rounding, form)


@each_rounding
def test_borders_of_the_range(rounding: str) -> None:
    """Results around the largest number, the smallest, and half of it."""
    for form, bits, top, low in (
        ("float32", 24, 128, -149),
        ("float64", 53, 1024, -1074),
    ):
        half = 2.0 ** (top // 2)
        unit = 2.0**-bits
        terms = [
            [half, half, 0, 0],
            [half, half * (1 - unit), 0, 0],
            [half, half, -half, half * unit],
            [half, half, -half, half * unit / 2],
            [half, half, -half * (1 + unit), half * unit / 2],
            *[
                [
                    2.0 ** (low // 2),
                    factor * 2.0 ** (low - low // 2),
                    s * 2.0**-500,
                    2.0**-520,
                ]
                for factor in (0.25, 0.5, 0.75, 1, 1.5, 2.5)
                for s in (0, 1, -1)
            ],
        ]
        for a, b, c, d in terms:
            for sign in (1, -1):
                check(
                    np.array([[a, sign * c]]),
                    np.array([[sign * b], [d]]),
                    rounding,
                    form,
                )


def test_special_values(compared: Any) -> None:
    values = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1e38, -1e38]
    pairs = np.array([(x, y) for x in values for y in values], np.float32)
    for dtype in ("float32", "float64", "bfloat16"):
        check(pairs.astype(dtype_of(dtype)), pairs.T.astype(dtype_of(dtype)))
    compared(3 * len(pairs) ** 2)


def test_zeros_are_positive() -> None:
    a = np.array([[1.0, -1.0], [-0.0, 0.0], [-0.0, -0.0]])
    for x in (a, a.repeat(50, axis=1), a.repeat(50, axis=1).repeat(9, axis=0)):
        for rounding in ROUNDINGS:
            ones = np.ones((x.shape[1], 12))
            found = td.matmul(x, ones, precision="exact", rounding=rounding)
            assert not items(found).any()
            assert not items(td.exact_sum(x, axis=1, rounding=rounding)).any()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype: str) -> None:
    rng = np.random.default_rng(2)
    a, b = (
        (normal(rng, shape) + 1j * normal(rng, shape)).astype(dtype)
        for shape in ((4, 17), (17, 6))
    )
    for rounding in ROUNDINGS:
        found = td.matmul(a, b, precision="exact", rounding=rounding)
        assert found.dtype == dtype
        part = found.real.dtype.name
        parts = a.real, a.imag, b.real, b.imag
        p, q, r, s = (x.astype(np.float64) for x in parts)
        real = check(np.hstack([p, -q]), np.vstack([r, s]), rounding, part)
        imag = check(np.hstack([p, q]), np.vstack([s, r]), rounding, part)
        assert (found.real == real).all()
        assert (found.imag == imag).all()


def test_the_order_of_k_does_not_matter() -> None:
    rng = np.random.default_rng(11)
    a, b = rng.standard_normal((2, 30, 30)).astype(np.float32)
    a[:, 15:], b[15:] = a[:, :15], -b[:15] * np.float32(1 + 2**-12)
    first = td.matmul(a, b, precision="exact")
    for _ in range(5):
        order = rng.permutation(30)
        again = td.matmul(a[:, order], b[order], precision="exact")
        assert (items(again) == items(first)).all()


def test_layouts_and_stacks() -> None:
    rng = np.random.default_rng(13)
    a = rng.standard_normal((3, 1, 8, 12)).astype(np.float32)
    b = rng.standard_normal((2, 12, 5)).astype(np.float32)
    found = td.matmul(a, b, precision="exact")
    assert found.shape == (3, 2, 8, 5)
    for i in range(3):
        for j in range(2):
            wanted = check(a[i, 0], b[j])
            assert (found[i, j] == wanted).all()
            other = td.matmul(a[i, 0, ::-1, ::2], b[j, ::2, ::-1], precision="exact")
            assert (other == check(a[i, 0, ::-1, ::2], b[j, ::2, ::-1])).all()
            out = np.empty((8, 5), np.float32, order="F")
            assert td.matmul(a[i, 0], b[j], precision="exact", out=out) is out
            assert (out == wanted).all()
    vector = td.matmul(a[0, 0, 0], b, precision="exact")
    assert vector.shape == (2, 5)
    assert (vector[0] == found[0, 0, 0]).all()
    assert np.isscalar(td.matmul(a[0, 0, 0], b[0, :, 0], precision="exact"))
    assert td.matmul(a[:0], b[:1], precision="exact").shape == (0, 1, 8, 5)
    assert td.matmul(a, b[0], precision="exact").shape == (3, 1, 8, 5)
    assert (td.matmul(a, b[0], precision="exact")[:, 0] == found[:, 0]).all()


def test_out_may_overlap() -> None:
    rng = np.random.default_rng(17)
    a = rng.standard_normal((9, 9))
    wanted = td.matmul(a, a, precision="exact")
    found = td.matmul(a, a, precision="exact", out=a)
    assert found is a
    assert (a == wanted).all()


@pytest.mark.parametrize("out_dtype", ["float32", "bfloat16", "float64"])
def test_results_are_rounded_to_the_dtype_of_out(out_dtype: str) -> None:
    rng = np.random.default_rng(19)
    target = dtype_of(out_dtype)
    given = "float32" if out_dtype == "float64" else "float64"
    a, b = (rng.standard_normal(shape).astype(given) for shape in ((7, 40), (40, 6)))
    for rounding in ROUNDINGS:
        wanted = check(a, b, rounding, out_dtype)
        out = np.empty(wanted.shape, target)
        assert td.matmul(a, b, precision="exact", rounding=rounding, out=out) is out
        assert (items(out) == items(wanted)).all()
        td.einsum("ij,jk", a, b, precision="exact", rounding=rounding, out=out)
        assert (items(out) == items(wanted)).all()
        sums = np.empty(7, target)
        td.exact_sum(a, 1, rounding=rounding, out=sums)
        wanted = td.exact_sum(a, 1, rounding=rounding, dtype=target)
        assert (items(sums) == items(wanted)).all()
    with pytest.raises(TypeError, match="out must have a dtype that complex"):
        td.matmul(a + 0j, b + 0j, precision="exact", out=np.empty((7, 6)))
    with pytest.raises(TypeError, match="out must have a dtype that"):
        td.matmul(a, b, precision="exact", out=np.empty((7, 6), np.int64))


def test_directed_roundings_of_several_steps_are_refused() -> None:
    x = np.ones((2, 2), np.float32)
    directed: Any
    for directed in ("toward_zero", "toward_positive", "toward_negative"):
        td.einsum("ij,jk", x, x, precision="exact", rounding=directed)
        td.einsum("ij->", x, precision="exact", rounding=directed)
        for subscripts, count in (("ij,jk,kl", 3), ("ij,kj->k", 2), ("i,j->", 2)):
            operands = [x[0]] * 2 if subscripts[1] == "," else [x] * count
            with pytest.raises(ValueError, match="steps, each of which rounds"):
                td.einsum(subscripts, *operands, precision="exact", rounding=directed)


def test_advice_fits_the_operands() -> None:
    wide = np.ones((2, 2), np.clongdouble)
    with pytest.raises(TypeError, match=r"complex256. Use x\.real and x\.imag$"):
        td.matmul(wide, wide, precision="exact")
    with pytest.raises(TypeError, match=r"got <U1$"):
        td.matmul([["a"]], [["b"]], precision="exact")
    with pytest.raises(TypeError, match=r"int64. Cast it, x\.astype\(np\.float64\)$"):
        td.matmul([[1]], [[1]], precision="crt7")
    x = np.ones((2, 2))
    direction: Any = "toward_positive"
    with pytest.raises(ValueError, match="must be given with precision 'exact'"):
        td.matmul(x, x, rounding=direction)
    with pytest.raises(ValueError, match="must not be an emulated one with bound"):
        td.matmul(x, x, precision="crt7", bound=True)
    with pytest.raises(TypeError, match="bound must be True or False"):
        td.matmul(x, x, bound="yes")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="out must have the shape of the sums"):
        td.exact_sum(x, 0, out=np.zeros(3))
    axis: Any = 1.0
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        td.exact_sum(x, axis)


def test_floating_point_errors() -> None:
    big = np.array([[3e38, 3e38]], np.float32)
    with pytest.warns(RuntimeWarning, match="overflow encountered in matmul"):
        td.matmul(big, np.ones((2, 1), np.float32), precision="exact")
    infinite = np.array([[np.inf, -np.inf]], np.float32)
    with pytest.warns(RuntimeWarning, match="invalid value encountered in matmul"):
        td.matmul(infinite, np.ones((2, 1), np.float32), precision="exact")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"rounding": "up"}, "rounding must be one of 'ties_to_even'"),
        ({"rounding": "to_odd"}, "rounding must be one of 'ties_to_even'"),
        ({"scale": "row"}, "scale='row' must be given with precision fp8"),
        ({"device": "H100"}, "device must not be given with precision 'exact'"),
        (
            {"special_values": "saturate"},
            "special_values='saturate' must be given with",
        ),
    ],
)
def test_unknown_arguments(keywords: dict[str, Any], message: str) -> None:
    a = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match=message):
        td.matmul(a, a, precision="exact", **keywords)


def test_dtypes_that_float64_does_not_hold() -> None:
    a = np.ones((2, 2))
    for wrong in (np.int64, np.longdouble, object):
        with pytest.raises(TypeError, match="operands must be floating-point numbers"):
            td.matmul(a.astype(wrong), a, precision="exact")
    small = a.astype(np.int32)
    with pytest.raises(TypeError, match="operands must be floating-point numbers with"):
        td.matmul(small, small, precision="exact")
    assert td.matmul(small, a, precision="exact").dtype == np.float64
    with pytest.raises(TypeError, match="dtype must be float16, float32, float64"):
        td.matmul(a, a, precision="exact", dtype=np.int32)
    with pytest.raises(TypeError, match="dtype must be complex for complex operands"):
        td.matmul(a * 1j, a, precision="exact", dtype=np.float32)
    with pytest.raises(TypeError, match="out must have a dtype"):
        td.matmul(a, a, precision="exact", out=np.empty((2, 2), int))
