"""Scalars: construction, strings, hashing, arithmetic, conversion, pickling."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support import oracle

TYPES = [f.type for f in td.formats.values()]
SIGNED = [f.type for f in td.formats.values() if f.signed]
NAMES = list(td.formats)
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=NAMES)
each_signed = pytest.mark.parametrize("scalar_type", SIGNED, ids=lambda t: t.__name__)


def facts(scalar_type: Any) -> td.Format:
    return td.formats[scalar_type.__name__]


def every_scalar(scalar_type: Any, step: int = 1) -> list[Any]:
    """Return a scalar of each code, or of every `step`-th code of a wide format."""
    f = facts(scalar_type)
    items = np.arange(0, 1 << f.bits, step, dtype=np.uint32)
    if f.itemsize == 4:
        items = items << 13
    return list(td.from_bits(items.astype(f"u{f.itemsize}"), scalar_type))


def sample(scalar_type: Any) -> list[Any]:
    return every_scalar(scalar_type, 1 if facts(scalar_type).bits <= 8 else 331)


def rounded(scalar_type: Any, value: float) -> float:
    return float(oracle.round_to(scalar_type.__name__, value))


def equal(x: float, y: float) -> bool:
    return bool(oracle.same(x, y))


# -- construction ------------------------------------------------------------------


@each_type
def test_from_numbers(scalar_type: Any) -> None:
    """Round the exact value once, whatever its Python type is."""
    with np.errstate(all="ignore"):
        for value in (0.1, 1.5, -2.7, 3, 0, -0.0, 1e-3, 77.3, 1e300, -1e-300, math.pi):
            expected = rounded(scalar_type, value)
            exact = Fraction(value)
            for spelling in (
                value,
                repr(value),
                f" {value!r}\n",
                exact,
                Decimal(value),
                np.float64(value),
                np.longdouble(value),
                np.array(value),
            ):
                if value == 0 and isinstance(spelling, Fraction):
                    continue  # a Fraction has no -0
                got = scalar_type(spelling)
                assert type(got) is scalar_type
                assert equal(got, expected), spelling


@each_type
def test_from_integers(scalar_type: Any) -> None:
    with np.errstate(all="ignore"):
        for value in (0, 1, -1, 3, 17, 255, 10**6, 2**53 + 1, -(2**70), 10**30):
            got = scalar_type(value)
            assert equal(got, rounded(scalar_type, float(value)))
            if abs(value) < 2**63:
                assert equal(scalar_type(np.int64(value)), float(got))
        assert equal(scalar_type(True), rounded(scalar_type, 1.0))


def test_one_rounding_where_two_would_differ() -> None:
    """Round once just above a tie, where float64 or float32 would lose the bit."""
    tie = 1 + Fraction(1, 256)
    above = tie + Fraction(1, 2**80)
    one_up = 1 + 2**-7
    assert td.bfloat16(tie) == 1
    assert td.bfloat16(above) == one_up
    assert td.bfloat16(float(tie + Fraction(1, 2**40))) == one_up
    assert td.bfloat16(Decimal("1.003906250000000000000000000001")) == one_up
    assert td.bfloat16("1.003906250000000000000000000001") == one_up
    assert td.bfloat16("1.00390625") == 1
    assert td.bfloat16(2**80 + 2**72 + 1) == (1 + 2**-7) * 2.0**80
    assert td.bfloat16(2**80 + 2**72) == 2.0**80
    assert td.tf32(2**62 + 2**51 + 1) == 2.0**62 * (1 + 2**-10)
    assert td.bfloat16(np.int64(2**62 + 2**54 + 1)) == 2.0**62 * (1 + 2**-7)


@each_type
def test_from_text(scalar_type: Any) -> None:
    f = facts(scalar_type)
    assert scalar_type("1") == 1
    assert scalar_type(b"2") == 2
    assert scalar_type(np.str_("1")) == 1
    with np.errstate(invalid="ignore", over="ignore"):
        if f.has_nan:
            assert math.isnan(scalar_type("nan"))
            assert math.isnan(scalar_type("-NaN"))
        if f.has_infinity:
            assert scalar_type("-inf") == -math.inf
            assert scalar_type("Infinity") == math.inf
        elif f.signed:
            assert equal(scalar_type("-inf"), rounded(scalar_type, -math.inf))


def test_default_and_copies() -> None:
    assert td.tf32() == 0
    x = td.bfloat16(1.5)
    assert td.bfloat16(x) == 1.5
    assert td.tf32(td.bfloat16(1.5)) == 1.5
    assert td.float8_e4m3fn(td.tf32(0.3)) == 0.3125


# -- strings -----------------------------------------------------------------------


@each_type
def test_format(scalar_type: Any) -> None:
    for value in (1, 2, 0.5):
        x = scalar_type(value)
        for spec in (".3f", "e", ".2g", "8.1f", "+.0f", "%"):
            assert format(x, spec) == format(float(x), spec)
        assert f"{x}" == str(x)
        assert "%.2f" % x == "%.2f" % float(x)  # noqa: UP031
    with pytest.raises(ValueError, match="format"):
        format(scalar_type(1), "nonsense")


# -- equality and hashing ----------------------------------------------------------


@each_type
def test_hash_and_equality_agree_with_python(scalar_type: Any) -> None:
    for x in sample(scalar_type):
        value = float(x)
        if math.isnan(value):
            assert x != x
            continue
        assert x == value
        assert value == x
        assert hash(x) == hash(value)
        assert x == scalar_type(value)
        assert {x: 1}[value] == 1
    assert scalar_type(1) != "1"
    assert scalar_type(1) != None  # noqa: E711
    assert scalar_type(1) in {1}


@each_signed
def test_comparisons(scalar_type: Any) -> None:
    x = scalar_type(1.5)
    for other in (1, 1.5, 2, np.float32(1.5), np.int8(2), scalar_type(2), True):
        for compare in (
            operator.lt,
            operator.le,
            operator.eq,
            operator.ne,
            operator.gt,
            operator.ge,
        ):
            assert compare(x, other) == compare(1.5, float(other))
            assert compare(other, x) == compare(float(other), 1.5)
    if facts(scalar_type).has_nan:
        nan = scalar_type(math.nan)
        assert not nan < 1
        assert nan != 1


# -- conversion --------------------------------------------------------------------


@each_type
def test_to_python_numbers(scalar_type: Any) -> None:
    for x in sample(scalar_type):
        value = float(x)
        assert type(value) is float
        assert bool(x) == bool(value)
        assert equal(complex(x).real, value)
        if math.isfinite(value):
            assert int(x) == int(value)
            assert type(int(x)) is int
            assert math.floor(x) == math.floor(value)
            assert math.ceil(x) == math.ceil(value)
            assert round(x) == round(value)
            assert x.is_integer() == value.is_integer()
            assert x.as_integer_ratio() == value.as_integer_ratio()
        elif math.isnan(value):
            for function in (int, math.floor, math.ceil, round):
                with pytest.raises(ValueError, match="NaN"):
                    function(x)
        else:
            for function in (int, math.floor, math.ceil, round):
                with pytest.raises(OverflowError, match="infinity"):
                    function(x)


@each_type
def test_round_to_digits(scalar_type: Any) -> None:
    x = scalar_type(1.5)
    assert type(round(x, 1)) is scalar_type
    assert type(round(x)) is int
    if facts(scalar_type).max > 100:  # NumPy multiplies by ten first
        assert equal(round(x, 1), rounded(scalar_type, round(float(x), 1)))


@each_signed
def test_divmod(scalar_type: Any) -> None:
    for a, b in ((3, 2), (-3, 2), (1.5, 0.5), (2, -1.5), (0.5, 3)):
        x, y = scalar_type(a), scalar_type(b)
        quotient, rest = divmod(x, y)
        assert type(quotient) is type(rest) is scalar_type
        expected = divmod(float(x), float(y))
        assert equal(quotient, rounded(scalar_type, expected[0]))
        assert equal(rest, rounded(scalar_type, expected[1]))


# -- arithmetic --------------------------------------------------------------------

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]


@each_signed
def test_arithmetic_with_python_numbers(scalar_type: Any) -> None:
    """Round Python numbers to the type, and round the result once."""
    with np.errstate(all="ignore"):
        for operation in OPERATORS:
            for left, right in ((1.5, 2), (2, 0.5), (3, True), (0.5, 3.0)):
                expected = rounded(
                    scalar_type,
                    operation(rounded(scalar_type, left), rounded(scalar_type, right)),
                )
                for got in (
                    operation(scalar_type(left), right),
                    operation(left, scalar_type(right)),
                    operation(scalar_type(left), scalar_type(right)),
                ):
                    assert type(got) is scalar_type
                    assert equal(got, expected)


@each_signed
def test_unary_operators(scalar_type: Any) -> None:
    x = scalar_type(1.5)
    assert -x == -1.5
    assert type(-x) is scalar_type
    assert type(+x) is scalar_type
    assert abs(-x) == 1.5
    with pytest.raises(TypeError):
        operator.invert(x)
    with pytest.raises(TypeError):
        operator.and_(x, x)
    with pytest.raises(TypeError):
        range(x)


def test_arithmetic_with_numpy_scalars() -> None:
    """Promote with a NumPy scalar, which has its own dtype."""
    x = td.bfloat16(1.5)
    assert type(x + np.float32(1)) is np.float32
    assert type(np.float64(1) + x) is np.float64
    assert type(x * td.tf32(2)) is td.tf32
    assert type(x * np.int8(2)) is td.bfloat16
    assert type(x + 1j) is np.complex64
    with pytest.raises(TypeError):
        operator.add(x, "1")


@each_type
def test_numpy_attributes(scalar_type: Any) -> None:
    x = scalar_type(2)
    assert isinstance(x, np.floating)
    assert x.dtype == scalar_type
    assert x.itemsize == facts(scalar_type).itemsize
    assert x.shape == ()
    assert x.ndim == 0
    assert x.real == x
    assert float(x.imag) == float(oracle.round_to(scalar_type.__name__, 0.0)) or (
        facts(scalar_type).has_zero is False
    )
    assert x.conjugate() == x
    assert x.astype(np.float32) == 2
    assert x.tobytes() == np.array(2, scalar_type).tobytes()
    assert x.view(f"u{x.itemsize}") == td.bits(np.array([2], scalar_type))[0]
    assert np.array(x).dtype == scalar_type
    assert np.array([x, x]).dtype == scalar_type


# -- pickling and copying ----------------------------------------------------------


@each_type
def test_pickle(scalar_type: Any) -> None:
    x = scalar_type(1.5)
    dtype = np.dtype(scalar_type)
    array = np.array([[1, 2], [0.5, 1]], scalar_type)
    structured = np.zeros(2, [("a", scalar_type), ("b", "i4", (2,))])
    for protocol in range(2, 6):
        for thing in (x, dtype, scalar_type, array, array.T, structured.dtype):
            back = pickle.loads(pickle.dumps(thing, protocol))
            assert type(back) is type(thing)
            assert np.all(back == thing)
        back = pickle.loads(pickle.dumps(array[:, ::-1], protocol))
        assert back.dtype == dtype
        assert back.tobytes() == array[:, ::-1].tobytes()
        again = pickle.loads(pickle.dumps(structured, protocol))
        assert again.dtype == structured.dtype
        assert pickle.loads(pickle.dumps(dtype, protocol)) == dtype


@each_type
def test_pickle_keeps_nan_and_codes(scalar_type: Any) -> None:
    items = np.array(every_scalar(scalar_type, 97), scalar_type)
    back = pickle.loads(pickle.dumps(items))
    assert np.array_equal(td.bits(back), td.bits(items))
    for x in items[:20]:
        assert pickle.loads(pickle.dumps(x)).tobytes() == x.tobytes()


@each_type
def test_copy(scalar_type: Any) -> None:
    x, dtype = scalar_type(1.5), np.dtype(scalar_type)
    for duplicate in (copy.copy, copy.deepcopy):
        assert duplicate(x) == x
        assert type(duplicate(x)) is scalar_type
        assert duplicate(dtype) == dtype
        array = np.ones(2, scalar_type)
        assert duplicate(array).dtype == scalar_type


# -- facts -------------------------------------------------------------------------


def test_finfo_of_bfloat16() -> None:
    info = np.finfo(td.bfloat16)
    assert float(info.resolution) == float(td.bfloat16(0.01))
    assert float(info.eps) == 0.0078125
    assert float(info.max) == 3.3895313892515355e38
    assert float(info.min) == -3.3895313892515355e38
    assert float(info.tiny) == float(info.smallest_normal) == 1.1754943508222875e-38
    assert float(info.smallest_subnormal) == 9.183549615799121e-41
    assert info.bits == 16
    assert info.nmant == 7
    assert info.precision == 2
    assert info.dtype == np.dtype(td.bfloat16)


@each_type
def test_finfo(scalar_type: Any) -> None:
    info, f = np.finfo(scalar_type), facts(scalar_type)
    row = oracle.ROWS[scalar_type.__name__]
    assert float(info.max) == f.max == float(row.max_value)
    assert float(info.min) == f.min == (-f.max if f.signed else float(row.tiny_value))
    assert float(info.eps) == f.eps == oracle.eps(scalar_type.__name__)
    assert float(info.smallest_subnormal) == f.smallest_subnormal
    assert f.smallest_subnormal == float(row.tiny_value)
    assert float(info.smallest_normal) == f.smallest_normal == 2.0**row.normal_exponent
    assert info.nmant == f.mantissa_bits
    assert type(info.max) is scalar_type
    assert np.finfo(np.dtype(scalar_type)) is info


@each_type
def test_subclassing(scalar_type: Any) -> None:
    for parent in (np.floating, np.inexact, np.number, np.generic, scalar_type):
        assert np.issubdtype(scalar_type, parent)
        assert np.issubdtype(np.dtype(scalar_type), parent)
    for other in (np.integer, np.float16, np.float32, np.complexfloating, float):
        assert not np.issubdtype(scalar_type, other)
    assert np.isscalar(scalar_type(1))
    assert scalar_type.__module__ == "tf32dtype"


def test_aliases() -> None:
    assert td.bf16 is td.bfloat16
    assert td.fp8_e4m3 is td.float8_e4m3fn
    assert td.fp8_e5m2 is td.float8_e5m2
    assert td.formats["bf16"] is td.formats["bfloat16"]
    assert np.dtype("tf32") == np.dtype(td.tf32)
    assert np.zeros(2, "tf32").dtype == td.tf32


# -- arithmetic without a ufunc ----------------------------------------------------

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]
ORDER = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def pairs_of(scalar_type: Any, count: int) -> tuple[Any, Any]:
    """Return pairs of scalars: of all codes, and all pairs at the ends of the range."""
    f = facts(scalar_type)
    codes = np.arange(1 << f.bits, dtype=np.uint32) << (13 if f.itemsize == 4 else 0)
    all_of_them = td.from_bits(codes.astype(f"u{f.itemsize}"), scalar_type)
    rng = np.random.default_rng(f.bits)
    ends = all_of_them[[0, 1, 2, 3, -1, -2, codes.size // 2, codes.size // 2 - 1]]
    a = np.concatenate([rng.choice(all_of_them, count), np.repeat(ends, ends.size)])
    near = rng.choice(all_of_them[: codes.size // 2], count)
    return a, np.concatenate([near, np.tile(ends, ends.size)])


@pytest.mark.parametrize(
    "count", [500, pytest.param(2500, marks=pytest.mark.exhaustive)]
)
@each_type
def test_arithmetic_is_that_of_arrays(scalar_type: Any, count: int) -> None:
    """Compute with scalars as with arrays: bits, type and warnings."""
    a, b = pairs_of(scalar_type, count)
    seen: list[int] = []
    with np.errstate(all="call", call=lambda _, flags: seen.append(flags)):
        for function in OPERATORS:
            want, raised = [], []
            for x, y in zip(a[:, None], b[:, None], strict=True):
                seen.clear()
                want.append(td.bits(function(x, y))[0])
                raised.append(seen[:])
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                seen.clear()
                got = function(x, y)
                assert type(got) is scalar_type
                assert td.bits(got) == want[i], (function, x, y)
                assert seen == raised[i], (function, x, y)
        for function in (operator.neg, abs):
            for x in a[~np.isnan(a)][::7]:
                assert td.bits(function(x)) == td.bits(function(x[None]))[0]
    for compare in ORDER:
        assert [bool(compare(x, y)) for x, y in zip(a, b, strict=True)] == compare(
            a, b
        ).tolist()
        assert type(compare(a[0], b[0])) is np.bool


PYTHON = [0, 1, -1, 3, 0.1, 1.5, -2.75, 1e-9, 1e30, 2**53 + 1, -(2**70), 7.5, math.nan]
PYTHON += [math.inf, -math.inf, True, 5e-324, 448, 57344, 1e-40]


@pytest.mark.parametrize("step", [17, pytest.param(5, marks=pytest.mark.exhaustive)])
@each_type
def test_arithmetic_with_python_numbers_is_that_of_arrays(
    scalar_type: Any, step: int
) -> None:
    """Round a Python number first in arithmetic; compare it as it is."""
    codes = sample(scalar_type)
    some = [*codes[::step], *codes[1::97], codes[-1]]
    seen: list[int] = []
    with np.errstate(all="call", call=lambda _, flags: seen.append(flags)):
        for v in PYTHON:
            for x in some:
                for function in OPERATORS:
                    for scalars, arrays in (
                        ((x, v), (x[None], v)),
                        ((v, x), (v, x[None])),
                    ):
                        seen.clear()
                        want, flags = function(*arrays), seen[:]
                        seen.clear()
                        got = function(*scalars)
                        assert type(got) is scalar_type
                        assert td.bits(got) == td.bits(want)[0], (function, scalars)
                        assert seen == flags, (function, scalars)
                for compare in ORDER:
                    assert bool(compare(x, v)) == compare(float(x), v)
                    assert bool(compare(v, x)) == compare(v, float(x))


def test_what_is_no_pair_of_numbers_is_numpys() -> None:
    x = td.bfloat16(1.5)
    assert type(x + np.float32(1)) is np.float32
    assert type(x + td.float8_e4m3fn(1)) is td.bfloat16
    assert (x + np.ones(2, np.float64)).dtype == np.float64
    assert (x - [1, 2]).tolist() == [0.5, -0.5]
    with pytest.raises(TypeError):
        x + "a"
    assert (x == "a") == False  # noqa: E712
    assert x != None  # noqa: E711
    assert type(x + (1 + 1j)) is np.complex64 or type(x + (1 + 1j)) is np.complex128

    class Own(td.bfloat16):  # type: ignore[misc]
        def __radd__(self, other: Any) -> Any:
            return "own"

    assert x + Own(1) == "own"
    assert Own(1) + x == 2.5
    assert -Own(1) == abs(Own(-1)) * -1
