"""Casts from and to every builtin type: one rounding, and NumPy's conventions."""

import warnings
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tests.reference import codec
from tests.reference.codec_arrays import (
    all_items,
    encode,
    item_type,
    midpoints,
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
    raised,
)
from tests.support.near_ties import (
    beside_midpoints,
    both_signs,
    integers_beside_midpoints,
)
from tf32dtype import quantize

SMALL_INTEGERS = (np.int8, np.uint8, np.int16, np.uint16)
LARGE_INTEGERS = (np.intc, np.uintc, np.int64, np.uint64, np.longlong, np.ulonglong)
INTEGERS = (*SMALL_INTEGERS, *LARGE_INTEGERS)
STRINGS = {
    "U": lambda texts: np.array(texts),
    "S": lambda texts: np.array(texts).astype("S"),
    "StringDType": lambda texts: np.array(texts, np.dtypes.StringDType()),
    "object": lambda texts: np.array(texts, object),
}


def cast(f: Format, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return items_of(f, x.astype(dtype(f)))


def few(f: Format, count: int) -> np.ndarray:
    """Return all codes of a small format, some codes of a large one."""
    items = all_items(f)
    if items.size <= count:
        return items
    rng = np.random.default_rng(16)
    return np.concatenate([random_items(f, rng, count), items[:3], items[-3:]])


# -- to our formats ------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wide", [np.float64, np.float32, np.longdouble])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_floats_near_ties(f, wide, compared):
    """Cast float64 and longdouble next to a midpoint, where two roundings go wrong."""
    number, want = both_signs(f, *beside_midpoints(f, wide))
    found = cast(f, number)
    assert_items(f, found, want, f"{wide.__name__} ->", number)
    # The strided loop must give the same items.
    assert_items(f, cast(f, number[::-5]), want[::-5], "strided", number[::-5])
    compared(number.size)


@pytest.mark.parametrize("wide", [np.float64, np.float32, np.longdouble])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_any_floats(f, wide, compared):
    rng = np.random.default_rng(17)
    x = np.ldexp(rng.standard_normal(40_000), rng.integers(-145, 130, 40_000))
    x = np.concatenate([x, rng.standard_normal(40_000)])
    if wide is np.float64:
        raw = rng.integers(0, 1 << 64, 40_000, dtype=np.uint64).view(np.float64)
        x = np.concatenate([x, raw[~np.isnan(raw)]])
    x = np.concatenate([x, [0.0, -0.0, np.inf, -np.inf, 5e-324, -1.7e308]])
    with np.errstate(all="ignore"):
        x = x.astype(wide)
    assert_items(f, cast(f, x), encode(f, x.astype(np.float64))[0], "any float", x)
    compared(x.size)


@pytest.mark.parametrize("wide", [np.float64, np.float32])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_unusual_floats_at_any_position(f, wide, compared):
    """Give each kind of result and its flags in every lane, among ordinary numbers."""
    count = 2 * 64 + 13  # vectors of bytes and a rest
    numbers = values(f, all_items(f))
    numbers = np.abs(numbers[np.isfinite(numbers)])
    largest, least = numbers.max(), numbers[numbers > 0].min()
    finite = [0.0, largest, 1.5 * largest, least, least / 4, least / 2**20]
    unusual = np.array([np.nan, np.inf, *finite])
    unusual = np.concatenate([unusual, -unusual])
    with np.errstate(all="ignore"):
        unusual = unusual.astype(wide)
    x = np.ones((unusual.size, count), wide)
    for i in range(count):
        x[:, i] = unusual
        want, flags = encode(f, x.astype(np.float64).ravel())
        flags = np.bitwise_or.reduce(flags.reshape(x.shape), 1)
        if f.negative_zero:  # casts keep the sign of NaN
            negative = np.isnan(x).ravel() & np.signbit(x).ravel()
            want[negative] |= item_type(f).type(f.sign_bit << f.shift)
        for row, items in enumerate(want.reshape(x.shape)):
            found, seen = raised(x[row].astype, dtype(f))
            assert_items(f, items_of(f, found), items, "unusual", x[row])
            assert seen == flags[row], x[row]
        x[:, i] = 1
    compared(x.size * count)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_every_float16(f, compared):
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    number = half.astype(np.float64)
    want, _ = encode(f, number)
    nan = np.isnan(number)
    if f.nan is None or f.negative_zero:  # `encode` drops a NaN's sign
        want[nan & np.signbit(number)] |= f.sign_bit << f.shift
    assert_items(f, cast(f, half), want, "float16 ->", half)
    compared(half.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_nan_keeps_its_sign_alone(f, compared):
    for unsigned, wide, quiet in (
        (np.uint64, np.float64, 0x7FF8 << 48),
        (np.uint32, np.float32, 0x7FC0 << 16),
        (np.uint16, np.float16, 0x7E00),
    ):
        infinity = int(np.array(np.inf, wide).view(unsigned))
        payloads = [quiet, quiet | 1, infinity | 1, infinity | 3, quiet | 0x155]
        codes = np.array(payloads, unsigned)
        sign = np.array(1 << (8 * codes.itemsize - 1), unsigned)
        for bits, negative in ((codes, False), (codes | sign, True)):
            nan = codec.NAN._replace(negative=negative)
            want = np.full(bits.size, codec.encode(f, nan)[0], item_type(f))
            if f.nan == f.sign_bit and f.signed:
                want[:] = f.nan
            assert_items(f, cast(f, bits.view(wide)), want, "NaN", bits)
            compared(bits.size)


def any_integers(integer: type[np.integer], count: int) -> list[int]:
    """Return integers of every length, and the limits of the type."""
    limits = np.iinfo(integer)
    rng = np.random.default_rng(18)
    numbers = [limits.min, limits.max, 0, 1, limits.max - 1]
    bits = rng.integers(0, limits.bits, count)
    anything = rng.integers(0, 1 << 64, count, dtype=np.uint64)
    numbers += [
        int(v) % (limits.max + 1) >> int(b) for v, b in zip(anything, bits, strict=True)
    ]
    if limits.min:
        numbers += [-v for v in numbers[2:]]
    return numbers


@pytest.mark.parametrize(
    "count", [300, pytest.param(3000, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("f", ALL, ids=name)
def test_integers(f, count, compared):
    known: dict[int, int] = {}
    for integer in INTEGERS:
        limits = np.iinfo(integer)
        if integer in SMALL_INTEGERS:
            x = np.arange(limits.min, limits.max + 1).astype(integer)
            want, _ = encode(f, x.astype(np.float64))
        else:
            numbers, want = integers_beside_midpoints(f, integer)
            more = any_integers(integer, count)
            for v in more:
                if v not in known:  # types of one size have equal integers
                    known[v] = codec.encode(f, codec.from_int(v))[0]
            codes = np.array([known[v] for v in more], want.dtype)
            x = np.concatenate([numbers, np.array(more, integer)])
            want = np.concatenate([want, codes])
        assert x.dtype == integer
        assert_items(f, cast(f, x), want, f"{integer.__name__} ->", x)
        assert_items(f, cast(f, x[::-3]), want[::-3], f"{integer.__name__}s", x[::-3])
        compared(x.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_from_bool(f, compared):
    want, _ = encode(f, np.array([0.0, 1.0]))
    assert_items(f, cast(f, np.array([False, True])), want, "bool ->")
    compared(2)


@pytest.mark.parametrize("wide", [np.complex64, np.complex128, np.clongdouble])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_complex_warns_and_takes_the_real_part(f, wide, compared):
    number, want = both_signs(f, *beside_midpoints(f, wide(0).real.__class__))
    number, want = number[::7], want[::7]
    z = np.zeros(number.size, wide)
    z.real, z.imag = number, 3.0
    with pytest.warns(np.exceptions.ComplexWarning):
        found = cast(f, z)
    assert_items(f, found, want, f"{wide.__name__} ->", number)
    compared(number.size)


# -- from our formats ----------------------------------------------------------


@pytest.mark.parametrize("f", ALL, ids=name)
def test_to_integers(f, compared):
    """Truncate; out of range, Inf and NaN give the minimum, or 0 if unsigned."""
    items = all_items(f)
    whole = np.trunc(values(f, items))
    for integer in INTEGERS:
        limits = np.iinfo(integer)
        above = 2.0 ** int(limits.max).bit_length()
        fits = (whole >= float(limits.min)) & (whole < above)
        want = np.full(items.size, limits.min, integer)
        want[fits] = whole[fits].astype(integer)
        with np.errstate(all="ignore"):
            found = array(f, items).astype(integer)
            turned = array(f, items)[::-3].astype(integer)
        assert_equal(found, want, f"-> {integer.__name__}")
        assert_equal(turned, want[::-3], f"-> {integer.__name__}, strided")
        compared(items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_to_bool(f, compared):
    items = all_items(f)
    found = array(f, items).astype(bool)
    assert_equal(found, values(f, items) != 0, "-> bool")
    compared(items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_to_complex_and_float16(f, compared):
    items = all_items(f)
    number = values(f, items)
    for wide in (np.complex64, np.complex128, np.clongdouble):
        found = array(f, items).astype(wide)
        assert found.dtype == wide
        np.testing.assert_array_equal(found.real, number)
        assert (found.imag == 0).all()
    with np.errstate(all="ignore"):
        half = array(f, items).astype(np.float16)
        np.testing.assert_array_equal(half, number.astype(np.float16))
    compared(4 * items.size)


# -- strings and objects -------------------------------------------------------


@cache
def decimals(f: Format) -> tuple[list[str], list[int]]:
    """Return strings of midpoints and of neighbors 1e-60 away, with their items."""
    _, middle = midpoints(f)
    rng = np.random.default_rng(19)
    chosen = rng.choice(middle, min(150, middle.size), replace=False)
    texts, items = [], []
    with localcontext() as context:
        context.prec = 400
        for number in (*chosen, middle[-1], middle[0]):
            exact = Decimal(float(number))
            hair = exact.scaleb(-60)
            for value in (exact - hair, exact, exact + hair):
                for signed in (value, -value):
                    texts.append(str(signed))
                    exactly = codec.from_fraction(Fraction(signed))
                    items.append(codec.encode(f, exactly)[0])
    for text, value in (
        ("nan", codec.NAN),
        ("inf", codec.infinity()),
        ("-inf", codec.infinity(True)),
        (" 1.5 ", codec.from_float(1.5)),
        ("1e999", codec.from_int(10**999)),
        ("-1e-999", codec.from_fraction(Fraction(-1, 10**999))),
        ("0", codec.zero()),
        ("-0.0", codec.zero(True)),
    ):
        texts.append(text)
        items.append(codec.encode(f, value)[0])
    return texts, items


@pytest.mark.parametrize("kind", STRINGS)
@pytest.mark.parametrize("f", ALL, ids=name)
def test_from_text(f, kind, compared):
    texts, items = decimals(f)
    x = STRINGS[kind](texts)
    found = cast(f, x)
    assert_items(f, found, np.array(items, item_type(f)), f"{kind} ->", x)
    compared(len(texts))


@pytest.mark.parametrize("f", ALL, ids=name)
def test_no_number(f):
    for make in STRINGS.values():
        x = make(["1.5", "one"])
        with pytest.raises(ValueError, match="one"):
            x.astype(dtype(f))


@pytest.mark.parametrize(
    "count", [500, pytest.param(3000, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("f", ALL, ids=name)
def test_to_text_and_back(f, count, compared):
    """Cast to strings: decimals that round to the code they came from."""
    items = few(f, count)
    a = array(f, items)
    exact = [codec.decode_code(f, int(item) >> f.shift) for item in items]
    known: set[tuple[str, int]] = set()
    for target in ("U", "S", np.dtypes.StringDType()):
        texts = a.astype(target).astype(object)
        for text, value, item in zip(texts, exact, items.tolist(), strict=True):
            text = text.decode() if isinstance(text, bytes) else text
            if (text, item) in known:
                continue
            known.add((text, item))
            if value.special == "nan":
                assert text.lstrip("-") == "nan"
                continue
            if value.special == "inf":
                assert text == ("-inf" if value.negative else "inf")
                continue
            number = Fraction(text)
            sign = text.startswith("-")
            back = codec.from_fraction(number)._replace(negative=sign)
            assert codec.encode(f, back)[0] == item, text
        compared(items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_objects(f, compared):
    _, middle = midpoints(f)
    rng = np.random.default_rng(20)
    objects: list[object] = []
    exact: list[codec.Exact] = []
    for number in rng.choice(middle, min(200, middle.size), replace=False):
        tie = Fraction(float(number))
        for value in (tie, tie * (1 - Fraction(1, 10**40)), -tie):
            objects.append(value)
            exact.append(codec.from_fraction(value))
        objects.append(float(number))
        exact.append(codec.from_float(float(number)))
        objects.append(Decimal(float(number)))
        exact.append(codec.from_fraction(tie))
    for integer in (0, 1, -1, 2**53 + 1, 10**60, -(10**60), 2**24 + 1):
        objects.append(integer)
        exact.append(codec.from_int(integer))
    for other in (
        True,
        np.float32(1.25),
        np.int16(-7),
        np.float16(0.1),
        np.uint64(2**63),
    ):
        objects.append(other)
        exact.append(codec.from_float(float(other)))
    x = np.empty(len(objects), object)
    x[:] = objects
    want = [codec.encode(f, value)[0] for value in exact]
    assert_items(f, cast(f, x), np.array(want, item_type(f)), "object ->", x)
    back = array(f, np.array(want, item_type(f))).astype(object)
    assert all(type(number) is float for number in back)  # as items of float16
    compared(x.size)


def test_discarding_nothing_does_not_warn():
    """Cast a real array to complex, and its real component back, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in ALL:
            one = np.ones(3).astype(dtype(f))
            assert (one.astype(complex).real.astype(dtype(f)) == one).all()


#: Results larger than this many bytes are written past the caches.
STREAMED = 1 << 24
PART = np.random.default_rng(3).standard_normal(4099, np.float32)


@pytest.fixture(scope="module")
def large() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return PART repeated, and memory for two results of this size."""
    count = STREAMED + 1029 + 3
    return np.resize(PART, count), np.empty(count, np.float32), np.empty(count, "u4")


def assert_repeats(found: np.ndarray, part: np.ndarray) -> None:
    rows = found.size // part.size
    whole = found[: rows * part.size].reshape(rows, part.size)
    assert (whole == part).all()
    assert (found[whole.size :] == part[: found.size - whole.size]).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_what_no_cache_holds(f, offset, compared, large):
    """Read large arrays ahead, and write them past the caches."""
    count = STREAMED // dtype(f).itemsize + 1029
    part = np.roll(PART, -offset)
    source, wide = (x[offset:][:count] for x in large[:2])
    with np.errstate(all="ignore"):
        rounded = part.astype(dtype(f))
        out = large[2].view(dtype(f))[offset:][:count]
        np.copyto(out, source, casting="unsafe")
        assert_repeats(out.view(item_type(f)), items_of(f, rounded))
        np.copyto(wide, out)
        assert_repeats(wide.view("u4"), rounded.astype(np.float32).view("u4"))
        want = np.sqrt(rounded)
        np.sqrt(out, out=out)
        assert_repeats(out.view(item_type(f)), items_of(f, want))
    compared(3 * count)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_times(f, compared):
    """Cast to counts of a time unit, which are stored as int64, like float16."""
    items = few(f, 2000)
    numbers = array(f, items)
    for unit in ("m8[s]", ">m8[ms]", "M8[D]", ">M8[ns]", "m8"):
        wide = np.dtype(np.int64).newbyteorder(unit[0] if unit[0] == ">" else "=")
        with np.errstate(all="ignore"):
            times = numbers.astype(unit)
            assert times.dtype == np.dtype(unit)
            assert np.array_equal(times.view(wide), numbers.astype(np.int64)), unit
            back = times.astype(dtype(f))
            want = numbers.astype(np.int64).astype(dtype(f))
        assert np.array_equal(items_of(f, back), items_of(f, want)), unit
        assert not np.can_cast(numbers.dtype, unit, "same_kind")
        with pytest.raises(TypeError):
            np.promote_types(numbers.dtype, unit)
        compared(2 * items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_to_void(f, compared):
    """Copy the item's bytes, truncated or padded with zeros."""
    items = few(f, 2000)
    numbers, raw = array(f, items), items.tobytes()
    size = numbers.dtype.itemsize
    assert numbers.astype("V").tobytes() == raw
    for width in (1, 3, 8):
        found = numbers.astype(f"V{width}").tobytes()
        for i in range(items.size):
            item = raw[i * size : (i + 1) * size][:width].ljust(width, b"\0")
            assert found[i * width : (i + 1) * width] == item
    compared(items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_times_and_numbers(f):
    """Compute with times as NumPy's floats do, through float64."""
    times = np.array([10, 20, "NaT", -7, 2**53, 0], "m8[s]")
    numbers = np.array([0.5, 2, 1, 4, 2, 1], dtype(f))
    if f.nan is not None:
        numbers[3] = np.nan
    wide = numbers.astype(np.float64)
    for operation in (np.multiply, np.divide, np.floor_divide):
        want = operation(times, wide)
        assert want.dtype == times.dtype
        for given in (times, times.astype(">m8[s]"), np.repeat(times, 2)[::2]):
            found = operation(given, numbers)
            assert found.dtype == want.dtype
            assert found.tobytes() == want.tobytes()
    assert (numbers * times).tobytes() == (wide * times).tobytes()
    assert (times * numbers[1]).tobytes() == (times * 2).tobytes()
    product = times.copy()
    product *= numbers
    assert product.tobytes() == (times * wide).tobytes()
    with pytest.raises(TypeError):
        numbers / times


@pytest.mark.parametrize("f", ALL, ids=name)
def test_far_below_every_format(f, compared):
    """Cast strings, Decimals and Fractions that float32 or float64 rounds to zero."""
    texts = ["1e-40", "1e-46", "-1e-46", "1e-60", "5e-324", "-5e-324", "1e-400", "0"]
    exact = [codec.from_fraction(Fraction(text)) for text in texts]
    want = np.array([codec.encode(f, x)[0] for x in exact], item_type(f))
    sources = [make(texts) for make in STRINGS.values()]
    sources += [
        np.array([kind(t) for t in texts], object) for kind in (Decimal, Fraction)
    ]
    for x in sources:
        assert_items(f, cast(f, x), want, str(x.dtype), np.array(texts))
        compared(len(texts))
    for wide in (np.float64, np.longdouble):
        x = np.array([wide(text) for text in texts])
        held = [i for i, text in enumerate(texts) if x[i] != 0 or text == "0"]
        assert_items(f, cast(f, x)[held], want[held], wide.__name__, x[held])
        for rounding in codec.ROUNDINGS[:-1]:
            with np.errstate(all="ignore"):
                found = items_of(f, quantize(x, dtype(f), rounding=rounding))
            numbers = [codec.from_fraction(Fraction(*v.as_integer_ratio())) for v in x]
            codes = [codec.encode(f, number, rounding)[0] for number in numbers]
            assert_items(f, found, np.array(codes, item_type(f)), rounding, x)
            compared(x.size)
