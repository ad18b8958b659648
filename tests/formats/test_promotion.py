"""Common dtypes: the contract's table, NEP 50, can_cast, and dtypes of ml_dtypes."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tf32dtype as td
from tests.support import oracle

NAMES = list(td.formats)
TYPES = [f.type for f in td.formats.values()]
BUILTINS = (
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 longlong ulonglong "
    "float16 float32 float64 longdouble complex64 complex128 clongdouble"
).split()
each_type = pytest.mark.parametrize("scalar_type", TYPES, ids=NAMES)


def dtype_of(name: str) -> np.dtype:
    """Return our dtype for our names, although ml_dtypes may have registered them."""
    return td.formats[name].dtype if name in td.formats else np.dtype(name)


def common_of(a: str, b: str) -> np.dtype:
    """Return the common dtype of our dtype `a` and any `b`."""
    return dtype_of(oracle.common(a, b if b in NAMES else np.dtype(b).name))


# Written by hand. The others are computed from the values that each format has.
SPELLED_OUT = [
    ("float8_e4m3fn", "float8_e5m2", "bfloat16"),
    ("bfloat16", "float16", "float32"),
    ("float16", "tf32", "tf32"),
    ("tf32", "float32", "float32"),
    ("tf32", "bfloat16", "tf32"),
    ("tf32", "float64", "float64"),
    ("bfloat16", "float64", "float64"),
    ("bfloat16", "bool", "bfloat16"),
    ("bfloat16", "int8", "bfloat16"),
    ("bfloat16", "uint8", "bfloat16"),
    ("tf32", "uint8", "tf32"),
    ("float8_e4m3fn", "int8", "float16"),
    ("float4_e2m1fn", "uint8", "float16"),
    ("float8_e8m0fnu", "int8", "float32"),
    ("bfloat16", "int16", "float32"),
    ("tf32", "uint16", "float32"),
    ("tf32", "int32", "float64"),
    ("bfloat16", "uint64", "float64"),
    ("float8_e4m3fn", "complex64", "complex64"),
    ("bfloat16", "complex128", "complex128"),
    ("float8_e4m3fn", "float16", "float16"),
    ("float8_e8m0fnu", "float16", "float32"),
    ("float8_e8m0fnu", "bfloat16", "bfloat16"),
    ("float6_e2m3fn", "float6_e3m2fn", "float8_e4m3fn"),
    ("float6_e3m2fn", "float4_e2m1fn", "float6_e3m2fn"),
    ("float8_e4m3fnuz", "float4_e2m1fn", "bfloat16"),  # fnuz has no -0
    ("float8_e4m3fn", "float8_e4m3", "bfloat16"),  # fn has no Inf
]


@pytest.mark.parametrize(("a", "b", "common"), SPELLED_OUT)
def test_spelled_out(a: str, b: str, common: str) -> None:
    for pair in ((a, b), (b, a)):
        assert np.promote_types(*map(dtype_of, pair)) == dtype_of(common)


@pytest.mark.parametrize("a", NAMES)
def test_every_pair(a: str) -> None:
    for b in [*NAMES, *BUILTINS]:
        common = common_of(a, b)
        x, y = np.ones(2, dtype_of(a)), np.ones(2, dtype_of(b))
        assert np.promote_types(x.dtype, y.dtype) == common, (a, b)
        assert np.promote_types(y.dtype, x.dtype) == common, (a, b)
        assert np.result_type(x, y) == common, (a, b)
        assert (x + y).dtype == common, (a, b)
        assert (y * x).dtype == common, (a, b)
        assert np.concatenate((x, y)).dtype == common, (a, b)
        assert np.where([True, False], x, y).dtype == common, (a, b)
        assert (x < y).dtype == np.bool_, (a, b)


@each_type
def test_python_scalars_are_weak(scalar_type: Any) -> None:
    """NEP 50: keep the dtype with a Python number; a NumPy scalar has its own dtype."""
    own = np.dtype(scalar_type)
    one = scalar_type(1)
    for value, result in (
        *((v, own) for v in (1, 0, True, 1.0, 0.5, np.True_)),
        (np.float32(1), "float32"),
        (np.float64(1), "float64"),
        (np.int16(1), "float32"),
        (np.int64(1), "float64"),
        (1j, "complex64"),
    ):
        expected = np.dtype(result)
        assert np.result_type(own, value) == expected, repr(value)
        for x in (np.ones(3, own), np.ones((), own), one):
            with np.errstate(all="ignore"):
                assert (x + value).dtype == expected, repr(value)
                assert (value + x).dtype == expected, repr(value)
                assert np.multiply(x, value).dtype == expected, repr(value)
            assert type(x == value) is (np.bool_ if np.ndim(x) == 0 else np.ndarray)
        assert np.where([True], np.ones(1, own), value).dtype == expected, repr(value)


@each_type
def test_python_scalars_compare_exactly(scalar_type: Any) -> None:
    """Compare numbers exactly, unlike float16: an array of rounded 1.1 is not 1.1."""
    with np.errstate(all="ignore"):
        x = np.full(2, 1.1, scalar_type)
    assert not np.any(x == np.float64(1.1))
    assert not np.any(x == 1.1)
    assert np.all(x == float(x[0]))
    assert np.all(x > 0)


# -- several dtypes ----------------------------------------------------------------


def results(kinds: tuple[Any, ...]) -> set[Any]:
    """Return the common dtypes in every order; None is for an error."""
    found = set()
    for order in itertools.permutations(kinds):
        try:
            found.add(np.result_type(*order))
        except np.exceptions.DTypePromotionError:
            found.add(None)
    return found


OURS = [f.dtype for f in td.formats.values()]
NUMPYS = [np.dtype(char) for char in "?bBhHilLefdgFDG"]
NUMBERS = [1, 1.0, 1j]


@pytest.mark.parametrize(
    ("count", "step"),
    [(2, 1), (3, 1), (4, 7), pytest.param(4, 1, marks=pytest.mark.exhaustive)],
)
def test_the_common_dtype_does_not_depend_on_the_order(count: int, step: int) -> None:
    for first, ours in enumerate(OURS):
        others = [*OURS[first + 1 :], *NUMPYS, *NUMBERS]
        for rest in [*itertools.combinations(others, count - 1)][::step]:
            assert len(results((ours, *rest))) == 1, (ours, *rest)


def test_what_several_have_in_common() -> None:
    """Hold the numbers of all dtypes, so that no float among them is lost."""
    with np.errstate(all="ignore"):
        for kinds in itertools.combinations(
            [*NAMES, "float16", "float32", "float64"], 3
        ):
            if kinds[0] in NAMES:
                common = np.result_type(*map(dtype_of, kinds)).name
                assert all(oracle.holds(common, x) for x in kinds), kinds


@pytest.mark.parametrize(
    ("kinds", "common"),
    [
        ("tf32 bfloat16 float16", "tf32"),
        ("tf32 float8_e8m0fnu float16", "tf32"),
        ("tf32 float8_e5m2 int8", "tf32"),
        ("bfloat16 float8_e4m3fn uint8", "bfloat16"),
        ("float8_e4m3fn float16 int8", "float16"),
        ("float8_e4m3 float6_e2m3fn float6_e3m2fn", "float8_e4m3"),
        ("bfloat16 float16 float8_e4m3fn", "float32"),
        ("float4_e2m1fn int16 uint16", "float32"),
    ],
)
def test_several_spelled_out(kinds: str, common: str) -> None:
    dtypes = [dtype_of(x) for x in kinds.split()]
    for order in itertools.permutations(dtypes):
        arrays = [np.ones(2, x) for x in order]
        assert np.result_type(*order) == dtype_of(common)
        assert np.result_type(*arrays) == dtype_of(common)
        assert np.concatenate(arrays).dtype == dtype_of(common)
        assert np.stack(arrays).dtype == dtype_of(common)
        assert np.clip(*arrays).dtype == dtype_of(common)
        assert np.choose([0, 1], arrays).dtype == dtype_of(common)


def test_casting_rules() -> None:
    """Call a cast safe if the promotion of the two dtypes is the target."""
    for a in NAMES:
        x = dtype_of(a)
        for b in [*NAMES, *BUILTINS]:
            y = dtype_of(b)
            common = common_of(a, b)
            kind = y.kind if b in BUILTINS else "f"
            assert np.can_cast(x, y) == (common == y), (a, b)
            assert np.can_cast(y, x) == (common == x), (b, a)
            assert np.can_cast(x, y, "same_kind") == (kind in "fc"), (a, b)
            assert np.can_cast(y, x, "same_kind") == (kind in "biuf"), (b, a)
            assert np.can_cast(x, y, "unsafe")
            assert np.can_cast(y, x, "unsafe")
        assert np.can_cast(x, x, "no")


def test_assigning_a_wider_result_into_ours() -> None:
    x = np.ones(3, td.bfloat16)
    x += np.float64(0.5)
    assert x.dtype == td.bfloat16
    assert np.all(x == 1.5)
    integers = np.ones(3, int)
    with pytest.raises(TypeError, match="Cannot cast"):
        integers += np.ones(3, td.bfloat16)


# -- together with ml_dtypes -------------------------------------------------------

SHARED = [name for name in NAMES if hasattr(ml_dtypes, name)]


@pytest.mark.parametrize("name", SHARED)
def test_type_of_equal_name(name: str) -> None:
    ours, theirs = dtype_of(name), np.dtype(getattr(ml_dtypes, name))
    assert ours != theirs
    assert np.promote_types(ours, theirs) == ours
    assert np.promote_types(theirs, ours) == ours
    x = np.ones(4, ours)
    assert (x + x.astype(theirs)).dtype == ours
    assert x.view(theirs).dtype == theirs
    assert np.shares_memory(x.view(theirs), x)


def test_order_beside_their_types() -> None:
    """Promote in any order alike, unless NumPy asks ml_dtypes first. Types of ml_dtypes
    with 8 bits or less claim to hold int8 and uint8."""
    theirs = [np.dtype(getattr(ml_dtypes, name)) for name in SHARED]
    small = [np.dtype(np.int8), np.dtype(np.uint8)]
    for twin in theirs:
        for ours in OURS:
            for other in [*OURS, *theirs, *NUMPYS, *NUMBERS]:
                kinds = ours, twin, other
                if other in small and np.promote_types(twin, other) == twin:
                    continue
                assert len(results(kinds)) == 1, kinds


@pytest.mark.parametrize("name", SHARED)
def test_casts_between_types_of_equal_name_keep_every_code(name: str) -> None:
    ours, theirs = dtype_of(name), np.dtype(getattr(ml_dtypes, name))
    bits = np.dtype(f"u{ours.itemsize}")
    codes = np.arange(1 << td.formats[name].bits, dtype=bits)
    x = td.from_bits(codes, ours)
    numbers = ~np.isnan(x)
    assert np.array_equal(x.astype(theirs).view(bits)[numbers], codes[numbers])
    back = codes.view(theirs).astype(ours)
    assert np.array_equal(td.bits(back)[numbers], codes[numbers])
    assert np.all(np.isnan(back[~numbers]))
