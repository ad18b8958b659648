"""Every code of every format: its value, and back; bits outside a code are ignored."""

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec_arrays import (
    all_items,
    encode,
    item_type,
    random_items,
    values,
)
from tests.reference.formats import Format
from tests.support.bits import (
    ALL,
    array,
    assert_equal,
    assert_items,
    dtype,
    items_of,
    name,
)

#: Formats whose items have bits outside the code.
LOOSE = [f for f in ALL if f.count < 1 << f.item_bits]


def canonical(f: Format, items: np.ndarray) -> np.ndarray:
    """Return items as a cast writes them: a NaN keeps its sign, not its payload."""
    number = values(f, items)
    result = items.copy()
    nan = np.isnan(number)
    signed = f.sign_bit if f.negative_zero else 0
    result[nan] = ((f.nan or 0) | np.signbit(number[nan]) * signed) << f.shift
    return result


@pytest.mark.parametrize("f", ALL, ids=name)
def test_every_code_is_itself(f, compared):
    items = all_items(f)
    a = td.from_bits(items, dtype(f))
    assert a.dtype == dtype(f)
    assert_equal(td.bits(a), items, "bits(from_bits(codes))")
    assert_equal(td.bits(array(f, items)), items, "bits of a view")
    compared(items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_decode_and_back(f, compared):
    items = all_items(f)
    number = values(f, items)
    for wide in (np.float64, np.float32, np.longdouble):
        found = array(f, items).astype(wide)
        assert found.dtype == wide
        np.testing.assert_array_equal(found, number)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(number))
        if wide is not np.longdouble:  # quiet NaNs with zero payload
            unsigned = np.dtype(f"u{found.dtype.itemsize}")
            want = number.astype(wide).view(unsigned)
            assert_equal(found.view(unsigned), want, f"bits of {wide.__name__}")
        back = items_of(f, found.astype(dtype(f)))
        assert_items(f, back, canonical(f, items), f"{wide.__name__}, back", items)
        compared(items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_decode_strided_and_unaligned(f, compared):
    items = all_items(f)
    number = values(f, items)
    a = array(f, items)
    np.testing.assert_array_equal(a[::-3].astype(np.float64), number[::-3])
    width = a.dtype.itemsize
    raw = np.zeros(items.size * width + 1, np.uint8)
    raw[1:] = items.view(np.uint8)
    crooked = raw[1:].view(dtype(f))
    np.testing.assert_array_equal(crooked.astype(np.float64), number)
    assert_equal(td.bits(crooked), items, "bits of an unaligned array")
    packed = np.zeros(items.size, [("pad", "u1"), ("x", dtype(f))])
    packed["x"] = a
    np.testing.assert_array_equal(packed["x"].astype(np.float32), number)
    compared(3 * items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_swapped_bytes(f, compared):
    items = all_items(f)
    number = values(f, items)
    for wide in ("f8", "f4"):
        swapped = number.astype(f"={wide}").astype(f">{wide}")
        back = items_of(f, swapped.astype(dtype(f)))
        assert_items(f, back, canonical(f, items), f"from >{wide}", items)
        found = array(f, items).astype(f">{wide}")
        assert found.dtype == np.dtype(f">{wide}")
        np.testing.assert_array_equal(found, number)
    compared(4 * items.size)


@pytest.mark.parametrize("f", LOOSE, ids=name)
def test_dirty_bits_are_ignored(f, compared):
    rng = np.random.default_rng(6)
    clean = random_items(f, rng, 20_000)
    inside = np.array((f.count - 1) << f.shift, item_type(f))
    noise = rng.integers(0, 1 << f.item_bits, clean.size, dtype=item_type(f))
    dirty = clean | (noise & ~inside)
    assert (dirty != clean).any()
    a, b = array(f, dirty), array(f, clean)
    with np.errstate(all="ignore"):
        assert_equal(td.bits(a), clean, "bits")
        np.testing.assert_array_equal(a.astype(np.float64), values(f, clean))
        other = b[::-1]
        for ufunc in (np.add, np.multiply, np.maximum, np.nextafter, np.copysign):
            want = td.bits(ufunc(b, other))
            assert_items(f, items_of(f, ufunc(a, other)), want, ufunc.__name__, dirty)
        for ufunc in (np.exp, np.floor, np.negative, np.sqrt, np.spacing):
            want = td.bits(ufunc(b))
            assert_items(f, items_of(f, ufunc(a)), want, ufunc.__name__, dirty)
        assert_equal(np.isnan(a), np.isnan(b), "isnan")
        assert_equal(a == b, ~np.isnan(b), "equal")
        assert_equal(a < other, b < other, "less")
        for kind in ("quicksort", "stable"):
            found, want = np.sort(a, kind=kind), np.sort(b, kind=kind)
            np.testing.assert_array_equal(found.astype(float), want.astype(float))
        assert_equal(
            np.argsort(a, kind="stable"), np.argsort(b, kind="stable"), "argsort"
        )
        found, want = a.sum(), b.sum()
        assert td.bits(found) == td.bits(want)
    for x, y in zip(a[:200], b[:200], strict=True):
        if y == y:
            assert x == y
            assert hash(x) == hash(y)
            assert repr(x) == repr(y)
    compared(17 * clean.size)


@pytest.mark.parametrize("f", LOOSE, ids=name)
def test_from_bits_refuses_dirty_codes(f):
    outside = 1 if f.shift else f.count
    dirty = np.array([0, outside], item_type(f))
    with pytest.raises(ValueError, match=f.name):
        td.from_bits(dirty, dtype(f))
    with pytest.raises(ValueError, match=f.name):
        td.from_bits(dirty, dtype(f), dirty="raise")
    assert td.bits(td.from_bits(dirty, dtype(f), dirty="ignore")).tolist() == [0, 0]


@pytest.mark.parametrize("f", ALL, ids=name)
def test_casts_between_our_formats(f, compared):
    """Cast all codes of one format to every other, NaN's sign included."""
    items = all_items(f)
    number = values(f, items)
    negative_nan = np.isnan(number) & np.signbit(number)
    for g in ALL:
        if g is f:
            continue
        with np.errstate(all="ignore"):
            found = items_of(g, array(f, items).astype(dtype(g)))
        want, _ = encode(g, number)
        if g.negative_zero:  # `encode` makes a positive NaN, a cast keeps its sign
            want[negative_nan] |= g.sign_bit << g.shift
        assert_items(g, found, want, f"{f.name} ->", items.astype(np.uint32))
        compared(items.size)
