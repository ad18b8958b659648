"""Every binary ufunc: all pairs of 8-bit codes, random pairs of wider ones."""

import numpy as np
import pytest

from tests.reference import operations, ufuncs
from tests.reference.codec_arrays import (
    Items,
    all_items,
    encode,
    item_type,
    random_items,
    values,
)
from tests.reference.formats import Format
from tests.support.bits import (
    ALL,
    BYTES,
    WIDE,
    array,
    assert_equal,
    assert_items,
    items_of,
    name,
    raised,
)

RANDOM_PAIRS = 200_000
#: The scalar reference takes some microseconds per pair.
SLOW_PAIRS = 20_000


def all_pairs(f: Format) -> tuple[Items, Items]:
    items = all_items(f)
    return np.repeat(items, items.size), np.tile(items, items.size)


def edges(f: Format) -> Items:
    """Return zeros, the smallest and largest numbers, 1, Inf and NaNs of both signs."""
    infinity = f.infinity or f.max_code
    codes = [0, 1, 1 << f.mantissa_bits, f.bias << f.mantissa_bits, f.max_code]
    codes += [infinity, infinity + 1, f.nan or 0, f.max_code - 1]
    codes += [code | f.sign_bit for code in codes]
    return (np.array(codes) << f.shift).astype(item_type(f))


def moderate_pairs(f: Format, count: int) -> tuple[Items, Items]:
    """Draw pairs, half of them of any codes, half of like magnitude."""
    rng = np.random.default_rng(8)
    first, second = random_items(f, rng, (2, count // 2))
    like = np.ldexp(rng.standard_normal(count // 2), rng.integers(-9, 9, count // 2))
    near = like * np.exp(rng.standard_normal(count // 2))
    near *= rng.choice([-1.0, 1.0], near.size)
    ends = edges(f)
    return (
        np.concatenate([first, encode(f, like)[0], np.repeat(ends, ends.size)]),
        np.concatenate([second, encode(f, near)[0], np.tile(ends, ends.size)]),
    )


def pairs(f: Format, count: int = RANDOM_PAIRS) -> tuple[Items, Items]:
    return all_pairs(f) if f.count <= 256 else moderate_pairs(f, count)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("function", operations.BINARY)
@pytest.mark.parametrize("f", ALL, ids=name)
def test_functions(f, function, compared):
    first, second = pairs(f)
    want, _ = ufuncs.binary(function, f, first, second)
    with np.errstate(all="ignore"):
        found = getattr(np, function)(array(f, first), array(f, second))
    assert_items(f, items_of(f, found), want, function, first, second)
    compared(first.size)


def at_the_ends(f: Format) -> tuple[Items, Items]:
    """Return all pairs of numbers near 0, 1, the largest, the smallest normal, and
    those whose products or quotients are near the last or float32's smallest number."""
    middles = (f.normal_exponent, f.least_exponent, -149)
    exponents = [f.normal_exponent, 0, *(e // 2 for e in middles), *middles]
    codes = [*range(6), *range(f.max_code - 5, f.max_code + 1)]
    for exponent in exponents:
        code = int(encode(f, np.array([2.0**exponent]))[0][0]) >> f.shift
        codes += range(max(code - 3, 0), code + 4)
    codes = np.unique(codes)
    codes = np.concatenate([codes, codes | f.sign_bit])
    items = (codes << f.shift).astype(item_type(f))
    return np.repeat(items, items.size), np.tile(items, items.size)


@pytest.mark.parametrize("function", operations.BINARY)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_at_the_ends(f, function, compared):
    first, second = at_the_ends(f)
    want, flags = ufuncs.binary(function, f, first, second)
    ufunc, a, b = getattr(np, function), array(f, first), array(f, second)
    found, seen = raised(ufunc, a, b)
    assert_items(f, items_of(f, found), want, function, first, second)
    assert seen == np.bitwise_or.reduce(flags)
    compared(first.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_comparisons(f, compared):
    first, second = pairs(f)
    a, b = array(f, first), array(f, second)
    for function in operations.COMPARISON:
        want = ufuncs.comparison(function, f, first, second)
        assert_equal(getattr(np, function)(a, b), want, function)
        compared(first.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_divmod(f, compared):
    first, second = pairs(f)
    with np.errstate(all="ignore"):
        found = np.divmod(array(f, first), array(f, second))
    for part, function in zip(found, ("floor_divide", "remainder"), strict=True):
        want, _ = ufuncs.binary(function, f, first, second)
        assert_items(f, items_of(f, part), want, f"divmod: {function}", first, second)
        compared(first.size)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", ["copysign", "nextafter"])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_on_bits(f, function, compared):
    compared(check_on_bits(f, function, 7))


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", ["copysign", "nextafter"])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_on_bits_of_all_pairs(f, function, compared):
    compared(check_on_bits(f, function, 1))


def check_on_bits(f: Format, function: str, step: int) -> int:
    first, second = (x[::step] for x in pairs(f, SLOW_PAIRS))
    truth = getattr(operations, function)
    want = [truth(f, int(x), int(y))[0] for x, y in zip(first, second, strict=True)]
    with np.errstate(all="ignore"):
        found = getattr(np, function)(array(f, first), array(f, second))
    expected = np.array(want, first.dtype)
    assert_items(f, items_of(f, found), expected, function, first, second)
    return first.size


@pytest.mark.parametrize("f", BYTES, ids=name)
def test_every_ldexp(f, compared):
    """Compute ldexp exactly in float64: any number times 2**-400 is in its range."""
    items = all_items(f)[:, None]
    shifts = np.arange(-400, 401, dtype=np.intc)
    number = np.ldexp(values(f, items), shifts)
    want, flags = encode(f, number.ravel())
    found, seen = raised(np.ldexp, array(f, items), shifts)
    assert_items(f, items_of(f, found).ravel(), want, "ldexp")
    assert seen == np.bitwise_or.reduce(flags)
    compared(want.size)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("integer", [np.intc, np.int64])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_ldexp(f, integer, compared):
    rng = np.random.default_rng(9)
    items = all_items(f) if f.count <= 256 else random_items(f, rng, 4000)
    items = np.repeat(items[::4] if f.count > 256 else items, 12)
    shifts = rng.integers(-40, 40, items.size)
    shifts[::2] = rng.integers(-300, 300, shifts[::2].size)
    shifts[::7] = rng.integers(-(2**31), 2**31, shifts[::7].size)
    shifts = shifts.astype(integer)
    want = [
        operations.ldexp(f, int(x), int(n))[0]
        for x, n in zip(items, shifts, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = items_of(f, np.ldexp(array(f, items), shifts))
    assert_items(f, found, np.array(want, items.dtype), "ldexp", items, shifts)
    compared(items.size)


@pytest.mark.parametrize("f", [*BYTES, *WIDE], ids=name)
def test_scalar_operands_and_strides(f, compared):
    """Compute with broadcast operands, strides and out=, which use other loops."""
    first, second = pairs(f, 4000)
    a, b = array(f, first), array(f, second)
    for function in ("add", "multiply", "divide", "power", "less", "maximum"):
        ufunc = getattr(np, function)
        with np.errstate(all="ignore"):
            want = ufunc(a, b)
            step = ufunc(a[::-3], b[::-3])
            broadcast = ufunc(a[:64, None], b[None, :64]).diagonal()
            scalar = ufunc(a[:64], b[5])
            column = ufunc(a[:64], np.broadcast_to(b[5], 64).copy())
        if function == "less":
            assert_equal(step, want[::-3], function)
            assert_equal(broadcast, want[:64], function)
            assert_equal(scalar, column, function)
            continue
        bits = items_of(f, want)
        assert_items(f, items_of(f, step), bits[::-3], f"{function}, strided")
        assert_items(f, items_of(f, broadcast), bits[:64], f"{function}, broadcast")
        assert_items(f, items_of(f, scalar), items_of(f, column), f"{function}, scalar")
        compared(step.size + 128)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_clip_is_minimum_of_maximum(f, compared):
    rng = np.random.default_rng(10)
    x, low, high = random_items(f, rng, (3, 5000))
    numbers = values(f, x), values(f, low), values(f, high)
    kept = ~np.isnan(numbers).any(axis=0) & (numbers[1] <= numbers[2])
    x, low, high = x[kept], low[kept], high[kept]
    found = items_of(f, np.clip(array(f, x), array(f, low), array(f, high)))
    inner, _ = ufuncs.binary("maximum", f, x, low)
    want, _ = ufuncs.binary("minimum", f, inner, high)
    same = values(f, found) == values(f, want)  # a zero may have either sign
    assert same.all()
    compared(x.size)
