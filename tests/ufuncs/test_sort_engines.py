"""Sorts of bytes, of arrays with NaN of both signs, and by several keys, compared with
NumPy's sorts of the same numbers in float32."""

import itertools

import numpy as np
import pytest

import tf32dtype as td
from tests.support.bits import ALL, dtype, name

# Keywords of NumPy 2.5 and later.
DIRECTIONS = (
    [{}, {"descending": True}]
    if np.lib.NumpyVersion(np.__version__) >= "2.5.0"
    else [{}]
)
BYTES = [f for f in ALL if dtype(f).itemsize == 1]


@pytest.mark.parametrize("f", BYTES, ids=name)
@pytest.mark.parametrize("count", [33, 100, 256, 5000])
def test_sorts_of_bytes(f, count):
    """Move unused bits with their items; keep the order of equal items if stable."""
    rng = np.random.default_rng(count)
    x = rng.integers(0, 256, count, np.uint8).view(dtype(f))
    numbers = x.astype(np.float32)
    for direction, stable in itertools.product(DIRECTIONS, (True, False)):
        order = np.argsort(-numbers if direction else numbers, kind="stable")
        found = np.sort(x, stable=stable or None, **direction)
        if stable:
            assert np.array_equal(np.argsort(x, stable=True, **direction), order)
            assert found.tobytes() == x[order].tobytes()
        assert sorted(found.tobytes()) == sorted(x.tobytes())
        np.testing.assert_array_equal(found.astype(np.float32), numbers[order])


@pytest.mark.parametrize("scalar_type", [td.tf32, td.bfloat16])
@pytest.mark.parametrize("kind", ["quicksort", "stable"])
def test_negative_nans_are_last(scalar_type, kind):
    """Put NaN last, also in an in-place sort of integers; keep its order if stable."""
    rng = np.random.default_rng(3)
    size = np.dtype(scalar_type).itemsize
    x = rng.integers(0, 256, 3000 * size, np.uint8).view(scalar_type)
    x[::7] = np.nan
    x[::11] = -x[::11]
    found = np.sort(x, kind=kind)
    order = np.argsort(x.astype(np.float32), kind="stable")
    np.testing.assert_array_equal(found, x[order])
    if kind == "stable":
        assert found.tobytes() == x[order].tobytes()


@pytest.mark.parametrize("f", ALL, ids=name)
@pytest.mark.parametrize("count", [5, 100, 6000])
def test_lexsort(f, count):
    rng = np.random.default_rng(count)
    size = dtype(f).itemsize
    keys = rng.integers(0, 256, (2, count * size), np.uint8).view(dtype(f))
    keys[0, ::3] = keys[0, 0]
    found = np.lexsort((keys[0][::-1], keys[1], keys[0]))
    wide = keys.astype(np.float32)
    want = np.lexsort((wide[0][::-1], wide[1], wide[0]))
    assert np.array_equal(found, want)
