"""Arithmetic and functions for which two roundings, or a small error, are visible."""

import numpy as np
import pytest

from tests.reference import ufuncs
from tests.reference.codec_arrays import encode, random_items
from tests.reference.formats import FORMATS
from tests.support import near_ties
from tests.support.bits import WIDE, array, assert_items, items_of, name
from tests.ufuncs.test_binary import moderate_pairs

CHUNK = 500_000


def check(function, f, first, second):
    want, _ = ufuncs.binary(function, f, first, second)
    with np.errstate(all="ignore"):
        found = getattr(np, function)(array(f, first), array(f, second))
    assert_items(f, items_of(f, found), want, function, first, second)
    return first.size


def test_float32_would_round_this_twice():
    """Round a product a little above half of tf32's smallest number, 2**-136, upward.

    float32 rounds it to this half, a tie, which a second rounding would make zero.
    """
    f = FORMATS["tf32"]
    x, y = float.fromhex("0x1.cacp-65"), float.fromhex("0x1.1dcp-73")
    first = encode(f, np.array([x, x, -x]))[0]
    second = encode(f, np.array([y, -y, -y]))[0]
    least = np.uint32(1 << 13)
    product = items_of(f, array(f, first) * array(f, second))
    assert product.tolist() == [least, least | 1 << 31, least]
    check("multiply", f, first, second)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", near_ties.ARITHMETIC)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_arithmetic(f, function, compared):
    rng = np.random.default_rng(11)
    first, second = near_ties.ARITHMETIC[function](f, rng, 100_000)
    compared(check(function, f, first, second))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", near_ties.FUNCTIONS)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_functions(f, function, compared):
    rng = np.random.default_rng(12)
    compared(check(function, f, *near_ties.solved(function, f, rng, 20_000)))
    compared(check(function, f, *moderate_pairs(f, 100_000)))


@pytest.mark.parametrize("f", WIDE, ids=name)
def test_powers_about_the_least_number(f, compared):
    """Round powers far below the smallest number to zero, which is inexact."""
    rng = np.random.default_rng(16)
    exponents = rng.uniform(-145, -120, 20_000)
    y = rng.choice([-1, 1], 20_000) * rng.uniform(2, 200, 20_000)
    first, second = (encode(f, z)[0] for z in (np.exp2(exponents / y), y))
    compared(check("power", f, first, second))
    halves = np.exp2(rng.integers(-80, 0, 5_000))  # whose powers may be exact
    whole = rng.integers(1, 150, 5_000).astype(float)
    compared(check("power", f, encode(f, halves)[0], encode(f, whole)[0]))
    far = exponents < -140
    with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underf"):
        np.power(array(f, first[far]), array(f, second[far]))


@pytest.mark.parametrize("f", WIDE, ids=name)
def test_hypotenuses_of_tiny_and_unequal_sides(f, compared):
    """Compute results that are subnormal, exact, or near to the longer side."""
    rng = np.random.default_rng(17)
    least = float(f.tiny_value)
    tiny = rng.integers(0, 60, (2, 5_000)) * least
    whole = rng.integers(0, 1_000, (2, 5_000)).astype(float)
    apart = np.exp2(rng.uniform(-100, 100, 5_000))
    unequal = np.array([apart, apart * np.exp2(rng.uniform(-35, 0, 5_000))])
    for pair in (tiny, whole, unequal):
        compared(check("hypot", f, *(encode(f, x)[0] for x in pair)))


@pytest.mark.parametrize(("function", "base"), [("logaddexp", np.e), ("logaddexp2", 2)])
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_logarithms_that_cancel(f, function, base, compared):
    """Add numbers near 1, whose logarithms, up to 2**-5, are differences."""
    rng = np.random.default_rng(15)
    x = np.log(rng.uniform(0.01, 0.99, 2_000))
    apart = rng.uniform(-1, 1, x.size) * 2.0 ** rng.uniform(-12, -4, x.size)
    y = np.log(1 - np.exp(x)) + apart
    first, second = (encode(f, z / np.log(base))[0] for z in (x, y))
    compared(check(function, f, first, second))


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", near_ties.ARITHMETIC)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_ten_million_sums_and_products(f, function, compared):
    rng = np.random.default_rng(13)
    for _ in range(10_000_000 // CHUNK):
        first, second = near_ties.ARITHMETIC[function](f, rng, CHUNK)
        compared(check(function, f, first, second))


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", near_ties.FUNCTIONS)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_a_million_near_ties_of_functions(f, function, compared):
    rng = np.random.default_rng(14)
    for _ in range(1_000_000 // CHUNK):
        compared(check(function, f, *near_ties.solved(function, f, rng, CHUNK)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("function", near_ties.FUNCTIONS)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_ten_million_random_pairs(f, function, compared):
    """Draw pairs, half of them of any codes, half near one another."""
    rng = np.random.default_rng(15)
    for _ in range(10_000_000 // CHUNK):
        compared(check(function, f, *random_items(f, rng, (2, CHUNK // 2))))
        near = rng.standard_normal((2, CHUNK // 2)) * 4
        like = encode(f, near[0])[0], encode(f, near[0] * np.exp(near[1] / 2))[0]
        compared(check(function, f, *like))
