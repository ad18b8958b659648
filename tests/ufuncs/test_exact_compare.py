"""Comparisons and bounds with numbers that a format does not have.

Python compares floats and ints of any size exactly, and numbers of formats are floats.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import codec, operations
from tests.reference.codec import INVALID, OVER, Exact
from tests.reference.codec_arrays import all_items, item_type, random_items
from tests.reference.formats import Format
from tests.support.bits import ALL, BYTES, array, assert_items, items_of, name, raised

Number = float | int

COMPARISONS = {
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
}
EXTREMES = (np.maximum, np.minimum, np.fmax, np.fmin)
each_format = pytest.mark.parametrize("f", ALL, ids=name)


def some_items(f: Format) -> Any:
    """Return all items of a narrow format; of a wide one, its ends and random items."""
    if f in BYTES:
        return all_items(f)
    ends = [0, 1, f.max_code, f.max_code + 1, f.nan]
    codes = np.array(ends + [code | f.sign_bit for code in ends])
    drawn = random_items(f, np.random.default_rng(0), 200)
    return np.concatenate([(codes << f.shift).astype(item_type(f)), drawn])


def numbers(f: Format) -> Iterator[Number]:
    """Yield numbers of the format, near them, at its ends, and far out of its range."""
    maximum, tiny = float(f.max_value), float(f.tiny_value)
    yield from (0, 0.0, -0.0, True, False, 1, 2, 0.3, 1.1, 7.5, 2**53 + 1, 2**60 + 1)
    yield from (float("inf"), float("nan"), 5e-324, 1e39, 1.7e308, 3e38)
    yield from (10**400, -(10**400), 2**64, -(2**63) - 1, 1 << 1023, (1 << 128) + 1)
    for x in (maximum, tiny, 1.0, 1 + float(2**-f.mantissa_bits)):
        for y in (x, x * (1 + 2.0 ** -(f.mantissa_bits + 2)), x * 1.5, x / 2):
            yield from (
                y,
                np.nextafter(y, 0).item(),
                np.nextafter(y, np.inf).item(),
                -y,
            )
    if maximum > 2**60:
        yield from (int(maximum), int(maximum) + 1, int(maximum) - 1, -int(maximum) - 1)


def decoded(f: Format, item: int) -> Exact:
    """Decode without the table of codec.decode(), which takes seconds for tf32."""
    return codec.decode_code(f, codec.clean(f, item) >> f.shift)


def values(f: Format, items: Any) -> list[float]:
    return [codec.to_float(decoded(f, item)) for item in items.tolist()]


# -- comparisons -----------------------------------------------------------------------


@each_format
def test_python_numbers(f: Format) -> None:
    items = some_items(f)
    x, known = array(f, items), values(f, items)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for v in numbers(f):
            for ufunc, compare in COMPARISONS.items():
                want = [compare(y, v) for y in known]
                assert ufunc(x, v).tolist() == want, (ufunc, v)
                want = [compare(v, y) for y in known]
                assert ufunc(v, x).tolist() == want, (v, ufunc)


@each_format
def test_operators_of_arrays_and_scalars(f: Format) -> None:
    x = array(f, some_items(f))[:: 1 if f.count < 100 else 37]
    for v in numbers(f):
        for compare in COMPARISONS.values():
            want = [compare(float(y), v) for y in x]
            assert compare(x, v).tolist() == want, (compare, v)
            assert [bool(compare(y, v)) for y in x] == want, (compare, v)
            want = [compare(v, float(y)) for y in x]
            assert compare(v, x).tolist() == want, (v, compare)
            assert [bool(compare(v, y)) for y in x] == want, (v, compare)


INTEGERS = [
    *(0, 1, 2, 7, 127, 2**24 + 1, 2**53, 2**53 + 1, 2**60 - 1, 2**60, 2**60 + 1),
    *(2**62 + 2**40, 2**63 - 1),
]


@each_format
def test_numpy_integers(f: Format) -> None:
    """Compare int64 and uint64, arrays and scalars, with a column of numbers: exactly,
    where float64 would round them."""
    items = some_items(f)
    x, known = array(f, items)[:, None], values(f, items)
    for kind, rest in (
        (np.int64, [-y - 1 for y in INTEGERS]),
        (np.uint64, [2**64 - 1]),
    ):
        integers = INTEGERS + rest
        y = np.array(integers, kind)
        for ufunc, compare in COMPARISONS.items():
            want = [[compare(a, b) for b in integers] for a in known]
            assert ufunc(x, y).tolist() == want, ufunc
            assert ufunc(x.repeat(2, 0)[::2], y[::-1]).tolist() == [
                row[::-1] for row in want
            ]
            want = [[compare(b, a) for b in integers] for a in known]
            assert ufunc(y, x).tolist() == want, ufunc
            assert ufunc(y[-1], x[:, 0]).tolist() == [row[-1] for row in want]


@each_format
def test_other_dtypes(f: Format) -> None:
    """Compare with booleans, the other integers and floats, and all other formats."""
    items = some_items(f)[::3]
    x, known = array(f, items), values(f, items)
    others = [np.array([False, True])]
    others += [np.array([0, 1, 5, 100, 127], kind) for kind in "bBhHiI"]
    others += [np.array([-2, 0.3, 1.5, 448, np.inf, np.nan, 6e4], k) for k in "efdg"]
    others += [array(g, some_items(g)[::37]) for g in ALL]
    others += [np.array([1 + np.longdouble(2) ** -60, np.longdouble(2) ** 5000])]
    with np.errstate(all="ignore"):
        for other in others:
            exact = [y if y.dtype == np.longdouble else float(y) for y in other]
            for ufunc, compare in COMPARISONS.items():
                want = [[bool(compare(a, b)) for b in exact] for a in known]
                assert ufunc(x[:, None], other).tolist() == want, (ufunc, other.dtype)


def test_forms_of_a_call() -> None:
    """Call with out=, where=, outer, axes of any stride, signature=, dtype=object."""
    x = np.array([[1, 448, -448], [np.nan, 0.5, 2]], td.float8_e4m3fn)
    want = [[True, True, True], [False, True, True]]
    out = np.zeros((2, 3), bool)
    assert np.less(x, 1e6, out=out) is out
    assert out.tolist() == want
    out[:] = False
    np.less(x[:, ::2], 10**30, out=out[:, ::2], where=x[:, ::2] > 0)
    assert out.tolist() == [[True, False, False], [False, False, True]]
    assert np.less(x.T, 1e6).tolist() == np.array(want).T.tolist()
    assert np.less.outer(x, 1e6).tolist() == want
    assert np.less.outer(x, [1e6, 1.0])[0, 0].tolist() == [True, False]
    assert np.less(x, 1e6, dtype=bool).tolist() == want
    assert np.less(x[0], 1e6, dtype=object).tolist() == want[0]
    assert np.less(x, 1e6, out=np.zeros((2, 3), np.float32)).tolist() == want
    assert np.greater(1e6, x[0, 0])
    assert (x[:0] < 1e6).shape == (0, 3)
    assert x[0, 1] in (448, 1e6)
    assert (x == None).any() == False  # noqa: E711, E712
    # Asking for a format rounds the number.
    with np.errstate(over="ignore"):
        ours = np.dtype(td.float8_e4m3fn)
        assert not np.less(x, 1e6, signature=(ours, ours, None)).any()


def test_functions_that_compare() -> None:
    x = np.array([1, 2, 448, -448], td.float8_e4m3fn)
    assert np.isin(x, [448, 1e6]).tolist() == [False, False, True, False]
    assert np.searchsorted(np.sort(x), [1e6, -1e6]).tolist() == [4, 0]
    assert np.digitize(x, [-1000, 0, 1000]).tolist() == [2, 2, 2, 1]
    assert np.histogram(x, [-1000, 0, 1000])[0].tolist() == [1, 3]
    with np.errstate(over="ignore"):  # of the difference, as with float16
        assert not np.isclose(x, 1e6).any()
    assert np.allclose(x[:1], 1)
    np.testing.assert_array_less(x, 1e6)
    np.testing.assert_array_equal(x == 10**400, False)
    assert np.count_nonzero(x < 10**400) == 4


# -- bounds ----------------------------------------------------------------------------


def exact(v: Number) -> Exact:
    return codec.from_int(v) if isinstance(v, int) else codec.from_float(v)


def bound(f: Format, v: Number) -> tuple[Exact, int]:
    """Return a bound by the contract, and the flags of rounding it."""
    item, flags = codec.encode(f, exact(v))
    if v == v and flags & (OVER | INVALID):
        return exact(v), 0
    return decoded(f, item), flags


def outcome(
    f: Format, codes: list[int], steps: list[tuple[str, Number]], second: bool = True
) -> tuple[list[int], int]:
    """Return items and flags of an array that some bounds limit one after the other."""
    found, flags = [], 0
    bounds = [(operations.BINARY[op], *bound(f, v)) for op, v in steps]
    for code in codes:
        x = decoded(f, code)
        for operation, v, before in bounds:
            x, _ = operation(x, v) if second else operation(v, x)
            flags |= before
        item, after = codec.encode(f, x)
        found.append(item)
        flags |= after
    return found, flags


def bounds(f: Format) -> list[Number]:
    maximum = float(f.max_value)
    return [
        *(0, 1, -1.0, 0.3, -0.0, 1e5, -1e5, 1000, 10**400, -(10**400), 1e39, -1e39),
        *(float("inf"), -float("inf"), float("nan"), maximum, -maximum, 1e-60),
        *(maximum * 1.01, -maximum * 1.2, maximum * 2, -2 * maximum),
    ]


@each_format
@pytest.mark.sampled(2)
@pytest.mark.parametrize("ufunc", EXTREMES, ids=lambda x: x.__name__)
def test_extremes(f: Format, ufunc: Any) -> None:
    items = some_items(f)
    items = np.concatenate([items[:3], items[-3:], items[:: max(items.size // 40, 1)]])
    for v in bounds(f):
        for second in (True, False):
            want, flags = outcome(f, items.tolist(), [(ufunc.__name__, v)], second)
            x = array(f, items)
            operands = (x, v) if second else (v, x)
            found, seen = raised(ufunc, *operands)
            assert_items(
                f, items_of(f, found), np.array(want, items.dtype), f"{v}", items
            )
            assert seen == flags, (v, second)
            strided, _ = raised(
                ufunc, *(y.repeat(2)[::2] if y is x else y for y in operands)
            )
            assert np.array_equal(items_of(f, strided), items_of(f, found))


@each_format
def test_clip(f: Format) -> None:
    items = some_items(f)
    items = np.concatenate([items[:3], items[-3:], items[:: max(items.size // 20, 1)]])
    x = array(f, items)
    for number, low in enumerate(bounds(f)):
        for high in bounds(f)[number % 5 :: 5]:
            steps = [("maximum", low), ("minimum", high)]
            want, flags = outcome(f, items.tolist(), steps)
            found, seen = raised(np.clip, x, low, high)
            assert_items(
                f, items_of(f, found), np.array(want, items.dtype), f"{low} {high}"
            )
            assert seen == flags, (low, high)
            method, _ = raised(x.clip, low, high)
            assert np.array_equal(items_of(f, method), items_of(f, found))


@each_format
@pytest.mark.filterwarnings("ignore:(overflow|invalid)")
def test_nextafter(f: Format) -> None:
    """Step toward a number out of range: to the last number, and then overflow."""
    items = some_items(f)
    x = array(f, items)
    least = (
        codec.encode(f, codec.from_float(float(f.max_value) * -1))[0] if f.signed else 0
    )
    for v in bounds(f):
        toward, flags = codec.encode(f, exact(v))
        is_beyond = v == v and bool(flags & (OVER | INVALID))
        want, seen = [], 0
        last = (f.max_code << f.shift) if v > 0 else least
        for item in items.tolist():
            item = codec.clean(f, item)
            if is_beyond and item == last:
                want.append(toward)
                seen |= flags
            else:
                found, after = operations.nextafter(
                    f, item, last if is_beyond else toward
                )
                want.append(found)
                seen |= after | (0 if is_beyond else flags)
        result, raises = raised(np.nextafter, x, v)
        assert_items(f, items_of(f, result), np.array(want, items.dtype), f"{v}", items)
        assert raises == seen, v
        assert np.array_equal(
            items_of(f, np.nextafter(x[::2], v)), items_of(f, result[::2])
        )
    up = np.nextafter(x[0], np.inf)
    assert up == np.nextafter(x, np.inf)[0]
    assert type(up) is x.dtype.type
    with np.errstate(all="ignore"):
        assert np.nextafter(1, x).dtype == x.dtype  # an operand is rounded


def numbers_of(f: Format) -> np.ndarray[Any, Any]:
    items = some_items(f)
    return array(f, items[np.isfinite(values(f, items))])


@each_format
def test_a_bound_beyond_the_range_keeps_the_elements(f: Format) -> None:
    x = numbers_of(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for far in (1e300, 10**400, float("inf")):
            for kept in (
                np.clip(x, -far, far),
                x.clip(min=-far, max=far),
                np.minimum(x, far),
                np.maximum(-far, x),
                np.fmin(far, x),
                np.fmax(x, -far),
                np.minimum(x, far, dtype=x.dtype),
                np.clip(x, -far, x),
                np.clip(x, x, far, out=np.zeros_like(x)),
            ):
                assert np.array_equal(td.bits(kept), td.bits(x))
        assert np.minimum(x[0], 1e300) == x[0]


def test_bounds_among_arrays() -> None:
    """Keep bounds that are arrays exact, together with a Python number."""
    x = np.array([1, 5, 448], td.float8_e4m3fn)
    low, high = np.array([2, 2, 2], np.int8), np.array([3, 4, 5], td.float6_e2m3fn)
    found = np.clip(x, high, 1e6)
    assert found.dtype == td.float8_e4m3fn
    assert found.tolist() == [3, 5, 448]
    assert np.clip(1e6, x, x).tolist() == [1, 5, 448]
    assert np.clip(1e6, -1e6, x).tolist() == [1, 5, 448]
    assert np.clip(3, x, 10**30).tolist() == [3, 5, 448]
    assert np.clip(x.astype(td.bfloat16), low, 1e40).tolist() == [2, 5, 448]
    assert np.clip(x, np.float32(-1e6), 1e6).dtype == np.float32
    assert np.minimum(x, np.float64(1e6)).dtype == np.float64


def test_where_and_assignment_round_the_number() -> None:
    """Round the number as an assignment would, as with float16."""
    x = np.array([1, 2], td.float8_e4m3fn)
    with np.errstate(over="ignore"):
        assert np.where([True, True], x, 1e6).tolist() == [1, 2]
        chosen = np.where([True, False], x, 1e6)
    assert chosen[0] == 1
    assert np.isnan(chosen[1])
    with pytest.warns(RuntimeWarning, match="overflow"):
        x[0] = 1e6
    with pytest.warns(RuntimeWarning, match="overflow"):
        x + 1e6


def test_the_hidden_dtype_does_no_harm() -> None:
    """Use the hidden dtype, which NumPy returns for the operands of a comparison."""
    exact = np.less.resolve_dtypes((np.dtype(td.bfloat16), int, None))[1]
    ones = np.ones(3, exact)
    assert [ones[i] for i in range(3)] == [1.0, 1.0, 1.0]
    assert str(ones)
    assert str(np.zeros(2, [("a", exact)]))
    assert ones.tolist() == [1.0, 1.0, 1.0]
