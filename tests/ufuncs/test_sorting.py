"""Sorting, searching and counting, with NaN and both zeros, compared with float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import oracle

TYPES = [f.type for f in td.formats.values()]
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=lambda t: t.__name__)
LENGTHS = [0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 5000]


def codes(scalar_type: Any, count: int, seed: int = 0) -> np.ndarray:
    """Draw uniform codes: NaN of every payload, infinities, both zeros."""
    f = td.formats[scalar_type.__name__]
    drawn = np.random.default_rng(seed).integers(0, 1 << f.bits, count, dtype=np.uint32)
    shift = f.itemsize * 8 - f.bits if f.itemsize == 4 else 0
    return td.from_bits((drawn << shift).astype(f"u{f.itemsize}"), scalar_type)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


def equal_values(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.array_equal(wide(x), wide(y), equal_nan=True))


@each_type
@pytest.mark.parametrize("kind", ["quicksort", "stable", "heapsort"])
def test_sort(scalar_type: Any, kind: Any) -> None:
    for count in LENGTHS:
        x = codes(scalar_type, count, count)
        got = np.sort(x, kind=kind)
        assert got.dtype == x.dtype
        assert equal_values(got, np.sort(wide(x)))
        assert sorted(td.bits(got)) == sorted(td.bits(x))  # all codes are kept


@each_type
def test_stable_argsort(scalar_type: Any) -> None:
    """Sort in float32's order, with NaN and equal zeros in their original order."""
    for count in LENGTHS:
        x = codes(scalar_type, count, count)
        order = np.argsort(wide(x), kind="stable")
        assert np.array_equal(np.argsort(x, kind="stable"), order)
        assert np.array_equal(np.lexsort((x,)), order)
        assert np.array_equal(td.bits(np.sort(x, kind="stable")), td.bits(x[order]))


@each_type
def test_argsort(scalar_type: Any) -> None:
    for count in LENGTHS:
        x = codes(scalar_type, count, count)
        order = np.argsort(x)
        assert np.array_equal(np.sort(order), np.arange(count))
        assert equal_values(x[order], np.sort(wide(x)))


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.5.0", reason="new there")
@each_type
def test_descending(scalar_type: Any) -> None:
    """Sort in float32's descending order: equal items in their order, NaN last."""
    for count in [*LENGTHS, 70_000]:  # the last uses counting of 16 bits, too
        x = codes(scalar_type, count, count)
        order = np.argsort(wide(x), stable=True, descending=True)
        assert np.array_equal(np.argsort(x, stable=True, descending=True), order)
        got = np.sort(x, stable=True, descending=True)
        assert np.array_equal(td.bits(got), td.bits(x[order]))
        assert equal_values(np.sort(x, descending=True), wide(x[order]))
        assert equal_values(x[np.argsort(x, descending=True)], wide(x[order]))


@each_type
def test_axes_and_strides(scalar_type: Any) -> None:
    x = codes(scalar_type, 20 * 30, 7).reshape(20, 30)
    for view in (x, x.T, x[::-1, ::2], x[:, ::-3]):
        for axis in (0, 1, None):
            assert equal_values(np.sort(view, axis), np.sort(wide(view), axis))
            got = np.argsort(view, axis, kind="stable")
            assert np.array_equal(got, np.argsort(wide(view), axis, kind="stable"))
    y = x.copy()
    y[::2].sort(axis=0)
    assert equal_values(y[::2], np.sort(wide(x[::2]), axis=0))
    assert equal_values(y[1::2], x[1::2])


@each_type
def test_partition(scalar_type: Any) -> None:
    x = codes(scalar_type, 301, 5)
    in_order = np.sort(wide(x))
    for k in (0, 1, 150, 300):
        got = wide(np.partition(x, k))
        assert np.array_equal(np.sort(got), in_order, equal_nan=True)
        assert np.array_equal(got[k], in_order[k], equal_nan=True)
        assert np.array_equal(np.sort(got[:k]), in_order[:k], equal_nan=True)
        assert np.array_equal(
            wide(x)[np.argpartition(x, k)[k]], in_order[k], equal_nan=True
        )
    several = wide(np.partition(x, [10, 100, 200]))
    assert np.array_equal(several[[10, 100, 200]], in_order[[10, 100, 200]])


@pytest.mark.parametrize("form", td.formats.values(), ids=lambda form: form.name)
def test_partition_moves_items(form: Any) -> None:
    """Partition along every axis, with all bits of items; the method does the same."""
    raw = np.random.default_rng(7).integers(0, 256, (30, 40, form.itemsize), np.uint8)
    a = raw.view(form.dtype)[..., 0]
    items = a.view(f"u{form.itemsize}")
    for axis in (0, 1, -1):
        for kth in (0, 7, -3, [3, 20, -1]):
            got = np.partition(a, kth, axis)
            moved = np.sort(got.view(items.dtype), axis)
            assert np.array_equal(moved, np.sort(items, axis))
            want = np.take(np.sort(a, axis), kth, axis)
            assert equal_values(np.take(got, kth, axis), want)
            view = np.repeat(a, 2, axis=1)[:, ::2]
            view.partition(kth, axis)
            assert np.array_equal(td.bits(view), td.bits(got))
            places = a.argpartition(kth, axis)
            found = np.take_along_axis(a, places, axis)
            assert equal_values(np.take(found, kth, axis), want)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: a.partition(9999),
        lambda a: a.partition([]),
        lambda a: a.partition(1, order=np.array(["x", "y"])),
        lambda a: a.partition(1, kind=np.array([1, 2])),
        lambda a: a.partition(1.5),
        lambda a: a.partition(1, axis=7),
        lambda a: a.partition(1, kind="x"),
        lambda a: a.argpartition(9999),
        lambda a: a.searchsorted(a, "middle"),
        lambda a: a.searchsorted(a, sorter=[1, 2]),
    ],
)
def test_what_is_wrong_with_a_partition_or_a_search(call: Any) -> None:
    """Raise NumPy's errors, and write nothing."""
    said = []
    for dtype in (np.float16, td.bfloat16, td.float8_e4m3fn):
        a = np.array([3, 1, 2], dtype)
        with pytest.raises((TypeError, ValueError)) as error:
            call(a)
        said.append(str(error.value))
        assert np.array_equal(a, np.array([3, 1, 2], dtype))
    assert len(set(said)) == 1


@each_type
def test_searchsorted(scalar_type: Any) -> None:
    x, y = np.sort(codes(scalar_type, 200, 1)), codes(scalar_type, 100, 2)
    for side in ("left", "right"):
        got = np.searchsorted(x, y, side)
        assert np.array_equal(got, np.searchsorted(wide(x), wide(y), side))
    numbers = x[~np.isnan(x)]
    assert np.array_equal(np.digitize(y, numbers), np.digitize(wide(y), wide(numbers)))


@each_type
def test_unique(scalar_type: Any) -> None:
    """Count NaN of every payload as one value."""
    x = codes(scalar_type, 500, 3)
    every = {"return_index": True, "return_inverse": True, "return_counts": True}
    got, expected = (np.unique(part, **every) for part in (x, wide(x)))
    assert got[0].dtype == x.dtype
    assert equal_values(got[0], expected[0])
    assert all(map(np.array_equal, got[1:], expected[1:]))
    assert np.array_equal(np.isin(x, x[:40]), np.isin(wide(x), wide(x[:40])))


@each_type
def test_argmax_and_argmin(scalar_type: Any) -> None:
    """Return the first NaN, else the first of the largest; -0 equals +0."""
    for count in LENGTHS[1:]:
        x = codes(scalar_type, count, count)
        for part in (x, x[~np.isnan(x)], x[::-2]):
            if part.size:
                assert np.argmax(part) == np.argmax(wide(part))
                assert np.argmin(part) == np.argmin(wide(part))
    table = codes(scalar_type, 60, 11).reshape(6, 10)
    for axis in (0, 1):
        assert np.array_equal(np.argmax(table, axis), np.argmax(wide(table), axis))
        assert np.array_equal(np.argmin(table.T, axis), np.argmin(wide(table.T), axis))
    if td.formats[scalar_type.__name__].has_negative_zero:
        zeros = np.array([-0.0, 0.0, -0.0], scalar_type)
        assert np.argmax(zeros) == 0
        assert np.argmin(zeros[::-1]) == 0


@each_type
def test_extremes_of_one_sign(scalar_type: Any) -> None:
    """Reduce with the bits of running extremes, which are found one by one."""
    for count in (2, 17, 1500):
        x = codes(scalar_type, count, count)
        with np.errstate(invalid="ignore"):
            signs = [x, np.abs(x), -np.abs(x)]
        for part in (*signs, *(y[~np.isnan(y)] for y in signs)):
            for extreme in (np.maximum, np.minimum, np.fmax, np.fmin):
                if part.size > 1:
                    want = extreme.accumulate(part)[-1]
                    assert extreme.reduce(part).tobytes() == want.tobytes()


def test_argmax_of_nothing() -> None:
    with pytest.raises(ValueError, match="empty sequence"):
        np.argmax(np.empty(0, td.bfloat16))


@each_type
def test_nan_functions(scalar_type: Any) -> None:
    if not td.formats[scalar_type.__name__].has_nan:
        pytest.skip("the format has no NaN")
    x = codes(scalar_type, 300, 9)
    x[::7] = np.nan
    if td.formats[scalar_type.__name__].has_infinity:  # NumPy replaces NaN by infinity
        assert np.nanargmax(x) == np.nanargmax(wide(x))
        assert np.nanargmin(x) == np.nanargmin(wide(x))
    for function in (np.nanmax, np.nanmin):
        got = function(x)
        assert got.dtype == x.dtype
        assert wide(got) == function(wide(x))
    assert np.isnan(np.max(x))
    assert np.isnan(np.min(x))
    assert np.all(np.isnan(np.sort(x)[-np.isnan(x).sum() :]))


@each_type
def test_median_and_percentile(scalar_type: Any) -> None:
    """Select an element for an odd count; the ends are the extremes."""
    values = np.random.default_rng(4).permutation(101) % 5 + 1.0
    x = values.astype(scalar_type)
    exact = oracle.round_to(scalar_type.__name__, values)
    middle = np.median(x)
    assert middle.dtype == x.dtype
    assert middle == np.median(exact)
    if td.formats[scalar_type.__name__].has_nan:
        assert np.isnan(np.median(np.append(x, scalar_type(np.nan))))
    for q in (0, 25, 50, 100):
        got = np.percentile(x, q, method="nearest")
        assert got.dtype == x.dtype
        assert got == np.percentile(exact, q, method="nearest")


@each_type
def test_medians_of_many(scalar_type: Any) -> None:
    """Medians of more than 1024 elements begin with a sort. NaN counts as in NumPy."""
    rng = np.random.default_rng(5)
    for shape in ((1999,), (40, 51), (7, 50, 6), (1500, 1), (1, 1500)):
        values = np.abs(rng.standard_normal(shape)).astype(scalar_type)
        with_nan = values.copy()
        if td.formats[scalar_type.__name__].has_nan:
            with_nan.flat[rng.integers(0, values.size, 3)] = np.nan
        for x in (values, with_nan):
            for axis in (None, 0, -1, (0,)):
                for keepdims in (False, True):
                    got = np.median(x, axis, keepdims=keepdims)
                    want = np.median(wide(x), axis, keepdims=keepdims)
                    assert np.shape(got) == np.shape(want)
                    assert equal_values(got, np.asarray(want).astype(scalar_type))


@pytest.mark.parametrize("scalar_type", [td.bfloat16, td.tf32, td.float8_e4m3fn])
def test_histogram(scalar_type: Any) -> None:
    values = np.random.default_rng(6).integers(0, 9, 1000) / 2
    counts, _ = np.histogram(values.astype(scalar_type), bins=[0, 1, 2, 3, 4])
    assert np.array_equal(counts, np.histogram(values, bins=[0, 1, 2, 3, 4])[0])
    counts, edges = np.histogram(values.astype(scalar_type), 4, range=(0, 4))
    assert np.array_equal(counts, np.histogram(values, 4, range=(0, 4))[0])
    assert np.array_equal(wide(edges), [0, 1, 2, 3, 4])


@each_type
def test_nonzero(scalar_type: Any) -> None:
    x = codes(scalar_type, 300, 12)
    assert np.count_nonzero(x) == np.count_nonzero(wide(x))
    assert np.array_equal(np.nonzero(x)[0], np.nonzero(wide(x))[0])
    assert np.array_equal(x.astype(bool), wide(x).astype(bool))
    assert np.any(x[:1]) == bool(wide(x)[0])


def test_unused_bits_are_no_part_of_the_order() -> None:
    """Truncate raw float32 bits viewed as tf32, in sorts as elsewhere."""
    rng = np.random.default_rng(8)
    raw = rng.integers(0, 1 << 32, 3000, dtype=np.uint32)
    dirty = raw.view(td.tf32)
    clean = td.from_bits(raw & np.uint32(0xFFFFE000), td.tf32)
    for kind in ("quicksort", "stable"):
        assert np.array_equal(
            td.bits(np.sort(dirty, kind=kind)), td.bits(np.sort(clean, kind=kind))
        )
    assert np.array_equal(
        np.argsort(dirty, kind="stable"), np.argsort(clean, kind="stable")
    )
    assert np.argmax(dirty) == np.argmax(clean)
    assert np.array_equal(
        np.searchsorted(np.sort(dirty), dirty), np.searchsorted(np.sort(clean), clean)
    )
    assert len(np.unique(dirty[:50])) == len(np.unique(clean[:50]))


@pytest.mark.parametrize("form", [f for f in td.formats.values() if f.itemsize > 1])
@pytest.mark.parametrize("count", [33, 100, 1000, 5000])
def test_as_whole_numbers(form: Any, count: int) -> None:
    """Sort in vectors, with -0 and +0, NaN, and unused bits."""
    rng = np.random.default_rng(count)
    items = rng.integers(0, 256, (4, count, form.itemsize), dtype=np.uint8)
    anything = items.view(form.dtype)[..., 0]
    anything[1:][np.isnan(anything[1:]) & np.signbit(anything[1:])] = 0
    anything[2:, ::3] = 0
    anything[2:, 1::3] = -0.0
    anything[3] = td.from_bits(td.bits(anything[3]), form.dtype)
    for x in anything:
        order = np.argsort(x, kind="stable")
        assert np.sort(x, kind="stable").tobytes() == x[order].tobytes()
        unordered = np.sort(x)
        assert np.array_equal(unordered, x[order], equal_nan=True)
        assert sorted(unordered.view(f"u{form.itemsize}")) == sorted(
            x.view(f"u{form.itemsize}")
        )


@pytest.mark.parametrize("name", ["partition", "argpartition", "searchsorted", "dot"])
def test_a_missing_argument_is_numpys_error(name):
    def told(dtype):
        with pytest.raises(TypeError) as error:
            getattr(np.ones(3, dtype), name)()
        return str(error.value)

    assert told(td.bfloat16) == told(np.float16)
