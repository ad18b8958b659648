"""Comparisons and bounds on GPU arrays: the CPU's bits for all numbers."""

# ruff: noqa: F811 - the fixture

from typing import Any

import numpy as np
import pytest

from tests.cuda.test_ufuncs import F8, SOME, assert_same, on_cpu, put, sample
from tests.support.bits import dtype, name
from tests.support.cuda import backend, cupy  # noqa: F401
from tests.ufuncs.test_exact_compare import (
    COMPARISONS,
    EXTREMES,
    INTEGERS,
    bounds,
    numbers,
)
from tf32dtype.cuda._functions import ufuncs
from tf32dtype.cuda._functions.ufuncs import call

some = pytest.mark.parametrize("f", SOME, ids=name)


def both(ufunc: Any, *operands: Any) -> None:
    """Check that the device's result is NumPy's, for two operands in either order."""
    given = [put(x) if isinstance(x, np.ndarray) else x for x in operands]
    what = f"{ufunc.__name__} {operands[1:]}"
    assert_same(call(ufunc, given), on_cpu(ufunc, *operands), what)
    if ufunc.nin == 2:
        found = call(ufunc, given[::-1])
        assert_same(found, on_cpu(ufunc, *operands[::-1]), what)


@some
def test_comparisons(backend, f):
    x = sample(f, 300)
    for v in numbers(f):
        for ufunc in COMPARISONS:
            both(ufunc, x, v)


@some
def test_comparisons_with_integers(backend, f):
    x = sample(f, 40)[:, None]
    negative = [-y - 1 for y in INTEGERS]
    for y in (
        np.array([*INTEGERS, *negative]),
        np.array([*INTEGERS, 2**64 - 1], np.uint64),
        np.array([True, False]),
        np.int64(2**60 + 1),
        np.uint64(2**64 - 1),
        np.True_,
    ):
        for ufunc in COMPARISONS:
            both(ufunc, x, y)
    both(np.less, dtype(f).type(1), np.array(INTEGERS))


@some
def test_extremes(backend, f):
    x = sample(f, 300)
    for v in bounds(f):
        for ufunc in EXTREMES:
            both(ufunc, x, v)


@some
def test_nextafter(backend, f):
    x = sample(f, 300)
    for v in bounds(f):
        both(np.nextafter, x, v)


@some
def test_clip(backend, f):
    x, high = sample(f, 100), sample(f, 100, 1)
    clip = ufuncs._clip
    for v in bounds(f)[::2]:
        for w in bounds(f)[::4]:
            both(clip, x, v, w)
            both(clip, v, w, x)
        both(clip, x, high, v)
        both(clip, x, v, high)
        both(clip, v, x, high)
        both(clip, x, v, high[0])


def test_forms_of_a_call(backend):
    x = sample(F8, (20, 30))
    a = put(x)
    for given, host in ((a[::2, ::-1], x[::2, ::-1]), (a[0, 0], x[0, 0]), (a.T, x.T)):
        assert_same(call(np.less, (given, 1e6)), on_cpu(np.less, host, 1e6))
        assert_same(call(np.minimum, (given, 1e6)), on_cpu(np.minimum, host, 1e6))
        assert_same(call(np.fmax, (1e6, given)), on_cpu(np.fmax, 1e6, host))
    out = put(np.zeros((20, 30), bool))
    assert call(np.less, (a, 10**400), out=out) is out
    assert_same(out, on_cpu(np.less, x, 10**400))
    assert call(np.less, (x[0, 0], 10**400), out=out) is out
    mask = np.arange(30) % 3 == 0
    call(np.greater, (a, 10**400), out=out, where=put(mask))
    want = np.less(np.full((20, 30), x[0, 0]), 10**400)
    on_cpu(np.greater, x, 10**400, out=want, where=mask)
    assert_same(out, want)
    assert call(np.fmin, (a, -1e6), out=a) is a
    assert_same(a, on_cpu(np.fmin, x, -1e6))
    assert not call(np.less, (put(x[:0]), 1e6)).size
    assert isinstance(a < 1e6, cupy.ndarray)
