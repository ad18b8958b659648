"""Scalars and casts of arbitrary numbers and strings against the reference."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import codec, operations
from tests.reference.codec_arrays import item_type
from tests.reference.formats import Format
from tests.support.bits import ALL, WIDE, array, dtype, items_of

hypothesis = pytest.importorskip("hypothesis")
given, assume, st = hypothesis.given, hypothesis.assume, hypothesis.strategies

FORMATS = st.sampled_from(ALL)
#: Numbers of every magnitude, and numbers near those of the formats.
NUMBERS = st.one_of(
    st.floats(allow_nan=False),
    st.floats(-500, 500),
    st.builds(math.ldexp, st.integers(-(2**12), 2**12), st.integers(-150, 130)),
)
PLAIN = "".join(map(chr, range(128)))


def scalar(f: Format, code: int) -> np.generic:
    return array(f, np.array([code % f.count << f.shift], item_type(f)))[0]


def item(f: Format, value: np.generic) -> int:
    return int(items_of(f, value))


def silently(function, *arguments):
    with np.errstate(all="ignore"):
        return function(*arguments)


@given(FORMATS, NUMBERS)
def test_from_float(f, x):
    want, _ = codec.encode(f, codec.from_float(x))
    assert item(f, silently(dtype(f).type, x)) == want
    assert item(f, silently(np.array, x, dtype(f))) == want
    assert item(f, silently(np.asarray(x).astype, dtype(f))) == want


@given(FORMATS, st.integers(-(2**140), 2**140) | st.integers(-5000, 5000))
def test_from_int(f, x):
    want, _ = codec.encode(f, codec.from_int(x))
    assert item(f, silently(dtype(f).type, x)) == want
    assert item(f, silently(lambda: np.array([x], dtype(f))[0])) == want


@given(FORMATS, st.fractions() | st.builds(Fraction, NUMBERS.filter(math.isfinite)))
def test_from_fraction(f, x):
    want, _ = codec.encode(f, codec.from_fraction(x))
    assert item(f, silently(dtype(f).type, x)) == want


@given(FORMATS, st.decimals(allow_nan=False, allow_infinity=False, places=30))
def test_from_decimal_and_text(f, x):
    assume(x != 0)
    want, _ = codec.encode(f, codec.from_fraction(Fraction(x)))
    assert item(f, silently(dtype(f).type, x)) == want
    assert item(f, silently(dtype(f).type, str(x))) == want
    assert item(f, silently(lambda: np.array([str(x)]).astype(dtype(f))[0])) == want


@given(FORMATS, st.text(PLAIN, max_size=12))
def test_text_is_read_as_python_reads_it(f, text):
    try:
        number = float(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            dtype(f).type(text)
        return
    if math.isfinite(number) and number != 0 and "_" not in text:
        exact = codec.from_fraction(Fraction(Decimal(text.strip())))
    else:
        exact = codec.from_float(number)
        if number != number and text.strip().startswith("-"):
            exact = exact._replace(negative=True)
    found = item(f, silently(dtype(f).type, text))
    assert found == codec.encode(f, exact)[0]


@given(FORMATS, st.integers(0, 2**19 - 1))
def test_scalar_is_its_value(f, code):
    x = scalar(f, code)
    exact = codec.decode(f, code % f.count << f.shift)
    value = codec.to_float(exact)
    if exact.special == "nan":
        assert math.isnan(float(x))
        assert x != x
        with pytest.raises(ValueError, match="NaN"):
            int(x)
        return
    assert float(x) == value
    assert math.copysign(1, float(x)) == math.copysign(1, value)
    assert x == value
    assert hash(x) == hash(value)
    assert bool(x) == bool(value)
    if exact.special:
        with pytest.raises(OverflowError):
            int(x)
        return
    assert int(x) == int(value)
    assert math.floor(x) == math.floor(value)
    assert math.ceil(x) == math.ceil(value)
    assert math.trunc(x) == math.trunc(value)
    assert round(x) == round(value)
    assert f"{x:.3f}" == f"{value:.3f}"
    assert f"{x:e}" == f"{value:e}"


@given(st.sampled_from(WIDE), st.integers(0, 2**19 - 1))
def test_text_of_wide_formats_is_the_shortest_decimal(f, code):
    x = scalar(f, code)
    wanted = code % f.count << f.shift
    exact = codec.decode(f, wanted)
    assume(not exact.special and exact.integer)
    text = str(x)
    digits, _, _ = text.lower().partition("e")
    used = len(digits.replace(".", "").lstrip("-0").rstrip("0"))
    back = codec.from_fraction(Fraction(text))
    assert codec.encode(f, back)[0] == wanted
    value = codec.to_float(exact)
    for fewer in range(1, used):
        shorter = Fraction(f"{value:.{fewer - 1}e}")
        assert codec.encode(f, codec.from_fraction(shorter))[0] != wanted


@given(FORMATS, st.integers(0, 2**19 - 1), st.integers(0, 2**19 - 1))
def test_scalar_arithmetic(f, first, second):
    x, y = scalar(f, first), scalar(f, second)
    codes = first % f.count << f.shift, second % f.count << f.shift
    for function, operator in (
        ("add", lambda a, b: a + b),
        ("subtract", lambda a, b: a - b),
        ("multiply", lambda a, b: a * b),
        ("divide", lambda a, b: a / b),
        ("floor_divide", lambda a, b: a // b),
        ("remainder", lambda a, b: a % b),
        ("power", lambda a, b: a**b),
    ):
        want, _ = operations.binary(function, f, *codes)
        assert item(f, silently(operator, x, y)) == want, function
    a, b = (codec.to_float(codec.decode(f, code)) for code in codes)
    assert (x < y, x <= y, x == y, x != y) == (a < b, a <= b, a == b, a != b)


@given(FORMATS, st.integers(0, 2**19 - 1), NUMBERS)
def test_python_numbers_are_weak(f, code, number):
    """Round an operand that is a Python float to the format first."""
    x = scalar(f, code)
    near, _ = codec.encode(f, codec.from_float(number))
    want, _ = operations.binary("multiply", f, code % f.count << f.shift, near)
    assert item(f, silently(lambda: x * number)) == want
    assert item(f, silently(lambda: (np.array([x]) * number)[0])) == want


@given(
    FORMATS,
    st.lists(NUMBERS, min_size=1, max_size=40),
    st.sampled_from(codec.ROUNDINGS),
)
def test_quantize(f, numbers, rounding):
    rng = np.random.default_rng(1) if rounding == "stochastic" else None
    draws = np.random.default_rng(1).integers(
        0, 1 << 64, size=len(numbers), dtype=np.uint64
    )
    want = [
        codec.encode(f, codec.from_float(x), rounding, "ieee", draw)[0]
        for x, draw in zip(numbers, draws.tolist(), strict=True)
    ]
    found = silently(
        lambda: td.quantize(np.array(numbers), dtype(f), rounding=rounding, rng=rng)
    )
    assert items_of(f, found).tolist() == want
