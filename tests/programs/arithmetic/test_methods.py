"""Methods of ufuncs round values that NumPy copies: first operands, initial values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.arithmetic.operands import (
    DTYPES,
    UFUNCS,
    expected,
    inside,
    quiet,
    rounded,
    same_bits,
    umath,
)

FORMATS = [name for name, f in td.formats.items() if f.has_zero] + ["float16"]
#: Numbers that are in no format, that overflow, or that some formats lack.
VALUES = (1.1, -1.3, np.nan, -0.0, 3e38, -np.inf, 1e-30, 0.3)
SHAPES = [(0,), (1,), (2,), (1, 1), (1, 2), (2, 1), (0, 2), (2, 0), (2, 2)]


def joining() -> list[np.ufunc]:
    """Return the ufuncs with such methods: two operands, a result, one type."""
    found = [getattr(umath, name) for name in UFUNCS]
    return [
        ufunc for ufunc in found if (ufunc.nin, ufunc.nout) == (2, 1)
        and ufunc is not np.ldexp
    ]  # fmt: skip


def arrays(dtype: str) -> Iterator[Any]:
    with quiet():
        for i, shape in enumerate(SHAPES):
            yield np.resize(np.roll(np.array(VALUES, dtype), i), shape)


def calls(x: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each call of a method with an array, in which at most two elements meet."""
    for axis in range(-x.ndim, x.ndim):
        yield "accumulate", {"axis": axis}
        yield "reduce", {"axis": axis}
        yield "reduce", {"axis": axis, "keepdims": True}
        if n := x.shape[axis]:
            yield "reduceat", {"axis": axis, "indices": range(n)}
            yield "reduceat", {"axis": axis, "indices": [0, 0]}
    yield "reduce", {"axis": ()}
    if x.size <= 2:
        yield "reduce", {"axis": None}


def by_hand(ufunc: np.ufunc, method: str, x: Any, format: str, **options: Any) -> Any:
    """Return the method's result for rounded operands, rounded as one operation."""
    if "initial" in options:
        options["initial"] = rounded(np.array(options["initial"], x.dtype), format)[()]
    elif method == "reduce" and ufunc in (umath.logaddexp, umath.logaddexp2):
        # These begin with -Inf, which is an operand that not every format has.
        options["initial"] = rounded(x.dtype.type(-np.inf), format)[()]
    with quiet():
        made = getattr(ufunc, method)(rounded(x, format), **options)
        return rounded(made, format)[()]


def same(x: Any, y: Any) -> bool:
    """Compare all bits, except for NaN: of two NaN, processors return either."""
    x, y = (np.array(z) for z in (x, y))
    for z in (x, y):
        z[np.isnan(z)] = np.nan
    return same_bits(x, y)


def check(ufunc: np.ufunc, method: str, x: Any, format: str, **options: Any) -> None:
    try:
        wanted = by_hand(ufunc, method, x, format, **options)
    except ValueError:  # nothing to reduce, and no identity
        with pytest.raises(ValueError, match=r"no identity|reorderable"):
            inside(format, partial(getattr(ufunc, method), x, **options))
        return
    found = inside(format, partial(getattr(ufunc, method), x, **options))
    told = f"{ufunc.__name__}.{method}({x!r}, {options})"
    assert same(found, wanted), f"{told}: {found!r}, not {wanted!r}"
    assert type(found) is type(wanted), told


@pytest.mark.sampled(30)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", joining(), ids=lambda ufunc: ufunc.__name__)
def test_few_elements(ufunc: np.ufunc, dtype: str, format: str) -> None:
    if (ufunc, dtype) != (np.float_power, "f4"):
        for x in arrays(dtype):
            for method, options in calls(x):
                check(ufunc, method, x, format, **options)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("format", FORMATS)
def test_scalars_and_python_numbers(format: str) -> None:
    """Call with 0 dimensions, with lists, and with `outer` of two numbers."""
    for value, other in product(VALUES, VALUES):
        with quiet():
            kinds = np.float32(value), np.float64(value), value, np.array(value, "f4")
            others = np.float32(other), np.float64(other), other, np.array(other, "f4")
        for x in kinds:
            dtype = np.asarray(x).dtype
            low = rounded(np.asarray(x), format)[()]
            for ufunc in (np.add, np.maximum, np.multiply):
                check(ufunc, "reduce", np.asarray(x), format, axis=None)
                for method in ("accumulate", "reduce"):
                    check(ufunc, method, np.array([x]), format)
                found = inside(format, partial(ufunc.reduceat, [x], [0]))
                assert same(found, np.array([low], dtype))
            for y, ufunc in product(others, (np.add, np.divide, np.copysign)):
                # `outer` takes a Python number as a float64.
                wide = np.asarray(x), np.asarray(y)
                for call, args in ((ufunc, (x, y)), (ufunc.outer, wide)):
                    with quiet():
                        args = [np.asarray(z, np.result_type(*args)) for z in args]
                    (wanted,) = expected(ufunc, args, format)
                    found = inside(format, partial(call, x, y))
                    assert same(found, wanted), (call, x, y)


@pytest.mark.parametrize("format", ["bfloat16", "float6_e3m2fn", "float8_e5m2fnuz"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_initial_values_and_masks(dtype: str, format: str) -> None:
    masks = [True, False, np.array([True, False])]
    for ufunc, n, initial in product(joining(), (0, 1, 2), (1.1, 3e38, -0.0)):
        if (ufunc, dtype) != (np.float_power, "f4"):
            x = np.array(VALUES[:n], dtype)
            for mask in masks if n == 2 else masks[:2]:
                # NumPy joins from the initial value on, and rounds at the end.
                check(ufunc, "reduce", x, format, initial=initial, where=mask)


OUTS = ("f2", "f4", "f8", ">f4", ">f8", "c8", "i4")


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize("loop", [None, "f4", "f8"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_in_out(dtype: str, loop: str | None, out: str) -> None:
    """Round the loop's numbers once, then cast."""
    # 1 + 2^-8 + 2^-40 is above a tie of bfloat16; float32 would round it to the tie.
    for x in (np.array(v, dtype) for v in ([1 + 2**-8 + 2**-40], [1.1], [1.1, 2.3])):
        for ufunc, method in product((np.add, np.maximum), ("accumulate", "reduce")):
            computed = loop or np.result_type(x, np.zeros(0, out)).newbyteorder("=")
            if np.dtype(computed).kind == "c":
                continue
            wanted = by_hand(ufunc, method, x.astype(computed), "bfloat16")
            for strided in (False, True):
                target = np.zeros((*np.shape(wanted), 2), out)[..., 0]
                target = target if strided else target.copy()
                call = partial(getattr(ufunc, method), x, dtype=loop, out=target)
                assert inside("bfloat16", call) is target
                with quiet(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    assert same_bits(target, np.array(wanted).astype(out))


def test_wrong_calls_are_numpys() -> None:
    x = np.float32([1.1])
    wrong: list[Any] = [
        lambda: np.add.reduce(),
        lambda: np.add.reduce(x, 0, None, None, False, 0, True, 3, 4),
        lambda: np.add.reduce(x, out=np.zeros(4, "f8")),
        lambda: np.add.accumulate(x, nothing=3),
        lambda: np.add.accumulate(x, dtype="S3", out=x),
        lambda: np.add.accumulate(x, out=(x, x)),
        lambda: np.exp.reduce(x),
        lambda: np.add.reduceat(x, [3]),
    ]
    for call in wrong:
        with pytest.raises(Exception) as plain:  # noqa: PT011
            call()
        with pytest.raises(plain.type) as found:
            inside("bfloat16", call)
        assert str(found.value) == str(plain.value)


class Own:
    """An operand with its own implementation, which NumPy must call."""

    answer = np.float32([1.1])

    def __array_ufunc__(self, *args: Any, **options: Any) -> Any:
        return self.answer


def test_others_answers_stay() -> None:
    for method, more in (("reduce", ()), ("accumulate", ()), ("reduceat", ([0],))):
        call = partial(getattr(np.add, method), Own(), *more)
        assert inside("bfloat16", call) is Own.answer
    assert same_bits(Own.answer, np.float32([1.1]))


def test_others_pass() -> None:
    """Keep results of loops that do not round: integers, complex, float16, ours."""
    for x in (
        np.array([3]),
        np.array([1.1 + 2j]),
        np.float16([1.1]),
        np.array([1.1], td.tf32),
    ):
        for method in (np.add.reduce, np.add.accumulate, np.cumsum):
            call = partial(method, x)
            assert same_bits(inside("float8_e5m2", call), call())
    one = np.array([1.1])
    alone = partial(inside, "bfloat16", float64=False)
    assert same_bits(alone(lambda: np.cumsum(one)), one)
    out = np.zeros(1, "f4")
    alone(lambda: np.add.accumulate(one, out=out))
    assert same_bits(out, np.float32([1.1]))
    assert same_bits(
        inside("bfloat16", lambda: np.nextafter.reduce(one)), one[0]
    )  # a number of float32's own grid


def test_subclasses() -> None:
    masked = np.ma.array(np.float32([1.1, 2.2]), mask=[False, True])
    found = inside("bfloat16", lambda: np.ma.cumsum(masked[:1]))
    assert isinstance(found, np.ma.MaskedArray)
    assert found.data[0] == rounded(np.float32(1.1), "bfloat16")


def test_a_copy_that_overflows_is_reported() -> None:
    x = np.float32([1e30])
    with td.arithmetic("float8_e5m2"):
        with pytest.warns(RuntimeWarning, match="overflow encountered in accumulate"):
            assert np.cumsum(x) == np.inf
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            np.maximum.reduce(x)


def test_methods_are_numpys_again() -> None:
    x = np.float32([1.1])
    assert np.add.accumulate(x) == x
    with td.arithmetic("bf16"):
        assert np.add.accumulate(x) != x
    assert np.add.accumulate(x) == x
