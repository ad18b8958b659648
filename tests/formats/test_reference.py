"""The reference against its specifications, NumPy's float16 and ml_dtypes.

Needs no module of the package, so that it finds faults of the reference itself.
"""

from fractions import Fraction

import numpy as np
import pytest

from tests.reference import arithmetic, codec, matmul, operations, ufuncs
from tests.reference.codec_arrays import (
    all_items,
    encode,
    item_type,
    midpoints,
    random_items,
    values,
)
from tests.reference.formats import E8M0, FLOAT16, FLOAT32, FORMATS, Format
from tests.support import oracle

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
    specials = [codec.decode(f, code << f.shift).special for code in range(f.count)]
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
    """OCP 8-bit, section 5.2: e4m3fn becomes NaN above 464, and the tie goes down."""
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


@pytest.mark.parametrize(
    ("function", "step"),
    [
        *(("multiply", 31), ("divide", 31), ("power", 31)),
        pytest.param("multiply", 1, marks=pytest.mark.exhaustive),
        pytest.param("divide", 9, marks=pytest.mark.exhaustive),
        pytest.param("power", 9, marks=pytest.mark.exhaustive),
    ],
)
def test_every_pair_of_powers_of_two(function, step, compared):
    """Compute in integers: most results are below the range of float32."""
    items = all_items(E8M0)
    first, second = np.repeat(items, items.size), np.tile(items, items.size)
    found, flags = ufuncs.binary(function, E8M0, first, second)
    for i in range(0, first.size, step):
        x, y = int(first[i]), int(second[i])
        want = operations.binary(function, E8M0, x, y)
        assert (found[i], flags[i]) == want, (hex(x), hex(y))
        if function == "multiply" and 255 not in (x, y):
            power = x + y - 127
            code = (0, codec.UNDER) if power < 0 else (power, 0)
            assert want == (code if power < 255 else (255, codec.INVALID))
        compared(1)


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
        assert (items[i], flags[i]) == codec.encode(f, exact), number
    compared(x.size)


@pytest.mark.parametrize("count", [80, pytest.param(400, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("f", [*ALL, FLOAT16], ids=name)
def test_array_ufuncs_are_the_scalar_ones(f, count, compared):
    rng = np.random.default_rng(2)
    one = all_items(f)
    if one.size > count:
        one = rng.choice(one, min(150, count // 2), replace=False)
    for function in operations.UNARY:
        items, flags = ufuncs.unary(function, f, one)
        for i, item in enumerate(one):
            want = operations.unary(function, f, int(item))
            assert (items[i], flags[i]) == want, (function, hex(item))
    pairs = random_items(f, rng, (2, count))
    for function in operations.BINARY:
        items, flags = ufuncs.binary(function, f, *pairs)
        for i, (x, y) in enumerate(pairs.T):
            want = operations.binary(function, f, int(x), int(y))
            assert (items[i], flags[i]) == want, (function, hex(x), hex(y))
    compared(one.size * len(operations.UNARY) + count * len(operations.BINARY))


@pytest.mark.parametrize(
    "count", [120, pytest.param(400, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("function", sorted(operations.UNARY))
def test_float64_is_close_enough(function, count, compared):
    """Check the error bound that `ufuncs` relies on, with samples of mpmath."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(3)
    items = random_items(FORMATS["tf32"], rng, count)
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


# -- products --------------------------------------------------------------------

SPECIAL_ITEMS = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x807FFFFF]
SPECIAL_ITEMS += [0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x33800000]


def float32_items(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return any bits, numbers of ordinary size, and special cases of arithmetic."""
    any_bits = rng.integers(0, 1 << 32, shape, dtype=np.uint32)
    ordinary = rng.standard_normal(shape).astype(np.float32).view(np.uint32)
    special = rng.choice(np.array(SPECIAL_ITEMS, np.uint32), shape)
    return np.choose(rng.integers(0, 3, shape), [any_bits, ordinary, special])


def as_item(x: codec.Exact) -> int:
    return codec.encode(FLOAT32, x)[0]


@pytest.mark.parametrize(
    "count", [1500, pytest.param(4000, marks=pytest.mark.exhaustive)]
)
def test_fma_rounds_the_exact_number_once(count, compared):
    items = float32_items(np.random.default_rng(6), (count, 3))
    for x, y, z in matmul.decoded(items.tolist()):
        got = as_item(matmul.fma(x, y, z))
        exact, _ = arithmetic.add(arithmetic.multiply(x, y)[0], z)
        assert got == as_item(exact)
        if not (x.special or y.special or z.special):
            p, q, r = map(codec.to_fraction, (x, y, z))
            if p * q + r:  # Fractions have only one zero
                assert got == as_item(codec.from_fraction(p * q + r))
    compared(len(items))


def test_sums_and_products_are_the_machine_s(compared):
    items = float32_items(np.random.default_rng(7), (4000, 2))
    x, y = items.T.copy().view(np.float32)
    with np.errstate(all="ignore"):
        wanted = [(x + y, matmul.plus), (x * y, matmul.times)]
    for want, function in wanted:
        pairs = matmul.decoded(items.tolist())
        got = np.array([as_item(function(*pair)) for pair in pairs], np.uint32)
        number = ~np.isnan(want)
        np.testing.assert_array_equal(got[number], want.view(np.uint32)[number])
        assert np.all(got[~number] == FLOAT32.nan)
        compared(got.size)


@pytest.mark.parametrize(
    ("x", "y", "z", "result"),
    [
        (0x46C2C200, 0x44284000, 0x2B800000, 0x4B800001),  # 24929 * 673 + 2**-40
        (0x46C2C200, 0x44284000, 0xAB800000, 0x4B800000),
        (0x46C2C200, 0x44284000, 0, 0x4B800000),  # a tie, to even
        (0x7F000000, 0x40000000, 0xFF7FFFFF, 0x73800000),  # 2**128 less the largest
        (0x7F000000, 0x40000000, 0, 0x7F800000),
        (1, 0x80000001, 0, 0x80000000),  # a zero with the product's sign
        (0, 0x80000000, 0, 0),
        (0, 0x80000000, 0x80000000, 0x80000000),
        (0x3F800000, 0xBF800000, 0x3F800000, 0),
        (0x7F800000, 0, 0x3F800000, 0x7FC00000),
        (0x7F000000, 0x7F000000, 0xFF800000, 0xFF800000),  # no Inf in between
    ],
)
def test_fma_spot(x, y, z, result):
    ((x, y, z),) = matmul.decoded([[x, y, z]])
    assert as_item(matmul.fma(x, y, z)) == result


@pytest.mark.parametrize("precision", ["f32", "tf32", "bf16", "f16"])
@pytest.mark.parametrize("k", [0, 1, 256, 257, 600])
def test_chains_are_those_of_whole_arrays(precision, k, compared):
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((3, k)), rng.standard_normal((k, 4))
    a, b = a.astype(np.float32), (b * 2.0**-130).astype(np.float32)
    got = matmul.product(
        a.view(np.uint32).tolist(), b.T.copy().view(np.uint32).tolist(), precision
    )
    f = matmul.PRECISIONS[precision].format
    want = oracle.product_float32(*(oracle.round_to(f.name, x) for x in (a, b)))
    np.testing.assert_array_equal(got, want.view(np.uint32))
    compared(want.size)


@pytest.mark.parametrize(("name", "parts"), [("bfloat16", 3), ("tf32", 2)])
def test_parts_recompose_and_are_exact(name, parts, compared):
    """Split every number into three bfloat16 components; the remainder is a float32."""
    f = FORMATS[name]
    step = Fraction(1, 1 << (f.mantissa_bits + 1))
    rng = np.random.default_rng(8)
    top = rng.integers(0x7F7F0000, 0x7F800000, 1000)
    items = [0x7F7FFFFF, 0x7F7F8000, 1, 0x7FFFFF, 0x800000, *top.tolist()]
    items += rng.integers(0, 0x1000000, 500).tolist()
    items += rng.integers(0, 0x7F800000, 500).tolist()
    for x in matmul.decoded([items])[0]:
        rest = codec.to_fraction(x)
        for part in map(codec.to_fraction, matmul.split(f, x, parts)):
            rest = (rest - part) / step
            item, flags = codec.encode(FLOAT32, codec.from_fraction(rest))
            assert not flags
            assert codec.to_fraction(codec.decode(FLOAT32, item)) == rest
        if name == "bfloat16":
            assert rest == 0
    compared(len(items))


@pytest.mark.parametrize(
    ("name", "item", "parts"),
    [
        ("bfloat16", 0x3F808000, [0x3F800000, 0x3F800000, 0]),  # the tie, to even
        ("bfloat16", 0x3F818000, [0x3F820000, 0xBF800000, 0]),
        ("bfloat16", 0x80000000, [0x80000000, 0, 0]),
        ("bfloat16", 0x80000001, [0x80000000, 0x80000000, 0x80010000]),
        ("bfloat16", 0x7F7FFFFF, [0x7F7F0000, 0x7F7F0000, 0x7F7F0000]),
        ("bfloat16", 0xFF800000, [0xFF7F0000, 0xFF7F0000, 0xFF7F0000]),
        ("bfloat16", 0x7F800001, [0x7FC00000, 0x7FC00000, 0x7FC00000]),
        ("tf32", 0x3F800001, [0x3F800000, 0x39800000]),
        ("tf32", 0x7F7FFFFF, [0x7F7FE000, 0x7F7FE000]),
    ],
)
def test_split_spot(name, item, parts):
    ((x,),) = matmul.decoded([[item]])
    split = matmul.split(FORMATS[name], x, len(parts))
    assert [as_item(part) for part in split] == parts


def test_split_orders():
    def listed(precision: str) -> str:
        found = matmul.split_orders(matmul.PRECISIONS[precision])
        return " | ".join(", ".join(f"a{i}b{j}" for i, j in order) for order in found)

    x3 = "a0b1, a1b0 | a0b0"
    assert listed("bf16x3") == listed("tf32x3") == x3
    assert listed("bf16x6") == "a0b2, a1b1, a2b0 | " + x3
    assert listed("bf16x9") == "a2b2 | a1b2, a2b1 | a0b2, a1b1, a2b0 | " + x3


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [
        ([448, -1], 1),
        ([-896, np.inf, np.nan], 2),
        ([0, -0.0], 1),
        ([np.inf, np.nan], 1),
        ([], 1),
        ([1], np.float32(1 / 448)),
        ([2.0**-118], 2.0**-126),  # 2**-118 / 448 is 2**-126.8
        ([2.0**-110], np.float32(2.0**-110 / 448)),
    ],
)
def test_scales_of_fp8(numbers, scale):
    items = np.array(numbers, np.float32).view(np.uint32).tolist()
    (line,) = matmul.decoded([items])
    found = matmul.scale_of(FORMATS["float8_e4m3fn"], line)
    assert codec.to_float(found) == scale


@pytest.mark.parametrize(
    ("a", "b", "raised"),
    [
        ([2.0**127], [2], codec.OVER),
        ([np.inf], [2], 0),
        ([np.inf], [0], codec.INVALID),
        ([np.nan, np.inf], [1, 0], 0),
        ([2.0**-149], [2.0**-149], 0),
    ],
)
def test_flags_of_products(a, b, raised):
    x, y = ([np.array(v, np.float32).view(np.uint32).tolist()] for v in (a, b))
    assert matmul.flags(x, y, matmul.product(x, y, "f32")) == raised


# -- NumPy's float16 -----------------------------------------------------------

HALVES = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 65504, -65504, 6e-8, -6e-8]
HALVES += [7e-5, -7e-5, np.inf, -np.inf, np.nan, 1000, 0.1, -1000, 10]


def flags_of(function, *operands):
    """Return the result and the flags of one element, repeated for vector loops."""
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
    """Compare special cases and flags; NumPy's own rounding errs only elsewhere."""
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
            # From one zero to the other, NumPy 2.4 keeps the sign, NumPy 2.5 does not.
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

#: ml_dtypes has no tf32. Its NaN and overflow rules of FP6 and FP4 are its own.
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
