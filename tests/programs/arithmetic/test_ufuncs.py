"""Every ufunc rounds its operands and its results, compared in all bits."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.arithmetic.operands import (
    DTYPES,
    FORMATS,
    UFUNCS,
    all_same,
    expected,
    inside,
    operands,
    quiet,
    rounded,
    same_bits,
    umath,
)

BINARY = ("add", "subtract", "multiply", "divide", "maximum", "hypot", "arctan2")


def loops() -> list[tuple[str, str]]:
    return [(n, t) for n in UFUNCS for t in DTYPES if (n, t) != ("float_power", "f4")]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_contiguous(dtype: str, format: str, compared: Any) -> None:
    for name in (name for name, of in loops() if of == dtype):
        ufunc = getattr(umath, name)
        args = operands(ufunc, 1500, dtype)
        found = inside(format, partial(ufunc, *args))
        assert all_same(found, expected(ufunc, args, format)), name
        compared(1500)


def layouts(args: list[Any]) -> dict[str, list[Any]]:
    return {
        "strided": [np.repeat(x, 3)[::3] for x in args],
        "backward": [x[::-1] for x in args],
        "one": [x[:1] for x in args],
        "no dimension": [x[3] for x in args],
        "rows": [x[:1200].reshape(30, 40).T for x in args],
        "first stays": [args[0][5], *args[1:]],
        "last stays": [*args[:-1], args[-1][7]],
        "outer": [args[0][:50, None], *(x[:700] for x in args[1:])],
        "swapped bytes": [x.astype(x.dtype.newbyteorder()) for x in args],
        "empty": [x[:0] for x in args],
    }


@pytest.mark.parametrize("layout", layouts([np.zeros(1500)]))
def test_layouts(layout: str) -> None:
    for name in UFUNCS:
        check_layout(name, layout)


def check_layout(name: str, layout: str) -> None:
    ufunc = getattr(umath, name)
    dtype = "f8" if name == "float_power" else "f4"
    args = layouts(operands(ufunc, 1500, dtype))[layout]
    # The loop has rounded operands one after the other, as these are.
    plain = [np.array(x, x.dtype.newbyteorder("=")) for x in np.broadcast_arrays(*args)]
    if "stays" in layout or layout == "outer":
        plain = args  # NumPy has other loops for an operand with stride 0
    wanted = expected(ufunc, plain, "bfloat16")
    found = inside("bfloat16", lambda: ufunc(*args))
    many = found if isinstance(found, tuple) else (found,)
    assert all(
        same_bits(np.array(x), np.array(y)) for x, y in zip(many, wanted, strict=True)
    ), name


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_where_operands_are(name: str, dtype: str) -> None:
    ufunc = getattr(umath, name)
    a, b = operands(ufunc, 3000, dtype)
    (wanted,) = expected(ufunc, [a, b], "tf32")
    for at in (0, 1):
        args = [a.copy(), b.copy()]
        into = partial(ufunc, *args, out=args[at])
        assert same_bits(inside("tf32", into), wanted)
    line = a.copy()
    (shifted,) = expected(ufunc, [a[1:], b[1:]], "tf32")
    inside("tf32", lambda: ufunc(line[1:], b[1:], out=line[:-1]))
    assert same_bits(line[:-1], shifted)
    line = a.copy()
    (shifted,) = expected(ufunc, [a[:-1], b[1:]], "tf32")
    inside("tf32", lambda: ufunc(line[:-1], b[1:], out=line[1:]))
    assert same_bits(line[1:], shifted)
    strided = np.zeros((3000, 2), dtype)
    inside("tf32", lambda: ufunc(a, b, out=strided[:, 1]))
    assert same_bits(strided[:, 1], wanted)
    assert not strided[:, 0].any()


@pytest.mark.parametrize("name", BINARY)
def test_where(name: str) -> None:
    ufunc = getattr(umath, name)
    a, b = operands(ufunc, 3000, "f4")
    mask = np.random.default_rng(1).random(3000) < 0.5
    out = np.full(3000, 1.2345678, "f4")
    inside("bfloat16", lambda: ufunc(a, b, out=out, where=mask))
    (wanted,) = expected(ufunc, [a, b], "bfloat16")
    assert same_bits(out[mask], wanted[mask])
    assert (out[~mask] == np.float32(1.2345678)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "maximum", "fmin"])
def test_reduce(name: str, dtype: str) -> None:
    """Take one call of a loop as one operation."""
    for n in (1, 2, 7, 8, 127, 129, 512, 513, 1000, 5000, 70001):
        check_reduction(name, n, dtype)


def check_reduction(name: str, n: int, dtype: str) -> None:
    ufunc = getattr(umath, name)
    x = np.random.default_rng(n).normal(size=n).astype(dtype)
    with quiet():
        wanted = rounded(ufunc.reduce(rounded(x, "tf32")), "tf32")
    found = inside("tf32", lambda: ufunc.reduce(x))
    if n > 1:
        assert same_bits(found, wanted), n
    found = inside("tf32", lambda: ufunc.reduce(np.repeat(x, 2)[::2]))
    if n > 1:
        assert same_bits(found, wanted), n


@pytest.mark.parametrize("name", ["add", "multiply", "minimum"])
def test_rows_added_to_rows(name: str) -> None:
    """Round each row's result along the first axis."""
    ufunc = getattr(umath, name)
    m = np.random.default_rng(0).normal(size=(20, 700)).astype("f4")
    total = rounded(m[0], "bfloat16")
    for row in m[1:]:
        (total,) = expected(ufunc, [total, row], "bfloat16")
    assert same_bits(inside("bfloat16", lambda: ufunc.reduce(m, axis=0)), total)


def one_by_one(ufunc: np.ufunc, x: Any, format: str) -> Any:
    made = [rounded(x[0], format)]
    for one in x[1:]:
        made += expected(ufunc, [made[-1], one], format)
    return np.array(made, x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_accumulate(name: str, dtype: str) -> None:
    ufunc = getattr(umath, name)
    x = np.random.default_rng(2).normal(size=300).astype(dtype)
    wanted = one_by_one(ufunc, x, "bfloat16")
    assert same_bits(inside("bfloat16", lambda: ufunc.accumulate(x)), wanted)
    m = x[:120].reshape(12, 10)
    columns = np.stack([one_by_one(ufunc, c, "bfloat16") for c in m.T], 1)
    found = inside("bfloat16", lambda: ufunc.accumulate(m, axis=0))
    assert same_bits(np.ascontiguousarray(found), columns)
    again = x.copy()
    inside("bfloat16", lambda: ufunc.accumulate(again, out=again))
    assert same_bits(again, wanted)


def test_reduceat_and_outer() -> None:
    x, y = (np.random.default_rng(i).normal(size=900).astype("f4") for i in (3, 4))
    ends = [0, 5, 200, 899]
    found = inside("bfloat16", lambda: np.add.reduceat(x, ends))
    low = rounded(x, "bfloat16")
    parts = [low[:5], low[5:200], low[200:899]]
    wanted = [rounded(np.add.reduce(part), "bfloat16") for part in parts]
    assert same_bits(found[:3], np.array(wanted, "f4"))
    (table,) = expected(np.multiply, [x[:, None], y], "bfloat16")
    assert same_bits(inside("bfloat16", lambda: np.multiply.outer(x, y)), table)


def test_float64_numbers_stay_unless_told() -> None:
    x = np.array([1.1, 2.2])
    assert same_bits(inside("bfloat16", lambda: x * 3, float64=False), x * 3)
    assert not same_bits(inside("bfloat16", lambda: x * 3), x * 3)


def test_float64_in_float32() -> None:
    a, b = operands(np.add, 2000, "f8")
    with quiet():
        narrow = (a.astype("f4").astype("f8") * b.astype("f4")).astype("f4")
    found = inside("float32", lambda: a * b)
    same = (found == narrow) | (np.isnan(found) & np.isnan(narrow))
    assert same.all()


def test_others_pass() -> None:
    """Keep operands and results that are not float32 or float64."""
    x = np.array([1.1, 2.2, 3.3], "f4")
    for compute in (
        lambda: x > np.float32(1.1),
        lambda: np.isnan(x),
        lambda: np.nextafter(x, x + x),
        lambda: np.add(x, 1j),
        lambda: np.add(x.astype("e"), x.astype("e")),
        lambda: np.arange(5) + 1,
    ):
        assert same_bits(inside("float8_e5m2fnuz", compute), compute())


@pytest.mark.parametrize(
    ("compute", "warning"),
    [
        (lambda: np.add(np.float32([6e4]), np.float32([6e4])), "overflow"),
        (lambda: np.float32([1e30]) + np.float32([1]), "overflow"),
        (lambda: np.float32([1]) / np.float32([0]), "divide by zero"),
        (lambda: np.float32([np.inf]) - np.float32([np.inf]), "invalid"),
    ],
)
def test_errors_are_numpys(compute: Any, warning: str) -> None:
    with arithmetic(), pytest.warns(RuntimeWarning, match=warning):
        compute()


def test_no_error_is_made_up() -> None:
    x = np.linspace(0.5, 2, 1001, dtype="f4")
    for watch in (False, True):
        with arithmetic(watch=watch), np.errstate(all="raise"):
            np.exp(x) * x + x / x - np.sqrt(x)
            np.add.reduce(x)


def arithmetic(**options: Any) -> Any:
    return td.arithmetic("float8_e5m2", **options)
