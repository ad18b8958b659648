"""Loops that NumPy calls with few elements: for each run of a mask, or each segment."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers import raised

import tf32dtype as td

FORMATS = pytest.mark.parametrize(
    "form", td.formats.values(), ids=lambda form: form.name
)
BASIC = ("add", "subtract", "multiply", "divide")
LONG = 40  # more than few


def codes(rng: np.random.Generator, form: td.Format, n: int) -> Any:
    """Half of them at random, half small integers."""
    items = rng.integers(0, 256, n * form.itemsize, np.uint8).view(form.dtype)
    return np.where(
        rng.random(n) < 0.5, items, rng.integers(-4, 5, n).astype(form.dtype)
    )


def pairs(rng: np.random.Generator, form: td.Format) -> tuple[Any, Any]:
    """All of a byte, or as many at random."""
    if form.itemsize == 1:
        items = np.arange(256, dtype=np.uint8).view(form.dtype)
        return np.repeat(items, 256), np.tile(items, 256)
    return codes(rng, form, 1 << 16), codes(rng, form, 1 << 16)


def result(function: Any, *args: Any) -> tuple[bytes, int]:
    found, flags = raised(function, *args)
    return found.tobytes(), flags


@FORMATS
@pytest.mark.parametrize("name", BASIC)
def test_runs_of_a_mask(name: str, form: td.Format) -> None:
    rng = np.random.default_rng(len(name))
    ufunc = getattr(np, name)
    with np.errstate(all="ignore"):
        x, y = pairs(rng, form)
    for _ in range(2):  # tables of bytes are there the second time
        mask = rng.random(x.size) < 0.7
        want, flags = raised(ufunc, x[mask], y[mask])
        found, found_flags = raised(partial(ufunc, where=mask, out=x.copy()), x, y)
        assert found[mask].tobytes() == want.tobytes()
        assert found[~mask].tobytes() == x[~mask].tobytes()
        assert found_flags == flags


@FORMATS
@pytest.mark.parametrize("name", BASIC)
def test_few_are_as_many(name: str, form: td.Format) -> None:
    """Results and warnings of few are those of the same again and again."""
    rng = np.random.default_rng(len(name))
    ufunc = getattr(np, name)
    with np.errstate(all="ignore"):
        x, y = codes(rng, form, 2000), codes(rng, form, 2000)
    for i, n in enumerate(np.arange(700) % 8 + 1):
        a, b = x[i : i + n], y[2 * i : 2 * i + n]
        want, flags = raised(ufunc, np.tile(a, LONG), np.tile(b, LONG))
        assert result(ufunc, a, b) == (want[:n].tobytes(), flags)
        spaced = np.repeat(a, 2)[::2], b[::-1].copy()[::-1]
        assert result(ufunc, *spaced) == (want[:n].tobytes(), flags)
