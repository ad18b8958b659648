"""`td.ulp_distance` and `td.testing.assert_max_ulp`, against counting in integers."""

import doctest
from fractions import Fraction
from importlib import import_module
from itertools import combinations

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec import Exact, decode_code, encode_code, to_fraction
from tests.reference.codec_arrays import all_items
from tests.reference.formats import FLOAT16, FLOAT32, FORMATS, Format

pytestmark = pytest.mark.once

NAN = 2**64 - 1
FLOAT64 = Format(
    "float64", 64, 0, 11, 52, 1023, True, 0x7FF << 52, 0xFFF << 51, (0x7FF << 52) - 1,
    (2 - Fraction(2) ** -52) * Fraction(2) ** 1023, Fraction(2) ** -1074,
)  # fmt: skip
EVERY = {**FORMATS, "float16": FLOAT16, "float32": FLOAT32, "float64": FLOAT64}
IN_BYTES = [f for f in EVERY.values() if f.item_bits == 8]
WIDE = [f for f in EVERY.values() if f.count > 1 << 16]


def array(f, codes):
    """Return an array of codes, which are given as Python integers."""
    items = np.array([code << f.shift for code in codes], f"u{f.item_bits // 8}")
    return items.view(td.formats[f.name].dtype if f.name in td.formats else f.name)


def finite(f):
    """Return all different finite numbers, in order."""
    exact = (decode_code(f, code) for code in range(f.count))
    return sorted({to_fraction(x) for x in exact if not x.special})


def position(f, x, order=None):
    """Return the index of a number in the order of all; None for a NaN."""
    if x.special == "nan":
        return None
    if x.special == "inf":
        step = position(f, Exact(False, *greatest(f)), order) + 1
        return -step if x.negative else step
    value = to_fraction(x)
    if order is not None:
        return order[value]
    return -rank(f, -value) if value < 0 else rank(f, value)


def greatest(f):
    x = decode_code(f, f.max_code)
    return x.integer, x.exponent


def rank(f, value):
    """Count the numbers of a signed format above 0, up to one of its numbers."""
    least = Fraction(2) ** f.least_exponent
    spacing, count = least, 0
    while value > spacing * 2 ** (f.mantissa_bits + 1):  # binade by binade
        spacing *= 2
        count += 2**f.mantissa_bits
    steps = value / spacing
    assert steps.denominator == 1
    return count + int(steps)


def positions(f):
    """Return the position of each code, 0 for the zeros, by enumeration."""
    values = finite(f)
    zero = values.index(0) if 0 in values else 0
    order = {x: i - zero for i, x in enumerate(values)}
    return [position(f, decode_code(f, code), order) for code in range(f.count)]


def apart(p, q):
    """Return the distances of all pairs of positions."""
    p, q = (np.array([np.nan if x is None else x for x in z]) for z in (p, q))
    steps = np.abs(p[:, None] - q[None, :])
    nans = np.isnan(p)[:, None], np.isnan(q)[None, :]
    found = np.where(np.isnan(steps), 0, steps).astype(np.uint64)
    found[nans[0] ^ nans[1]] = NAN
    return found


@pytest.mark.parametrize("f", IN_BYTES, ids=str)
def test_all_pairs_of_codes(f):
    x = all_items(f).view(td.formats[f.name].dtype)
    found = td.ulp_distance(x[:, None], x[None, :])
    assert found.dtype == np.uint64
    assert (found == apart(positions(f), positions(f))).all()
    for a, b in ((0, 1), (3, 2), (1, f.count - 1)):
        one = td.ulp_distance(x[a], x[b])
        assert type(one) is np.uint64
        assert one == found[a, b]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_all_codes_of_16_bits(name):
    f = EVERY[name]
    every = positions(f)
    for other in (0, 1, 0x1234, f.sign_bit + 5, f.infinity, f.max_code, f.nan):
        found = td.ulp_distance(array(f, range(f.count)), array(f, [other]))
        assert found.tolist() == apart(every, [every[other]])[:, 0].tolist()
    # This formula is the reference for wider formats.
    for code in range(0, f.infinity, 97):
        assert rank(f, to_fraction(decode_code(f, code))) == every[code]


@pytest.mark.parametrize("f", WIDE, ids=str)
def test_neighbors_and_samples_of_wide_formats(f):
    rng = np.random.default_rng(5)
    some = [0, 1, f.max_code, f.infinity, 1 << f.mantissa_bits]
    some += [int(x) % f.infinity for x in rng.integers(0, 2**62, 20)]
    codes = [max(0, min(x + step, f.infinity)) for x in some for step in (-1, 0, 2)]
    codes += [x | f.sign_bit for x in codes]
    places = [position(f, decode_code(f, code)) for code in codes]
    x = array(f, codes)
    found = td.ulp_distance(x[:, None], x[None, :])
    want = [[abs(p - q) for q in places] for p in places]
    assert found.tolist() == want
    nans = array(f, [f.nan, f.nan | f.sign_bit, f.nan | 1, f.infinity + 1])
    assert (td.ulp_distance(nans[:, None], nans) == 0).all()
    assert (td.ulp_distance(nans[:, None], x) == NAN).all()
    assert (td.ulp_distance(x[:, None], nans) == NAN).all()


def test_unused_bits_count_for_nothing():
    a = td.from_bits([0x3F800000, 0x3F801FFF], td.tf32, dirty="ignore")
    b = td.from_bits([0x7F800001, 0x7F800000], td.tf32, dirty="ignore")  # both Inf
    c = td.from_bits([0x02, 0xF2], td.fp4, dirty="ignore")
    for x in (a, b, c):
        assert td.ulp_distance(x[0], x[1]) == 0


# -- two formats -----------------------------------------------------------------------


def coarser(f, g):
    """Return the format with fewer digits, then the one with the smaller range."""
    return min((f, g), key=lambda x: (x.mantissa_bits, x.max_value, -x.tiny_value))


@pytest.mark.parametrize(
    ("f", "g"), [*combinations(IN_BYTES, 2)], ids=lambda f: f.name[5:]
)
def test_two_formats_of_a_byte(f, g):
    target = coarser(f, g)
    assert coarser(g, f) == target
    known = positions(target)

    def rounded(source):
        exact = [decode_code(source, code) for code in range(source.count)]
        codes = [encode_code(target, x)[0] for x in exact]
        # FP6 and FP4 round NaN to 0. Its distance is nevertheless that of a NaN.
        return [
            None if x.special == "nan" else known[code]
            for x, code in zip(exact, codes, strict=True)
        ]

    x, y = (all_items(z).view(td.formats[z.name].dtype) for z in (f, g))
    want = apart(rounded(f), rounded(g))
    assert (td.ulp_distance(x[:, None], y[None, :]) == want).all()
    assert (td.ulp_distance(y[:, None], x[None, :]) == want.T).all()


@pytest.mark.parametrize(
    ("a", "b", "steps"),
    [
        (np.float32(1 + 2**-9), td.bfloat16(1), 0),  # rounds to td.bfloat16(1)
        (np.float32(1 + 3 * 2**-9), td.bfloat16(1), 1),
        (np.float64(1 + 2**-8), td.bfloat16(1), 0),  # a tie
        (np.float64(1 + 2**-8 + 2**-40), td.bfloat16(1), 1),  # one rounding
        (np.float16(1), td.tf32(1 + 2**-10), 1),
        (np.float16(65504), td.tf32(1e9), 1),  # Inf
        (np.float32(449), td.fp8_e4m3(448), 0),
        (np.float32(1000), td.fp8_e4m3(448), NAN),  # no Inf
        (np.float32(1000), td.fp4(6), 0),  # neither Inf nor NaN
        (np.nan, td.fp4(0), NAN),
        (td.bfloat16(1), 3, 192),
        (td.bfloat16(1), True, 0),
        ([1.0, 2.0], [1, 2], [0, 0]),
        (np.array([1, 2], ">f4"), np.array([1, 2], ">f8"), [0, 0]),
        (np.ones((2, 1), np.float16), np.ones(3, td.tf32), [[0] * 3] * 2),
        (np.ones((0, 3), np.float16), td.tf32(1), []),
        (1.0, -1.0, 2 * 0x3FF << 52),
        (-np.inf, np.inf, 2 * 0x7FF << 52),
    ],
)
def test_single_distances(a, b, steps):
    with np.errstate(all="raise"):
        assert td.ulp_distance(a, b).tolist() == steps
        assert td.ulp_distance(b, a).tolist() == steps


def test_types_of_others_and_blocks():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.array([1, 2], ml_dtypes.bfloat16)
    assert td.ulp_distance(a, np.array([1, 2.015625], td.bfloat16)).tolist() == [0, 1]
    blocks = td.blocks.quantize(np.ones((2, 32), np.float32), "mxfp4")
    assert (td.ulp_distance(blocks, np.ones((2, 32))) == 0).all()


@pytest.mark.parametrize(
    ("a", "b", "error", "words"),
    [
        (
            1,
            2,
            TypeError,
            "a or b must have a dtype of floating-point numbers",
        ),
        (1.0, np.longdouble(1), TypeError, f"got {np.dtype(np.longdouble)}"),
        (1.0, 1j, TypeError, "b must have a dtype of td.formats"),
        ("1", 1.0, TypeError, "a must have a dtype of td.formats"),
        ([1.0] * 3, [1.0] * 2, ValueError, r"got \(3,\) and \(2,\)"),
    ],
)
def test_what_has_no_distance(a, b, error, words):
    with pytest.raises(error, match=words):
        td.ulp_distance(a, b)
    with pytest.raises(error, match=words):
        td.testing.assert_max_ulp(a, b, 3)


# -- assertions ------------------------------------------------------------------------


def test_an_assertion_returns_the_distances():
    a = np.array([1, 100, -1, 0.0], td.bfloat16)
    b = np.array([1, 101, -1, -0.0], td.bfloat16)
    assert td.testing.assert_max_ulp(a, b, 2).tolist() == [0, 2, 0, 0]
    assert td.testing.assert_max_ulp(1.0, 1.0) == 0
    assert td.testing.assert_max_ulp(a, b, 2**70).max() == 2


def test_an_assertion_names_the_worst():
    a = np.array([[1, 100, 3], [0, 5, 6]], td.bfloat16)
    b = np.array([[1, 101, 3], [0, -5, 7]], td.bfloat16)
    with pytest.raises(AssertionError) as caught:
        td.testing.assert_max_ulp(a, b, 1)
    distance = int(td.ulp_distance(td.bfloat16(5), td.bfloat16(-5)))
    assert str(caught.value) == (
        "a and b must be within 1 ulp of bfloat16; got 3 of 6 elements with a larger"
        f" distance, at most {distance} ulps at [1, 1]: a is 5.0 and b is -5.0"
    )
    with pytest.raises(AssertionError, match=r"got 2 of 3 .* at \[1\]: a is 100.0"):
        td.testing.assert_max_ulp(a[0], td.bfloat16(1), 2)
    with pytest.raises(AssertionError, match="a NaN against a number: a is nan and b"):
        td.testing.assert_max_ulp(np.nan, td.bfloat16(1), 2)
    with pytest.raises(AssertionError, match="within 1 ulp of float64"):
        td.testing.assert_max_ulp([1.0], [1.5])


@pytest.mark.parametrize(
    ("maxulp", "error", "words"),
    [
        (-1, ValueError, "maxulp must be 0 or more; got -1"),
        (0.5, TypeError, "maxulp must be an integer; got 0.5"),
    ],
)
def test_a_limit_is_a_count(maxulp, error, words):
    with pytest.raises(error, match=words):
        td.testing.assert_max_ulp(1.0, 1.0, maxulp)


@pytest.mark.parametrize("name", ["testing", "_measures.ulps"])
def test_examples(name):
    module = import_module(f"tf32dtype.{name}")
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 2
    assert results.failed == 0


def test_assertions_of_numpy_know_the_formats():
    a = np.array([100, 1], td.bfloat16)
    b = np.array([101, 1], td.bfloat16)
    assert np.testing.assert_array_max_ulp(a, b, 2).tolist() == [2, 0]
    with pytest.raises(AssertionError, match="max difference is 2 ULP"):
        np.testing.assert_array_max_ulp(a, b, 1)
    with pytest.raises(AssertionError, match="max is 2"):
        np.testing.assert_array_almost_equal_nulp(a, b, 1)
    with pytest.raises(ValueError, match="shape"):
        np.testing.assert_array_max_ulp(a, b[:1])
    assert np.testing.assert_array_max_ulp(np.ones(2), np.ones(2)).dtype == np.float64
