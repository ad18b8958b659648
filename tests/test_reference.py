"""The reference against its specifications, NumPy's float16 and ml_dtypes.

Needs no part of the package: a truth that is wrong should be found here.
"""

from fractions import Fraction

import numpy as np
import pytest
from reference import codec, operations, ufuncs
from reference.arrays import (
    all_items,
    encode,
    item_type,
    midpoints,
    random_items,
    values,
)
from reference.formats import E8M0, FLOAT16, FLOAT32, FORMATS, Format

ALL = list(FORMATS.values())


def name(f: Format) -> str:
    return f.name


# -- the tables of the specifications ----------------------------------------


@pytest.mark.parametrize("f", ALL, ids=name)
def test_extremes(f):
    least = 0 if f.powers else 1
    assert codec.to_fraction(codec.decode_code(f, f.max_code)) == f.max_value
    assert codec.to_fraction(codec.decode_code(f, least)) == f.tiny_value
    assert f.count == 1 << (f.signed + f.exponent_bits + f.mantissa_bits)
    specials = [codec.decode_code(f, code).special for code in range(f.count)]
    infinities = 2 if f.infinity is not None else 0
    nans = {"e8m0fnu": 1, "e4m3fn": 2}.get(f.name.rpartition("_")[2])
    if f.name.endswith("fnuz"):
        nans = 1
    elif f.nan is None:
        nans = 0
    elif f.infinity is not None:
        nans = 2 * ((1 << f.mantissa_bits) - 1)
    assert (specials.count("inf"), specials.count("nan")) == (infinities, nans)


@pytest.mark.parametrize(
    ("name", "code", "value"),
    [  # OCP 8-bit specification, table 1, and Microscaling 1.0, tables 3 to 5
        ("float8_e5m2", 0x7B, 57344),
        ("float8_e5m2", 0x04, Fraction(1, 2**14)),
        ("float8_e4m3fn", 0x7E, 448),
        ("float8_e4m3fn", 0x08, Fraction(1, 2**6)),
        ("float8_e4m3fn", 0x07, Fraction(7, 2**9)),
        ("float6_e2m3fn", 0x08, 1),
        ("float6_e2m3fn", 0x07, Fraction(7, 8)),
        ("float6_e3m2fn", 0x1F, 28),
        ("float6_e3m2fn", 0x03, Fraction(3, 16)),
        ("float4_e2m1fn", 0x01, Fraction(1, 2)),
        ("float4_e2m1fn", 0x0F, -6),
        ("float8_e8m0fnu", 127, 1),
        ("bfloat16", 0x3FC0, Fraction(3, 2)),
        ("tf32", 0x1FC01, 1 + Fraction(1, 2**10)),
    ],
)
def test_spot(name, code, value):
    assert codec.to_fraction(codec.decode_code(FORMATS[name], code)) == value


def test_overflow_rules():
    """OCP 8-bit, section 5.2: e4m3fn becomes NaN beyond 464, the tie goes down."""
    e4m3fn, e5m2 = FORMATS["float8_e4m3fn"], FORMATS["float8_e5m2"]
    fp4 = FORMATS["float4_e2m1fn"]

    def code(f, value, *rules):
        return codec.encode_code(f, codec.from_fraction(Fraction(value)), *rules)

    assert code(e4m3fn, 464) == (0x7E, 0)
    assert code(e4m3fn, Fraction(4640001, 10000)) == (0x7F, codec.OVER)
    assert code(e4m3fn, 1000, "ties_to_even", "saturate") == (0x7E, codec.OVER)
    assert code(e5m2, 61440) == (0x7C, codec.OVER)
    assert code(e5m2, -61440, "toward_zero") == (0xFB, 0)
    assert code(e5m2, -70000, "toward_positive") == (0xFB, codec.OVER)
    assert code(e5m2, -70000, "toward_negative") == (0xFC, codec.OVER)
    assert code(fp4, -100) == (0xF, codec.OVER)
    assert code(fp4, 5) == (0x6, 0)  # a tie, to even
    assert code(fp4, 5, "ties_to_away") == (0x7, 0)
    assert code(fp4, 5, "to_odd") == (0x7, 0)


def test_powers_of_two():
    def code(value):
        return codec.encode_code(E8M0, codec.from_fraction(Fraction(value)))

    assert code(Fraction(3, 2)) == (128, 0)  # the tie goes up
    assert code(Fraction(149, 100)) == (127, 0)
    assert code(Fraction(1, 2**140)) == (0, codec.UNDER)
    assert code(0) == code(-1) == (255, codec.INVALID)
    assert code(Fraction(3, 2) * 2**127) == (255, codec.INVALID)
    assert codec.encode_code(E8M0, codec.NAN) == (255, 0)


# -- the fast rounding against the slow one -----------------------------------


@pytest.mark.parametrize("f", [*ALL, FLOAT16], ids=name)
def test_arrays_round_like_integers(f, compared):
    rng = np.random.default_rng(1)
    _, middle = midpoints(f)
    middle = rng.choice(middle, min(400, middle.size), replace=False)
    x = np.concatenate(
        [
            middle,
            np.nextafter(middle, np.inf),
            np.nextafter(middle, 0),
            np.ldexp(rng.random(500) + 0.5, rng.integers(-160, 140, 500)),
            [0.0, np.inf, 5e-324, 1.7e308],
        ]
    )
    x = np.concatenate([x, -x])
    items, flags = encode(f, x)
    for i, number in enumerate(x):
        exact = codec.from_float(float(number))
        if f.powers:  # through float32, as e8m0's arithmetic
            exact = codec.decode(FLOAT32, codec.encode(FLOAT32, exact)[0])
            assert items[i] == codec.encode(f, exact)[0], number
        else:
            assert (items[i], flags[i]) == codec.encode(f, exact), number
    compared(x.size)


@pytest.mark.parametrize("f", [*ALL, FLOAT16], ids=name)
def test_array_ufuncs_are_the_scalar_ones(f, compared):
    rng = np.random.default_rng(2)
    one = all_items(f) if f.count <= 256 else random_items(f, rng, 150)
    for function in operations.UNARY:
        items, flags = ufuncs.unary(function, f, one)
        for i, item in enumerate(one):
            want = operations.unary(function, f, int(item))
            assert (items[i], flags[i]) == want, (function, hex(item))
    pairs = random_items(f, rng, (2, 400))
    for function in operations.BINARY:
        items, flags = ufuncs.binary(function, f, *pairs)
        for i, (x, y) in enumerate(pairs.T):
            want = operations.binary(function, f, int(x), int(y))
            assert (items[i], flags[i]) == want, (function, hex(x), hex(y))
    compared(one.size * len(operations.UNARY) + 400 * len(operations.BINARY))


@pytest.mark.parametrize("function", sorted(operations.UNARY))
def test_float64_is_close_enough(function, compared):
    """The error bound that `ufuncs` builds on, sampled with mpmath."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(3)
    items = random_items(FORMATS["tf32"], rng, 400)
    x = values(FORMATS["tf32"], items)
    x = x[np.isfinite(x)]
    with np.errstate(all="ignore"):
        result = getattr(np, function)(x)
    checked = 0
    for argument, found in zip(x, result, strict=True):
        exact = operations.UNARY[function](codec.from_float(float(argument)))[0]
        if not np.isfinite(found) or abs(found) < 1e-300 or found == 0:
            continue
        with mpmath.workprec(120):
            if isinstance(exact, codec.Exact):
                sign = -1 if exact.negative else 1
                value = sign * mpmath.mpf((exact.integer, exact.exponent))
            else:
                value = exact(120)
            error = abs(mpmath.mpf(float(found)) - value)
            assert error <= abs(value) * ufuncs.RELATIVE_ERROR / 16, argument
        checked += 1
    compared(checked)


# -- NumPy's float16 -----------------------------------------------------------

HALVES = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 65504, -65504, 6e-8, -6e-8]
HALVES += [7e-5, -7e-5, np.inf, -np.inf, np.nan, 1000, 0.1, -1000, 10]


def flags_of(function, *operands):
    """Result and flags of one element; eight of it, for the vector loops."""
    seen = [0]

    def record(_, flags):
        seen[0] |= flags

    with np.errstate(all="call", call=record):
        result = function(*(np.full(8, x) for x in operands))
    return result[0], seen[0]


def test_float16_codec(compared):
    items = np.arange(1 << 16, dtype=np.uint16)
    numpy = items.view(np.float16).astype(np.float64)
    np.testing.assert_array_equal(values(FLOAT16, items), numpy)
    x = np.random.default_rng(4).standard_normal(50_000) * 10.0 ** np.arange(
        -10, 10
    ).repeat(2500)
    with np.errstate(all="ignore"):
        want = x.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(encode(FLOAT16, x)[0], want)
    compared(items.size + x.size)


@pytest.mark.parametrize(
    "function",
    [
        *("sign", "rint", "floor", "ceil", "trunc", "square", "reciprocal", "sqrt"),
        *("exp", "exp2", "log", "log2", "log10", "cos", "cosh", "arccos", "arccosh"),
    ],
)
def test_float16_unary(function, compared):
    """Special cases and flags; NumPy's own rounding errs only elsewhere."""
    for half in np.array(HALVES, np.float16):
        found, flags = flags_of(getattr(np, function), half)
        item, want = operations.unary(function, FLOAT16, int(half.view(np.uint16)))
        expected = np.array(item, np.uint16).view(np.float16)
        np.testing.assert_array_equal(found, expected)
        assert np.signbit(found) == np.signbit(expected) or np.isnan(found)
        assert flags == want, half
    compared(len(HALVES))


@pytest.mark.parametrize(
    "function",
    [
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder"),
        *("fmod", "power", "heaviside", "hypot", "nextafter"),
    ],
)
def test_float16_binary(function, compared):
    halves = np.array(HALVES, np.float16)
    for first in halves:
        for second in halves:
            found, flags = flags_of(getattr(np, function), first, second)
            codes = int(first.view(np.uint16)), int(second.view(np.uint16))
            if function == "nextafter":
                item, want = operations.nextafter(FLOAT16, *codes)
            else:
                item, want = operations.binary(function, FLOAT16, *codes)
            expected = np.array(item, np.uint16).view(np.float16)
            np.testing.assert_array_equal(found, expected)
            # From one zero to the other NumPy 2.4 stays, NumPy 2.5 goes.
            either = function == "nextafter" and first == second == 0
            same_sign = np.signbit(found) == np.signbit(expected)
            assert same_sign or either or np.isnan(found)
            assert flags == want, (first, second)
    compared(len(HALVES) ** 2)


def test_float16_spacing(compared):
    items = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        numpy = np.spacing(items.view(np.float16)).view(np.uint16)
    found = np.array([operations.spacing(FLOAT16, int(x))[0] for x in items])
    numbers = np.isfinite(values(FLOAT16, items))
    np.testing.assert_array_equal(found[numbers], numpy[numbers])
    compared(items.size)


# -- ml_dtypes -----------------------------------------------------------------

#: ml_dtypes has no tf32, and its fp6 and fp4 NaN and overflow rules are its own.
SHARED = [f for f in ALL if f.name != "tf32"]


@pytest.mark.parametrize("f", SHARED, ids=name)
def test_ml_dtypes_decodes_alike(f, compared):
    peer = getattr(pytest.importorskip("ml_dtypes"), f.name)
    items = all_items(f)
    with np.errstate(all="ignore"):
        numbers = items.view(peer).astype(np.float64)
    np.testing.assert_array_equal(values(f, items), numbers)
    compared(items.size)


@pytest.mark.parametrize("f", [f for f in SHARED if not f.powers], ids=name)
def test_ml_dtypes_encodes_float32_alike(f, compared):
    peer = getattr(pytest.importorskip("ml_dtypes"), f.name)
    rng = np.random.default_rng(5)
    x = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    _, middle = midpoints(f)
    middle = middle.astype(np.float32)
    x = np.concatenate([x, middle, np.nextafter(middle, np.float32(0))])
    x = x[np.isfinite(x)]
    with np.errstate(all="ignore"):
        want = x.astype(peer).view(item_type(f))
    found = encode(f, x.astype(np.float64))[0]
    np.testing.assert_array_equal(found, want)
    compared(x.size)


@pytest.mark.parametrize("f", [f for f in SHARED if f.nan and f.signed], ids=name)
@pytest.mark.parametrize("function", ["exp", "log1p", "sin", "tanh", "cbrt", "sqrt"])
def test_ml_dtypes_computes_alike(f, function, compared):
    peer = getattr(pytest.importorskip("ml_dtypes"), f.name)
    items = all_items(f)
    with np.errstate(all="ignore"):
        want = getattr(np, function)(items.view(peer)).view(item_type(f))
    found, _ = ufuncs.unary(function, f, items)
    number = ~np.isnan(values(f, found))
    np.testing.assert_array_equal(found[number], want[number])
    assert np.isnan(values(f, want[~number])).all()
    compared(items.size)
