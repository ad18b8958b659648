"""Calls with objects, times, strings and structures: an error or a result, no crash.

NumPy's code ends the process in some calls that its floats cannot reach: object loops
that call the ufunc again, casts whose failure frees a dtype twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import python

# Ufuncs of other items than numbers depend on the format only if it lacks a value.
# Functions use the casts of the dtype, and thus depend on every format.
FORMATS = {
    "ufuncs": "bfloat16 float8_e4m3fn float8_e8m0fnu float4_e2m1fn".split(),
    "functions": [np.dtype(f.type).name for f in td.formats.values()],
}
ERRORS = """ok TypeError ValueError UFuncTypeError DTypePromotionError AttributeError
ZeroDivisionError OverflowError IndexError InvalidOperation""".split()

Outcomes = dict[str, dict[str, str]]


def outcomes(kind: str, names: list[str]) -> Outcomes:
    """Return outcomes by dtype and call; name the call that ended the process."""
    done = python("-m", "tests.support.object_calls", kind, *names)
    lines = done.stdout.splitlines()
    announced = [line for line in lines if line.startswith(">")]
    assert done.returncode == 0, (
        f"{announced[-1:]} ended the process ({done.returncode}): {done.stderr[-999:]}"
    )
    assert lines[-1] == "end"
    found: Outcomes = {}
    for line in lines[:-1]:
        mark, text = line[0], line[2:]
        if mark == ">":
            name, label = text.split(" ", 1)
        elif mark == "!":
            pytest.fail(f"{name}, {label}: {text} references lost")
        else:
            found.setdefault(name, {})[label] = text
    return found


@pytest.mark.parametrize("kind", ["ufuncs", "functions"])
def test_no_call_ends_the_process(kind: str) -> None:
    found = outcomes(kind, FORMATS[kind])
    assert list(found) == FORMATS[kind]
    wrong = [
        (name, label, text)
        for name in found
        for label, text in found[name].items()
        if text not in ERRORS
    ]
    assert wrong == []


BITS = """invert bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_count
gcd lcm""".split()


@pytest.mark.parametrize("name", BITS)
def test_ufuncs_of_integers_refuse(name: str) -> None:
    """Reject objects before anything is written, also in a second call."""
    ufunc = getattr(np, name)
    for f in td.formats.values():
        x = np.ones(3, f.type)
        out = np.array([1, 2, 3], object)
        others = [x, x[0], 1, True, np.ones(3, bool)] if ufunc.nin == 2 else [None]
        for _ in range(2):
            for other in others:
                for keywords in ({}, {"out": out}, {"dtype": object}):
                    operands = [x] if other is None else [x, other]
                    if "dtype" in keywords and name in ("gcd", "lcm"):
                        continue  # computes with Python floats, as for float16
                    with pytest.raises((TypeError, AttributeError)):
                        ufunc(*operands, **keywords)
                    assert out.tolist() == [1, 2, 3]
        empty = x[:0]
        with pytest.raises(TypeError, match=f"'{name}' must be integers"):
            ufunc(*[empty] * ufunc.nin, out=np.empty(0, object))


OPERATORS: list[Callable[[Any], Any]] = [
    lambda x: ~x,
    lambda x: x & 1,
    lambda x: 1 | x,
    lambda x: x ^ x,
    lambda x: x << 1,
    lambda x: 1 >> x,
]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_of_integers_refuse(operator: Callable[[Any], Any]) -> None:
    for f in td.formats.values():
        for x in (f.type(1), np.ones(2, f.type), np.array([f.type(1)], object)):
            with pytest.raises(TypeError):
                operator(x)


@pytest.mark.parametrize("unit", ["s", "generic"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_numbers_and_times_have_no_dtype_in_common(kind: str, unit: str) -> None:
    """Find no common dtype; datetime64 once took our formats for timedelta64."""
    time = np.dtype(f"{kind}[{unit}]")
    for f in td.formats.values():
        x, y = np.ones(2, f.type), np.zeros(2, time)
        for pair in ((x, y), (y, x)):
            with pytest.raises(np.exceptions.DTypePromotionError):
                np.promote_types(pair[0].dtype, pair[1].dtype)
            with pytest.raises(np.exceptions.DTypePromotionError):
                np.concatenate(pair)
            assert np.array([pair[0][0], pair[1][0]]).dtype == object
        with np.errstate(invalid="ignore"):  # float8_e8m0fnu has no zero
            assert y.astype(f.type).dtype == x.dtype
        assert x.astype(time).dtype == time
