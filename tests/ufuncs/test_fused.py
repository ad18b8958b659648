"""Fast paths of element-wise operations: tables of one operand, results over operands,
and flags that only some chunks of a long array raise."""

import numpy as np
import pytest

from tests.reference import operations, ufuncs
from tests.reference.codec_arrays import all_items, encode, item_type, random_items
from tests.reference.formats import Format
from tests.support.bits import (
    ALL,
    BYTES,
    WIDE,
    array,
    assert_equal,
    assert_items,
    dtype,
    items_of,
    name,
    raised,
)
from tests.ufuncs.test_binary import at_the_ends, edges

ARITHMETIC = ("add", "subtract", "multiply", "divide")
EXTREMES = ("maximum", "minimum", "fmax", "fmin")
#: From this size on, an operand of a single item uses a table of 256 results.
MANY = 1 << 15


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", ARITHMETIC)
@pytest.mark.parametrize("f", BYTES, ids=name)
def test_one_item_with_many(f: Format, function: str, compared) -> None:
    ufunc = getattr(np, function)
    items = all_items(f)
    a = array(f, items)
    for one in np.unique(edges(f)):
        same = np.full_like(items, one)
        x = array(f, same)[0]
        for operands, arguments in (
            ((items, same), lambda many, x=x: (many, x)),
            ((same, items), lambda many, x=x: (x, many)),
        ):
            want, flags = ufuncs.binary(function, f, *operands)
            # All items, and those that raise no flag.
            for chosen in (np.arange(items.size), np.flatnonzero(flags == 0)):
                if chosen.size == 0:
                    continue
                index = np.resize(chosen, MANY + 7)
                found, seen = raised(ufunc, *arguments(a[index]))
                assert_items(f, items_of(f, found), want[index], function)
                assert seen == np.bitwise_or.reduce(flags[chosen]), function
                backward, _ = raised(ufunc, *arguments(a[index][::-1]))
                assert_items(f, items_of(f, backward), want[index][::-1], function)
                compared(2 * index.size)


@pytest.mark.parametrize("function", ARITHMETIC)
@pytest.mark.parametrize("f", WIDE, ids=name)
def test_flags_of_each_kind_of_result(f: Format, function: str, compared) -> None:
    """Raise flags for subnormal results, zero and Inf, among many and singly."""
    first, second = at_the_ends(f)
    want, flags = ufuncs.binary(function, f, first, second)
    a, b = array(f, first), array(f, second)
    ufunc = getattr(np, function)
    for flag in np.unique(flags):
        chosen = np.flatnonzero(flags == flag)
        found, seen = raised(ufunc, a[chosen], b[chosen])
        assert_items(f, items_of(f, found), want[chosen], function)
        assert seen == flag, function
        for i in chosen[:: max(1, chosen.size // 50)]:
            _, seen = raised(ufunc, a[i : i + 1], b[i : i + 1])
            assert seen == flag, (function, first[i], second[i])
        compared(chosen.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_one_block_of_many_raises(f: Format, compared) -> None:
    """Raise the flags of a single unusual element in any chunk of an array."""
    quiet = np.ones(1, dtype(f))[0]
    first, second = edges(f), edges(f)[::-1].copy()
    for function in ARITHMETIC:
        _, flags = ufuncs.binary(function, f, first, second)
        _, before = ufuncs.binary(
            function, f, *(items_of(f, np.array([quiet])) for _ in range(2))
        )
        for i in range(first.size):
            a = np.full(5000, quiet)
            b = np.full(5000, quiet)
            a[3500], b[3500] = array(f, first)[i], array(f, second)[i]
            _, seen = raised(getattr(np, function), a, b)
            assert seen == flags[i] | before[0], (function, first[i], second[i])
        compared(first.size)


@pytest.mark.parametrize("function", [*ARITHMETIC, "square", "reciprocal"])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_unusual_operands_at_any_position(f: Format, function: str, compared) -> None:
    """Give each kind of result and its flags in every lane, among ordinary elements."""
    count = 2 * 64 + 13  # vectors of bytes and a rest
    operands = 1 if function in ("square", "reciprocal") else 2
    reference = ufuncs.unary if operands == 1 else ufuncs.binary
    code, _ = encode(f, np.array([1.0, 0.0, np.inf, np.nan, -np.inf, 3.0]))
    extremes = np.array([1, f.max_code]) << f.shift
    unusual = np.concatenate([code[1:], extremes.astype(item_type(f))])
    a, b = (np.full((unusual.size**operands, count), code[0]) for _ in range(2))
    pairs = np.meshgrid(unusual, unusual if operands == 2 else code[:1])
    for i in range(count):
        a[:, i], b[:, i] = (x.ravel() for x in pairs)
        want, flags = reference(function, f, *[a.ravel(), b.ravel()][:operands])
        for row, items in enumerate(want.reshape(a.shape)):
            arguments = [array(f, x[row]) for x in (a, b)[:operands]]
            found, seen = raised(getattr(np, function), *arguments)
            assert_items(f, items_of(f, found), items, function, a[row], b[row])
            assert seen == np.bitwise_or.reduce(flags.reshape(a.shape)[row])
        a[:, i] = b[:, i] = code[0]
    compared(a.size * count)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_results_over_operands(f: Format, compared) -> None:
    rng = np.random.default_rng(33)
    first, second = random_items(f, rng, (2, 3000))
    for function in (*ARITHMETIC, *EXTREMES, "copysign"):
        ufunc = getattr(np, function)
        a, b = array(f, first), array(f, second)
        with np.errstate(all="ignore"):
            want = items_of(f, ufunc(a, b))
            over_first, over_second, both = a.copy(), b.copy(), a.copy()
            ufunc(over_first, b, out=over_first)
            ufunc(a, over_second, out=over_second)
            backward = np.empty_like(a)[::-1]
            ufunc(a, b, out=backward)
            twice = items_of(f, ufunc(a, a))
            ufunc(both, both, out=both)
            steps = [ufunc.accumulate(a[:50]), a[:1]]
            for x in a[1:50]:
                steps[1] = np.append(steps[1], ufunc(steps[1][-1], x))
        for found in (over_first, over_second, backward):
            assert_items(f, items_of(f, found), want, function, first, second)
        assert_items(f, items_of(f, both), twice, function, first)
        if function not in ("add", "multiply"):  # these keep more digits
            assert_items(f, items_of(f, steps[0]), items_of(f, steps[1]), function)
        compared(4 * a.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_items_with_unused_bits(f: Format, compared) -> None:
    """Ignore unused bits, and set them to zero in results."""
    rng = np.random.default_rng(34)
    full = np.iinfo(item_type(f)).max
    dirty = rng.integers(0, full, (2, 3000), dtype=item_type(f), endpoint=True)
    used = (f.sign_bit | (f.sign_bit or f.count) - 1) << f.shift
    clean = dirty & item_type(f).type(used)
    for function in (*ARITHMETIC, *EXTREMES, "copysign", *operations.COMPARISON):
        ufunc = getattr(np, function)
        with np.errstate(all="ignore"):
            found = ufunc(*(array(f, x) for x in dirty))
            want = ufunc(*(array(f, x) for x in clean))
        if found.dtype == np.bool_:
            assert_equal(found, want, function)
        else:
            assert_items(f, items_of(f, found), items_of(f, want), function)
        compared(found.size)
    for function in ("negative", "absolute", "positive"):
        with np.errstate(all="ignore"):
            found = getattr(np, function)(array(f, dirty[0]))
            want = getattr(np, function)(array(f, clean[0]))
        assert_items(f, items_of(f, found), items_of(f, want), function)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_order_of_all_pairs(f: Format, compared) -> None:
    """Compare extremes with the reference, for each layout of an operand."""
    items = all_items(f) if f.count <= 256 else np.unique(edges(f))
    first, second = np.repeat(items, items.size), np.tile(items, items.size)
    a, b = array(f, first), array(f, second)
    for function in EXTREMES:
        want, _ = ufuncs.binary(function, f, first, second)
        ufunc = getattr(np, function)
        assert_items(f, items_of(f, ufunc(a, b)), want, function, first, second)
        wide = array(f, items)
        found = ufunc(wide[:, None], wide[None, :]).ravel()
        assert_items(f, items_of(f, found), want, function, first, second)
        square = np.stack([a, b])
        for quiet in (ufunc.accumulate, ufunc.reduce):
            assert raised(quiet, square)[1] == 0, function
        compared(2 * first.size)
