"""Properties of scalars and arrays in ml_dtypes that every format also has.

These are properties that the tests of ml_dtypes check for each custom float, and that
no other file checks for every code. A comment gives the reason of each difference.
"""

from __future__ import annotations

import copy
import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference.codec_arrays import all_items
from tests.reference.formats import FORMATS
from tests.support import oracle

TYPES = [f.type for f in td.formats.values()]
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=list(td.formats))

FLOATS = [np.float16, np.float32, np.float64, np.longdouble]
INTEGERS = [np.dtype(char).type for char in "bhilqBHILQ"]
COMPLEX = [np.complex64, np.complex128, np.clongdouble]


def facts(scalar_type: Any) -> td.Format:
    return td.formats[scalar_type.__name__]


def numbers(scalar_type: Any) -> list[float]:
    """Return numbers around one, integers, the largest number, and special values."""
    f = facts(scalar_type)
    near = [x + sign * f.eps for x in (1, -1) for sign in (1, -1)]
    drawn = [0.0, -0.0, 1, -1, 0.5, -0.5, f.eps, *near, 3.5, 4, 5, 7, f.max, -f.max]
    drawn += [f.smallest_normal, f.smallest_subnormal]
    finite = [x for x in drawn if same(oracle.round_to(scalar_type.__name__, x), x)]
    nan = [math.nan] if f.has_nan else []
    return finite + nan + ([math.inf, -math.inf] if f.has_infinity else [])


def same(x: Any, y: Any) -> bool:
    return bool(oracle.same(float(x), float(y)))


@each_type
def test_codes_of_inf_and_nan(scalar_type: Any) -> None:
    form = facts(scalar_type)
    items = all_items(FORMATS[form.name])
    x = items.view(scalar_type)
    assert sorted(form.nan_codes) == items[np.isnan(x)].tolist()
    assert form.infinity_codes == (*items[x == np.inf], *items[x == -np.inf])


# -- one number, in and out --------------------------------------------------------


@each_type
def test_numbers_come_back(scalar_type: Any) -> None:
    for value in numbers(scalar_type):
        assert same(scalar_type(value), value)
        for wide in FLOATS:
            if math.isfinite(value) and abs(value) > float(np.finfo(wide).max):
                continue
            with np.errstate(under="ignore"):
                there = wide(value)
            if float(there) != value and not math.isnan(value):
                continue  # the NumPy type has fewer small numbers
            assert same(scalar_type(there), value)
            assert same(wide(scalar_type(there)), value)
            assert type(wide(scalar_type(there))) is wide
            assert same(wide(scalar_type(np.array(value, wide))), value)
    items = np.array(numbers(scalar_type), scalar_type)
    for wide in (np.float32, np.float64, np.longdouble):
        assert np.all(oracle.same(wide(items).astype(float), numbers(scalar_type)))
        assert np.array_equal(wide(items), items.astype(wide), equal_nan=True)


@each_type
def test_integers_come_back(scalar_type: Any) -> None:
    f = facts(scalar_type)
    drawn = np.arange(513.0)
    kept = oracle.round_to(scalar_type.__name__, drawn) == drawn
    whole = np.flatnonzero(kept).tolist()
    assert len(whole) >= 3
    for value in whole:
        for signed in (value, -value) if f.signed else (value,):
            got = int(scalar_type(signed))
            assert (type(got), got) == (int, signed)
    for integer in INTEGERS:
        assert type(scalar_type(integer(1))) is scalar_type
        assert scalar_type(integer(1)) == 1
        assert type(integer(scalar_type(2))) is integer
        assert integer(scalar_type(2)) == 2


@each_type
def test_hash(scalar_type: Any) -> None:
    """Hash as the equal Python number; ml_dtypes' NaN has the hash 0 or Python's."""
    for value in numbers(scalar_type):
        if not math.isnan(value):
            assert hash(scalar_type(value)) == hash(value)
    if facts(scalar_type).has_nan:
        nan = scalar_type(math.nan)
        assert {nan: 1}[nan] == 1  # found by identity, as Python's NaN
    assert hash(np.dtype(scalar_type)) == hash(np.zeros(1, scalar_type).dtype)
    before = hash(np.dtype(scalar_type))
    copy.deepcopy(np.dtype(scalar_type))
    assert hash(np.dtype(scalar_type)) == before


@each_type
def test_class_and_dtype(scalar_type: Any) -> None:
    dtype = np.dtype(scalar_type)
    assert scalar_type == dtype
    assert dtype.type is scalar_type
    assert dtype.name == scalar_type.__name__
    assert dtype.itemsize == facts(scalar_type).itemsize
    # With ml_dtypes, the kind is "V" and `scalar_type.dtype` is a dtype. With NumPy's
    # float16, the kind is "f" and the class has a descriptor.
    assert dtype.kind == np.dtype(np.float16).kind
    assert type(scalar_type.dtype) is type(np.float16.dtype)


@each_type
def test_comparisons_give_numpys_bool(scalar_type: Any) -> None:
    for a, b in itertools.product(numbers(scalar_type), repeat=2):
        x, y = scalar_type(a), scalar_type(b)
        got = [x < y, x <= y, x > y, x >= y, x == y, x != y]
        assert got == [a < b, a <= b, a > b, a >= b, a == b, a != b]
        assert {type(answer) for answer in got} == {np.bool_}


@each_type
def test_scalars_promote_as_arrays_do(scalar_type: Any) -> None:
    """Promote with float16 to the first type that holds both; ml_dtypes has float32."""
    for wide in [scalar_type, *FLOATS, *INTEGERS, *COMPLEX, np.bool_]:
        common = np.promote_types(scalar_type, wide).type
        pairs = ((scalar_type(1), wide(1)), (wide(1), scalar_type(1)))
        for left, right in pairs:
            assert type(left + right) is common
            assert (np.array([left]) * right).dtype == common
            assert (left * np.array([right])).dtype == common
            assert left * right == 1
            assert type(left < right) is np.bool_


# -- arrays ------------------------------------------------------------------------


@each_type
def test_arange(scalar_type: Any) -> None:
    """Round each number once, although NumPy takes the step from the first two."""
    ranges = [(1, 100, 1)]
    if facts(scalar_type).signed:
        ranges += [(1, 9, 0.5), (-6, 6, 2), (0, -2, -0.5)]
    for begin, end, step in ranges:
        with np.errstate(all="ignore"):
            got = np.arange(begin, end, step, dtype=scalar_type)
            want = np.arange(begin, end, step, np.float64).astype(scalar_type)
        assert np.array_equal(got, want, equal_nan=True)


@each_type
def test_casts_of_every_kind_of_number(scalar_type: Any) -> None:
    for wide in [*FLOATS, *INTEGERS, *COMPLEX]:
        x = np.array([[1, 2, 4]], wide)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            y = x.astype(scalar_type)
        assert y.dtype == scalar_type
        assert np.all(x == y)
        assert np.all(y == x)
        back = y.astype(wide)
        assert back.dtype == wide
        assert np.array_equal(back, x)


@each_type
def test_safe_casts_keep_every_number(scalar_type: Any) -> None:
    """Allow a safe cast if the promotion is the target, in both directions."""
    for other in [*FLOATS, *INTEGERS, *COMPLEX, np.bool_, *TYPES]:
        common = np.promote_types(scalar_type, other)
        into = common == other and np.dtype(other).kind in "fc"
        assert np.can_cast(scalar_type, other) == into
        assert np.can_cast(other, scalar_type) == (common == scalar_type)
        floats = np.dtype(other).kind in "fc"
        assert np.can_cast(scalar_type, other, "same_kind") == floats
        assert np.can_cast(other, scalar_type, "same_kind") != (other in COMPLEX)
        assert np.can_cast(other, scalar_type, "unsafe")


@each_type
def test_divmod_of_specials(scalar_type: Any) -> None:
    """Round float64's results to the format, zero and infinity included."""
    f = facts(scalar_type)
    drawn = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]
    kept = [v for v in drawn if any(same(v, x) for x in numbers(scalar_type))]
    x = np.array(kept, scalar_type)
    with np.errstate(all="ignore"):
        want = np.divmod.outer(x.astype(float), x.astype(float))
        got = np.divmod.outer(x, x)
        assert np.array_equal(got[0], np.floor_divide.outer(x, x), equal_nan=True)
        assert np.array_equal(got[1], np.remainder.outer(x, x), equal_nan=True)
        for one, two in zip(got, want, strict=True):
            rounded = two.astype(scalar_type)
            assert np.array_equal(one.astype(float), rounded.astype(float), True)
            if f.signed and f.has_infinity:
                known = ~np.isnan(two)
                assert np.array_equal(np.signbit(one)[known], np.signbit(two)[known])


@each_type
def test_arg_extremes_beside_nan_and_infinity(scalar_type: Any) -> None:
    f = facts(scalar_type)
    if f.has_nan:
        x = np.array([1, math.nan, math.nan], scalar_type)
        assert np.argmax(x) == np.argmin(x) == 1
    if f.has_infinity:
        for value in (math.inf, -math.inf):
            x = np.array([value], scalar_type)
            assert np.argmax(x) == np.argmin(x) == 0


# -- neighbors --------------------------------------------------------------------


def ascending(scalar_type: Any) -> np.ndarray:
    """Return every finite number once, in ascending order."""
    f = facts(scalar_type)
    codes = np.arange(1 << f.bits, dtype=np.uint32)
    if f.itemsize == 4:
        codes <<= 13
    items = td.from_bits(codes.astype(f"u{f.itemsize}"), scalar_type)
    return np.unique(items[np.isfinite(items)].astype(float))


@each_type
def test_nextafter_and_spacing(scalar_type: Any) -> None:
    """Return the neighbor by `nextafter`, the distance to the number above by
    `spacing`. `spacing` is positive, as with float16; ml_dtypes and float32 have a
    negative one for negative numbers. The distance may differ from eps (0.5 to 1 in
    FP4, 1 to 2 in float8_e8m0fnu)."""
    values = ascending(scalar_type)
    x = values.astype(scalar_type)
    with np.errstate(all="ignore"):
        up = np.nextafter(x[:-1], x[-1:]).astype(float)
        down = np.nextafter(x[1:], x[:1]).astype(float)
        assert np.array_equal(up, values[1:])
        assert np.array_equal(down, values[:-1])
        assert np.array_equal(np.nextafter(x, x), x)
        want = np.diff(values).astype(scalar_type)
        assert np.array_equal(np.spacing(x[:-1]), want, equal_nan=True)
        assert np.spacing(np.float16(-1)) == 2.0**-11
        if facts(scalar_type).has_nan:
            nan = np.array([math.nan], scalar_type)
            assert np.isnan(np.nextafter(nan, x)).all()
            assert np.isnan(np.nextafter(x, nan)).all()
            assert np.isnan(np.spacing(nan)).all()


@each_type
def test_copysign_sets_one_bit(scalar_type: Any) -> None:
    f = facts(scalar_type)
    if not f.signed:
        return
    values = ascending(scalar_type)
    x = values[values > 0].astype(scalar_type)
    minus = np.copysign(x, scalar_type(-1))
    sign = 1 << (f.bits - 1) << (13 if f.itemsize == 4 else 0)
    assert np.array_equal(td.bits(minus), td.bits(x) | td.bits(x).dtype.type(sign))


# -- facts about the format --------------------------------------------------------


@each_type
def test_finfo_agrees_with_itself(scalar_type: Any) -> None:
    info, f = np.finfo(scalar_type), facts(scalar_type)
    assert np.finfo(scalar_type(1)) is np.finfo(np.dtype(scalar_type)) is info
    assert info.dtype == scalar_type
    assert info.smallest_normal == info.tiny
    assert f.bits == f.signed + f.exponent_bits + f.mantissa_bits
    assert info.nmant == f.mantissa_bits
    with np.errstate(all="ignore"):
        for number in (info.max, info.min, info.tiny, info.smallest_subnormal):
            assert type(number) is scalar_type
            assert np.isfinite(number)
        assert same(scalar_type(2.0 ** (info.maxexp - 1)), 2.0 ** (info.maxexp - 1))
        assert float(info.max) < 2.0**info.maxexp
        if f.has_zero:
            assert scalar_type(float(info.smallest_subnormal) / 2) == 0
        if f.has_nan or f.has_infinity:  # above the largest number
            assert not np.isfinite(np.nextafter(info.max, scalar_type(math.inf)))


@pytest.mark.skipif(
    not hasattr(np.dtypes, "register_dlpack_dtype"), reason="new in NumPy 2.5"
)
@each_type
def test_dlpack(scalar_type: Any) -> None:
    """Export by DLPack, which lacks tf32, and packs FP6 and FP4."""
    for shape in ((4,), (2, 2), ()):
        x = np.ones(shape, scalar_type)
        if scalar_type is td.tf32 or facts(scalar_type).bits < 8:
            with pytest.raises(BufferError):
                np.from_dlpack(x)
            continue
        y = np.from_dlpack(x)
        assert y.dtype == x.dtype
        assert np.array_equal(x, y)
        assert np.shares_memory(x, y)
