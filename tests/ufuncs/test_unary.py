"""Every unary ufunc for every code of every format, rounded correctly."""

import numpy as np
import pytest

from tests.reference import operations, ufuncs
from tests.reference.codec_arrays import Items, all_items, encode, random_items, values
from tests.reference.formats import FORMATS, Format
from tests.support.bits import (
    ALL,
    WIDE,
    array,
    assert_equal,
    assert_items,
    items_of,
    name,
)

NAMES = [*operations.UNARY, *operations.SYNONYMS]


def some_items(f: Format) -> Items:
    """Return all codes up to 16 bits; of tf32 a sample and the ends, for speed."""
    items = all_items(f)
    if items.size <= 1 << 16:
        return items
    sample = random_items(f, np.random.default_rng(7), 20_000)
    half = items.size // 2
    edges = [0, half, f.infinity or 0, (f.infinity or 0) + half, 1 << 10]
    around = [items[max(0, i - 40) : i + 40] for i in edges]
    return np.concatenate([sample, *around, items[-40:]])


@pytest.mark.parametrize("f", ALL, ids=name)
def test_functions(f, compared):
    for function in NAMES:
        compared(check_function(f, function, some_items(f)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", NAMES)
def test_functions_of_every_tf32(function, compared):
    f = FORMATS["tf32"]
    compared(check_function(f, function, all_items(f)))


def check_function(f: Format, function: str, items: Items) -> int:
    want, _ = ufuncs.unary(function, f, items)
    with np.errstate(all="ignore"):
        found = items_of(f, getattr(np, function)(array(f, items)))
    assert_items(f, found, want, function, items)
    return items.size


def check_copies(f: Format, items: Items) -> int:
    """Check functions that copy bits and set the sign, so that NaN's payload stays."""
    for function in operations.COPIES:
        want = [operations.copies(function, f, int(item))[0] for item in items]
        with np.errstate(all="ignore"):
            found = items_of(f, getattr(np, function)(array(f, items)))
        assert_items(f, found, np.array(want, items.dtype), function, items)
    return items.size * len(operations.COPIES)


def check_spacing(f: Format, items: Items) -> int:
    want = [operations.spacing(f, int(item))[0] for item in items]
    with np.errstate(all="ignore"):
        found = items_of(f, np.spacing(array(f, items)))
    assert_items(f, found, np.array(want, items.dtype), "spacing", items)
    return items.size


@pytest.mark.parametrize("f", ALL, ids=name)
@pytest.mark.parametrize("check", [check_copies, check_spacing])
def test_on_bits(f, check, compared):
    compared(check(f, some_items(f)[:: 1 if f.count <= 256 else 7]))


@pytest.mark.exhaustive
@pytest.mark.parametrize("f", WIDE, ids=name)
@pytest.mark.parametrize("check", [check_copies, check_spacing])
def test_on_bits_of_every_code(check, f, compared):
    compared(check(f, all_items(f)))


def test_many_calls(compared):
    """Use tables for bfloat16 after many calls, with the same results."""
    f = FORMATS["bfloat16"]
    items = all_items(f)
    for function in ("exp", "sin", "log1p", "arccosh"):
        ufunc = getattr(np, function)
        with np.errstate(all="ignore"):
            want = items_of(f, ufunc(array(f, items)))
            for _ in range(80):
                found = items_of(f, ufunc(array(f, items)))
        assert_items(f, found, want, function, items)
        few = [items_of(f, ufunc(array(f, items)[i : i + 3])) for i in range(0, 999, 3)]
        assert_items(f, np.concatenate(few), want[:999], function, items[:999])
        compared(items.size + 999)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_predicates(f, compared):
    items = all_items(f)
    x = values(f, items)
    for function in operations.PREDICATE:
        want = getattr(np, function)(x)
        assert_equal(getattr(np, function)(array(f, items)), want, function)
        compared(items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_modf(f, compared):
    items = all_items(f)
    x = values(f, items)
    with np.errstate(all="ignore"):
        parts = np.modf(array(f, items))
        for found, number in zip(parts, np.modf(x), strict=True):
            want, _ = encode(f, number)
            assert_items(f, items_of(f, found), want, "modf", items)
    compared(2 * items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_frexp(f, compared):
    items = all_items(f)
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(array(f, items))
    parts, powers = np.frexp(values(f, items))
    want, _ = encode(f, parts)
    assert_items(f, items_of(f, mantissa), want, "frexp", items)
    powers[~np.isfinite(parts)] = 0  # C leaves this open
    assert_equal(exponent, powers, "frexp's exponent")
    compared(2 * items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_strided_and_in_place(f, compared):
    """Compute with strides and out=, which use other loops."""
    items = some_items(f)
    for function in ("exp", "sqrt", "rint", "square", "negative"):
        ufunc = getattr(np, function)
        with np.errstate(all="ignore"):
            want = items_of(f, ufunc(array(f, items)))
            turned = ufunc(array(f, items)[::-2])
            assert_items(f, items_of(f, turned), want[::-2], function, items[::-2])
            place = array(f, items.copy())
            ufunc(place, out=place)
        assert_items(f, items_of(f, place), want, f"{function} in place", items)
        compared(2 * items.size)
