"""Loops that NumPy calls with few elements: for each run of a mask, or each segment."""

from __future__ import annotations

from functools import partial
from platform import machine
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tests.support.bits import raised

FORMATS = pytest.mark.parametrize(
    "form", td.formats.values(), ids=lambda form: form.name
)
BASIC = ("add", "subtract", "multiply", "divide")
LONG = 40  # not few elements


def codes(rng: np.random.Generator, form: td.Format, n: int) -> Any:
    """Draw items, half of them any codes, half small integers."""
    with np.errstate(invalid="ignore"):
        whole = rng.integers(-4, 5, n).astype(form.dtype)
    items = rng.integers(0, 256, n * form.itemsize, np.uint8).view(form.dtype)
    return np.where(rng.random(n) < 0.5, items, whole)


def pairs(rng: np.random.Generator, form: td.Format) -> tuple[Any, Any]:
    """Return all pairs of bytes, or as many random pairs."""
    if form.itemsize == 1:
        items = np.arange(256, dtype=np.uint8).view(form.dtype)
        return np.repeat(items, 256), np.tile(items, 256)
    return codes(rng, form, 1 << 16), codes(rng, form, 1 << 16)


def result(function: Any, *args: Any) -> tuple[bytes, int]:
    found, flags = raised(function, *args)
    return found.tobytes(), flags


@pytest.mark.sampled(2)
@FORMATS
@pytest.mark.parametrize("name", BASIC)
def test_runs_of_a_mask(name: str, form: td.Format) -> None:
    rng = np.random.default_rng(len(name))
    ufunc = getattr(np, name)
    with np.errstate(all="ignore"):
        x, y = pairs(rng, form)
    for _ in range(2):  # the second time, tables of bytes exist
        mask = rng.random(x.size) < 0.7
        want, flags = raised(ufunc, x[mask], y[mask])
        found, found_flags = raised(partial(ufunc, where=mask, out=x.copy()), x, y)
        assert found[mask].tobytes() == want.tobytes()
        assert found[~mask].tobytes() == x[~mask].tobytes()
        assert found_flags == flags


@FORMATS
@pytest.mark.parametrize("name", BASIC)
def test_few_are_as_many(name: str, form: td.Format) -> None:
    """Compute few elements as many copies of them: equal results and warnings."""
    rng = np.random.default_rng(len(name))
    ufunc = getattr(np, name)
    with np.errstate(all="ignore"):
        x, y = codes(rng, form, 2000), codes(rng, form, 2000)
    for i, n in enumerate(np.arange(200) % 8 + 1):
        a, b = x[i : i + n], y[2 * i : 2 * i + n]
        want, flags = raised(ufunc, np.tile(a, LONG), np.tile(b, LONG))
        assert result(ufunc, a, b) == (want[:n].tobytes(), flags)
        spaced = np.repeat(a, 2)[::2], b[::-1].copy()[::-1]
        assert result(ufunc, *spaced) == (want[:n].tobytes(), flags)


SEGMENTED = ("add", "multiply", "maximum", "minimum", "fmax", "fmin", "subtract")


def starts(rng: np.random.Generator, size: int) -> list[Any]:
    """Return begins of segments: in order, short, long, empty and decreasing."""
    return [
        np.arange(0, size, 4),
        np.sort(rng.integers(0, size, size // 3)),
        rng.integers(0, size, 50),
        np.array([size - 1]),
        np.array([0, size // 2]),
        np.array([], np.intp),
    ]


@pytest.mark.sampled(3)
@FORMATS
@pytest.mark.parametrize("name", SEGMENTED)
def test_segments_in_one_call(name: str, form: td.Format) -> None:
    """Compute segments in one call as in a call per segment, which `out` causes."""
    rng = np.random.default_rng(len(name))
    reduceat = getattr(np, name).reduceat
    with np.errstate(all="ignore"):
        small = rng.integers(-3, 4, 3000).astype(form.dtype)
    for x in (codes(rng, form, 3000), small, small[:7], codes(rng, form, 50)[::-2]):
        for indices in starts(rng, x.size):
            for array in (x, np.stack([x, x[::-1]])):
                out = np.empty((*array.shape[:-1], indices.size), form.dtype)
                _, flags = raised(reduceat, array, indices, -1, None, out)
                found = result(reduceat, array, indices, -1)
                assert found == (out.tobytes(), flags)


def test_segments_that_are_not_there() -> None:
    x = np.ones(8, td.bfloat16)
    for index in (8, -1):
        with pytest.raises(IndexError, match="out-of-bounds"):
            np.add.reduceat(x, np.array([0, index]))
    found = np.add.reduceat(x.reshape(2, 4), np.array([0, 1]), axis=0)
    assert found.tolist() == [[1] * 4] * 2
    assert np.add.reduceat(x, np.array([0, 4]), dtype=np.float32).dtype == np.float32
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="reduceat"):
        np.add.reduceat(x * td.bfloat16(3e38), np.array([0]))


CHAINED = """hypot logaddexp subtract divide power arctan2 remainder fmod
    logaddexp2""".split()


@pytest.mark.parametrize("name", CHAINED)
@pytest.mark.parametrize(
    "form", [td.formats["bfloat16"], td.formats["tf32"]], ids=lambda form: form.name
)
def test_each_needs_the_one_before(name: str, form: td.Format) -> None:
    """Compute running results as an operation on many elements, step by step."""
    rng = np.random.default_rng(len(name))
    ufunc = getattr(np, name)
    numbers = rng.standard_normal(200).astype(form.dtype)
    infinite = np.where(rng.random(60) < 0.1, np.inf, numbers[:60]).astype(form.dtype)
    tiny = (rng.integers(-40, 40, 60) * form.smallest_subnormal).astype(form.dtype)
    small = (numbers[:60].astype(float) * form.smallest_normal).astype(form.dtype)
    large = (numbers[:60].astype(float) * form.max / 4).astype(form.dtype)
    for x in (
        numbers,
        codes(rng, form, 60),
        np.abs(numbers),
        infinite,
        tiny,
        small,
        large,
    ):
        want, flags = x.copy(), 0
        for i in range(1, x.size):
            step = np.full(LONG, want[i - 1]), np.full(LONG, x[i])
            found, seen = raised(ufunc, *step)
            want[i] = found[0]
            flags |= seen
        assert result(ufunc.accumulate, x) == (want.tobytes(), flags)
        assert result(ufunc.reduce, x) == (want[-1].tobytes(), flags)


@FORMATS
def test_squares_are_powers(form: td.Format) -> None:
    """Multiply for squares by one exponent, with the bits and flags of powers."""
    x = codes(np.random.default_rng(4), form, 2000)
    with np.errstate(all="ignore"):
        two, twos = np.array(2, form.dtype), np.full(x.size, 2, form.dtype)
    for array in (x, x[::-1], x[:50]):
        assert result(np.power, array, two) == result(
            np.power, array, twos[: array.size]
        )


@FORMATS
@pytest.mark.parametrize("name", ["add", "multiply"])
def test_accumulations_of_two(name: str, form: td.Format) -> None:
    rng = np.random.default_rng(len(name))
    ufunc, pairs = getattr(np, name), codes(rng, form, 400).reshape(200, 2)
    found, flags = raised(ufunc.accumulate, pairs, 1)
    assert found[:, 0].tobytes() == pairs[:, 0].tobytes()
    assert (found[:, 1].tobytes(), flags) == result(ufunc, *pairs.T)


# fegetround reads the mode of the x87 unit, so that a quotient shows the mode of SSE.
ROUNDING = """
import ctypes, numpy as np, tf32dtype as td
mathematics, one = ctypes.CDLL(None), 1.0
lost = []
for name in ("float8_e4m3fn", "float4_e2m1fn", "bfloat16"):
    x = np.ones(4, name)
    for call in (lambda: np.add(x, x), lambda: np.add.at(x, [0, 1], x[:2])):
        mathematics.fesetround(0x800)
        try:
            call()
            upward = one / 3
        finally:
            mathematics.fesetround(0)
        if upward == one / 3:
            lost.append(name)
print(lost)
"""


@pytest.mark.skipif(machine() != "x86_64", reason="with the constants of x86's fenv.h")
def test_the_callers_rounding_mode_remains():
    assert forks.run("-c", ROUNDING) == "[]"
