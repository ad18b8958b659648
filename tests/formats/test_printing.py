"""Numbers and arrays as strings: correct digits, in NumPy's layouts of float32."""

from __future__ import annotations

import io
import math
import sys
import warnings
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_UP, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy._core import arrayprint

import tf32dtype as td
from tests.reference import codec
from tests.reference.codec_arrays import all_items, item_type
from tests.reference.formats import Format
from tests.support.bits import ALL, BYTES, WIDE, array, dtype, name
from tf32dtype.interop import printing

hypothesis = pytest.importorskip("hypothesis")
given, settings, st = hypothesis.given, hypothesis.settings, hypothesis.strategies

each = pytest.mark.parametrize("f", ALL, ids=name)
narrow = pytest.mark.parametrize("f", BYTES, ids=name)
wide = pytest.mark.parametrize("f", WIDE, ids=name)


def numbers(f: Format) -> np.ndarray[Any, Any]:
    """Return a number per code; of wide formats some, with their extremes."""
    step = 1 if f.count <= 256 else 331
    codes = {*range(0, f.count, step), 1, f.max_code, f.count - 1}
    items = np.array(sorted(codes), np.uint32) << f.shift
    return array(f, items.astype(item_type(f)))


def shortest(f: Format, value: Fraction) -> Decimal:
    """Return the decimal of fewest digits that reads back: the closest, or of equally
    close ones the one with an even last digit."""
    code, _ = codec.encode(f, codec.from_fraction(value))
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    for digits in range(1, 20):
        unit = Decimal(1).scaleb(exact.adjusted() + 1 - digits)
        for rounding in (ROUND_HALF_EVEN, ROUND_UP, ROUND_DOWN):
            decimal = exact.quantize(unit, rounding)
            if codec.encode(f, codec.from_fraction(Fraction(decimal)))[0] == code:
                return decimal
    raise AssertionError(value)


# -- scalars -----------------------------------------------------------------------


@each
def test_scalars(f: Format) -> None:
    """Print exact values in 8 bits and less, else the shortest decimals; in scientific
    notation where NumPy prints float32 so. All ways to print a number agree."""
    for x in numbers(f):
        value, text = float(x), str(x)
        assert repr(x) == f"tf32dtype.{f.name}({text})"
        assert f"{x}" == f"{np.array(x)}" == f"{x!s}" == text
        assert str([x]) == f"[{x!r}]"
        assert str(np.array(x)) == text
        if not math.isfinite(value) or value == 0:
            assert text == repr(value)
            continue
        small = 1e-4 <= abs(value) < 1e6
        assert ("e" in text) == (not small)
        assert small == ("e" not in str(np.float32(value)))
        if f.count > 256:
            assert Decimal(text) == shortest(f, Fraction(value)), value
            continue
        assert float(text) == value
        if len(Decimal(value).as_tuple().digits) <= 15:  # with more digits, as float64
            assert Decimal(text) == Decimal(value)
        assert Decimal(text) == Decimal(repr(value))


def test_what_scalars_print() -> None:
    assert [str(np.finfo(t).max) for t in (td.float8_e4m3fn, td.float6_e2m3fn)] == [
        "448.0",
        "7.5",
    ]
    assert str(td.float8_e5m2(2.0**-16)) == "1.52587890625e-05"
    assert str(td.float8_e4m3fn(2.0**-9)) == "0.001953125"
    assert str(td.float8_e8m0fnu(2.0**-127)) == "5.877471754111438e-39"
    assert str(td.float8_e8m0fnu(2.0**20)) == "1.048576e+06"
    assert str(td.bfloat16(0.1)) == "0.1"
    assert str(td.bfloat16(1e38)) == "1e+38"
    assert str(td.tf32(2e6)) == "2e+06"
    assert f"{td.tf32(1 / 3):.3f} {td.bfloat16(2.5):8.2e}" == "0.333 2.50e+00"
    assert f"{td.bfloat16(0.1):>5}{td.bfloat16(0.1):+}" == "  0.1+0.1"
    assert "%.2f" % td.float8_e4m3fn(448) == "448.00"  # noqa: UP031


@each
def test_repr_says_the_type(f: Format) -> None:
    x = dtype(f).type(1.0)
    assert repr(x) == f"tf32dtype.{f.name}(1.0)"
    back = eval(repr(x), {"tf32dtype": td})
    assert type(back) is type(x)
    assert back == x
    with np.printoptions(legacy="1.25"):
        assert repr(x) == str([x])[1:-1] == "1.0"
        assert repr(np.float16(1)) == "1.0"
    with np.printoptions(legacy="2.1"):
        assert repr(x) == f"tf32dtype.{f.name}(1.0)"


@each
def test_dtypes(f: Format) -> None:
    d = dtype(f)
    assert repr(d) == f"dtype({f.name})"
    assert str(d) == d.name == f.name
    plain = f.name.isalnum()
    shown = f.name if plain else f"'{f.name}'"  # as NumPy quotes names
    assert repr(np.ones(1, d)) == f"array([1.], dtype={shown})"
    fields = [("a", d), ("b", d, (2,))]
    assert repr(np.dtype(fields)) == f"dtype([('a', {f.name}), ('b', {f.name}, (2,))])"
    assert str(np.ones(1, fields)) == "[(1., [1., 1.])]"
    assert str(np.ones(1, fields)[0]) == "(1.0, [1.0, 1.0])"


# -- arrays ------------------------------------------------------------------------


def test_what_arrays_print() -> None:
    assert str(np.array([1, 2], td.float8_e4m3fn)) == "[1. 2.]"
    assert str(np.array([96, 448], td.float8_e4m3fn)) == "[ 96. 448.]"
    assert str(np.array([100, 448], td.bfloat16)) == "[100. 448.]"
    x = np.array([0.7, -1.5, 448], td.bfloat16)
    assert repr(x) == "array([  0.7,  -1.5, 448. ], dtype=bfloat16)"
    assert np.array2string(x, precision=0) == "[  1.  -2. 448.]"
    assert np.array2string(x, floatmode="fixed", precision=3) == (
        "[  0.699  -1.500 448.000]"
    )
    assert np.array2string(x, formatter={"float_kind": "<{}>".format}) == (
        "[<0.7> <-1.5> <448.0>]"
    )
    y = np.array([1e-6, 1], td.tf32)
    assert str(y) == "[1.e-06 1.e+00]"
    with np.printoptions(suppress=True, precision=3, sign="+"):
        assert str(y) == "[+0. +1.]"
    assert str(np.array(0.1, td.bfloat16)) == "0.1"
    assert repr(np.array(0.1, td.bfloat16)) == "array(0.1, dtype=bfloat16)"
    m = np.ma.array([0.5, 448], td.float8_e4m3fn, mask=[False, True])
    assert str(m) == "[0.5 --]"
    assert str(np.ma.array([0.5, 448], td.float8_e4m3fn)) == "[  0.5 448. ]"
    nan = np.array([np.nan, -np.inf, 1], td.bfloat16)
    assert str(nan) == "[ nan -inf   1.]"
    with np.printoptions(nanstr="?", infstr="oo"):
        assert str(nan) == "[  ? -oo  1.]"
    assert "..." in str(np.ones(2000, td.tf32))
    assert str(np.ones(0, td.tf32)) == "[]"


@narrow
def test_arrays_of_every_code(f: Format) -> None:
    """Print as float64 prints the same numbers, which are exact."""
    x = array(f, all_items(f))
    with np.printoptions(threshold=sys.maxsize):
        for mode in ("fixed", "unique", "maxprec", "maxprec_equal"):
            with np.printoptions(floatmode=mode):
                assert str(x) == str(x.astype(np.float64))


OPTIONS = st.fixed_dictionaries(
    {
        "precision": st.integers(0, 20),
        "floatmode": st.sampled_from(["fixed", "unique", "maxprec", "maxprec_equal"]),
        "suppress": st.booleans(),
        "sign": st.sampled_from("-+ "),
        "linewidth": st.sampled_from([20, 40, 75]),
        "threshold": st.sampled_from([10, 1000]),
        "edgeitems": st.integers(1, 3),
        "legacy": st.sampled_from([False, "1.21", "1.25", "2.1"]),
    }
)
SHAPES = st.sampled_from([(), (0,), (1,), (5,), (17,), (3, 4), (2, 3, 2), (20, 1)])


@settings(max_examples=100)
@given(st.sampled_from(ALL), SHAPES, OPTIONS, st.integers(0, 2**32))
def test_layouts_are_those_of_numpy(
    f: Format, shape: Any, options: Any, seed: int
) -> None:
    """Compare layouts of numbers with NumPy's digits: exact, or few digits."""
    rng = np.random.default_rng(seed)
    if f.powers:  # out of this range, only the digits are float64's
        x = array(f, rng.integers(127 - 19, 127 + 19, shape, np.uint8))
    elif f.count <= 256:
        x = array(f, rng.integers(0, f.count, shape, np.uint8))
    else:
        x = np.asarray(rng.integers(-99, 99, shape) / rng.choice([1, 2]))
        x = x.astype(dtype(f))
        if x.size and rng.integers(2):
            x[(0,) * x.ndim] = rng.choice([np.nan, np.inf, -np.inf])
    same = x.astype(np.float64 if f.count <= 256 else np.float32)
    with np.printoptions(**options):
        assert str(x) == str(same)
        lines = np.array2string(same, separator=", ", prefix="array(", suffix=")")
        if x.size:
            assert repr(x).startswith(f"array({lines},")


def test_print_options_of_wide_formats() -> None:
    """Truncate the digits of the number, rounded once, not of its shortest decimal."""
    x = np.array([0.1], td.bfloat16)  # 0.10009765625
    shown = {
        ("unique", 8): "[0.1]",
        ("maxprec", 8): "[0.1]",
        ("maxprec_equal", 8): "[0.1]",
        ("fixed", 8): "[0.10009766]",
        ("fixed", 13): "[0.1000976562500]",
    }
    for (mode, precision), text in shown.items():
        assert np.array2string(x, floatmode=mode, precision=precision) == text
    assert str(np.array([1 + 2**-10], td.tf32)) == "[1.001]"
    assert np.array2string(np.array([2.5], td.tf32), precision=0) == "[2.]"


@wide
def test_arrays_and_scalars_have_the_same_digits(f: Format) -> None:
    rng = np.random.default_rng(7)
    for scale in (1.0, 1e-3, 1e3, 1e-30, 1e30):
        x = (rng.uniform(0.01, 9, 40) * scale).astype(dtype(f))
        words, texts = str(x).strip("[]").split(), [str(v) for v in x]
        if "e" not in words[0]:
            assert [Decimal(w) for w in words] == [Decimal(t) for t in texts]
            continue
        # All numbers have equally many digits. Digits after the shortest are exact.
        length = max(len(Decimal(t).normalize().as_tuple().digits) for t in texts)
        for word, value in zip(words, x.tolist(), strict=True):
            assert len(Decimal(word).as_tuple().digits) == length
            if Decimal(word) != shortest(f, Fraction(value)):
                assert word == f"{value:.{length - 1}e}"


# -- strings that are read back ----------------------------------------------------


@each
def test_text_reads_back_as_the_same_codes(f: Format) -> None:
    x = numbers(f)
    x = x[np.isfinite(x)]
    bits = td.bits(x).tolist()

    def assert_same(y: Any) -> None:
        assert td.bits(np.asarray(y).astype(dtype(f))).tolist() == bits

    names = {"array": np.array} | {t.__name__: t for t in (td.formats[f.name].type,)}
    with np.printoptions(threshold=sys.maxsize):
        assert_same(eval(repr(x), names))
        assert_same(np.fromstring(str(x).strip("[]"), dtype(f), sep=" "))
    assert_same(x.astype(str))
    assert_same([str(v) for v in x])
    for fmt in ("%.18e", "%s"):
        file = io.StringIO()
        np.savetxt(file, x, fmt)
        assert_same(np.loadtxt(io.StringIO(file.getvalue()), dtype(f)))
        if fmt == "%s":
            assert file.getvalue().split() == [str(v) for v in x]
    assert x.astype(str).tolist() == [str(v) for v in x]


# -- np.format_float_positional and np.format_float_scientific ---------------------


def test_format_float() -> None:
    positional, scientific = np.format_float_positional, np.format_float_scientific
    assert positional(td.bfloat16(0.1)) == "0.1"
    assert positional(td.bfloat16(0.1), unique=False, precision=11) == "0.10009765625"
    assert positional(td.bfloat16(0.1), min_digits=6) == "0.100098"
    assert positional(td.float8_e4m3fn(448)) == "448."
    assert positional(td.float8_e4m3fn(448), trim="-") == "448"
    assert positional(td.float8_e8m0fnu(2.0**40)) == "1099511627776."
    assert positional(td.tf32(1e-3), fractional=False, precision=1) == "0.001"
    assert positional(td.tf32(np.inf)) == "inf"
    assert scientific(td.bfloat16(3.3895e38)) == "3.39e+38"
    assert scientific(td.float8_e5m2(57344)) == "5.7344e+04"
    assert scientific(td.float8_e5m2(57344), precision=2) == "5.73e+04"


@settings(max_examples=100)
@given(st.data())
def test_digits_are_chosen_as_numpy_chooses_them(data: Any) -> None:
    """Print NumPy's float16 with our choice of digits as NumPy does."""
    draw = data.draw
    x = np.array(draw(st.integers(0, 2**16 - 1)), np.uint16).view(np.float16)[()]
    unique = draw(st.booleans())
    precision = draw(st.integers(0, 12) if not unique else st.integers(-1, 12))
    options: dict[str, Any] = {
        "unique": unique,
        "precision": precision,
        "trim": draw(st.sampled_from("k.0-")),
        "sign": draw(st.booleans()),
        "pad_left": draw(st.integers(-1, 8)),
    }
    if unique:  # 0: exact integers, unlike str()
        most = precision if precision >= 0 else 12
        options["min_digits"] = (
            draw(st.integers(1, most)) if most and draw(st.booleans()) else -1
        )
    notation = draw(st.sampled_from(["positional", "scientific"]))
    if notation == "positional":
        options["fractional"] = draw(st.booleans())
        options["pad_right"] = draw(st.integers(-1, 8))
    else:
        options["exp_digits"] = draw(st.integers(-1, 4))
    write = getattr(np._core.multiarray, f"dragon4_{notation}")  # type: ignore[attr-defined]
    got = printing.write_digits(write, notation, x, float(str(x)), **options)
    assert got == write(x, **options)


def test_numpy_looks_for_what_is_replaced() -> None:
    """Fail if NumPy renames the functions that interop/printing.py replaces."""
    for known in ("dragon4_positional", "dragon4_scientific", "_get_format_function"):
        assert getattr(arrayprint, known).__module__ == printing.__name__
    assert callable(arrayprint._get_formatdict)


# -- np.finfo ----------------------------------------------------------------------


@each
def test_finfo_prints(f: Format) -> None:
    info = np.finfo(dtype(f))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = str(info)
        assert f"finfo(resolution={info.resolution!s}, min={info.min!s}, max=" in (
            repr(info)
        )
        assert f" {info.max!s}\n" in text
    assert float(info.max) == f.max_value
    assert float(info.min) == (-f.max_value if f.signed else f.tiny_value)
    below_one = codec.decode_code(f, codec.encode_code(f, codec.from_int(1))[0] - 1)
    assert 1 - Fraction(float(info.epsneg)) == codec.to_fraction(below_one)
    assert 2.0**info.negep == info.epsneg
    assert 2.0**info.machep == info.eps
    item, _ = codec.encode(f, codec.from_fraction(Fraction(1, 10**info.precision)))
    assert td.bits(np.array([info.resolution]))[0] == item
