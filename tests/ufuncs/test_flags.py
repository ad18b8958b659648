"""NumPy's floating-point flags: exactly those of each element's result."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.reference import codec, operations, ufuncs
from tests.reference.codec_arrays import (
    Flags,
    Items,
    all_items,
    encode,
    random_items,
    values,
)
from tests.reference.formats import Format
from tests.support.bits import ALL, BYTES, array, dtype, name, raised
from tests.support.near_ties import beside_midpoints, both_signs
from tests.ufuncs.test_binary import moderate_pairs

SINGLES, CHANGES = 4, 80


def check(
    function: Callable[..., Any], flags: Flags, what: str, *operands: np.ndarray
) -> int:
    """Check elements with equal flags together, in pieces, and some one by one.

    A piece raises exactly the flags that each of its elements should raise. Other
    elements may hide one that raises too few. Therefore elements next to a change of
    flags, as the smallest normal and the largest number, are also checked one by one.
    """
    rng = np.random.default_rng(24)
    changes = np.flatnonzero(np.diff(flags, prepend=flags[0], append=flags[-1]))
    changes = np.unique(np.concatenate([changes[changes < flags.size], changes - 1]))
    if changes.size > CHANGES:
        changes = rng.choice(changes, CHANGES, replace=False)
    for want in np.unique(flags):
        where = np.flatnonzero(flags == want)
        pieces = np.array_split(where, min(8, where.size))
        pieces += [where[[i]] for i in rng.integers(0, where.size, SINGLES)]
        pieces += list(changes[flags[changes] == want, None])
        for piece in pieces:
            chosen = [x[piece] for x in operands]
            _, found = raised(function, *chosen)
            if found != want:
                shown = ", ".join(str(x[:3]) for x in chosen)
                raise AssertionError(
                    f"{what}: flags {found}, want {want}, of {shown} ({piece.size})"
                )
    return flags.size


def check_each(ufunc: np.ufunc, flags: Flags, what: str, *operands: np.ndarray) -> int:
    """Check every element that raises a flag, one by one."""
    seen = [0]

    def record(_: str, found: int) -> None:
        seen[0] |= found

    results = [np.empty(1, operands[0].dtype) for _ in range(ufunc.nout)]
    with np.errstate(all="call", call=record):
        for i in np.flatnonzero(flags):
            seen[0] = 0
            ufunc(*(x[i : i + 1] for x in operands), *results)
            assert seen[0] == flags[i], (
                f"{what}: flags {seen[0]}, want {flags[i]}, of"
                f" {', '.join(str(x[i]) for x in operands)}"
            )
    return flags.size


@pytest.mark.sampled(8)
@pytest.mark.parametrize("function", operations.UNARY)
@pytest.mark.parametrize("f", ALL, ids=name)
def test_unary(f, function, compared):
    items = all_items(f)
    _, flags = ufuncs.unary(function, f, items)
    compared(check(getattr(np, function), flags, function, array(f, items)))
    # The flags of some elements do not hide those of others.
    rng = np.random.default_rng(25)
    for size in (3, 40, 1500):
        chosen = rng.integers(0, items.size, size)
        _, found = raised(getattr(np, function), array(f, items[chosen]))
        assert found == np.bitwise_or.reduce(flags[chosen]), function
    where = [np.flatnonzero(flags == want)[0] for want in np.unique(flags)]
    for pair in itertools.combinations(where, 2):
        _, found = raised(getattr(np, function), array(f, items[list(pair) * 20]))
        assert found == flags[pair[0]] | flags[pair[1]], (function, items[list(pair)])


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "functions",
    [*((function,) for function in operations.BINARY), ("floor_divide", "remainder")],
    ids=lambda functions: functions[0] if len(functions) == 1 else "divmod",
)
@pytest.mark.parametrize("f", ALL, ids=name)
def test_binary(f, functions, compared):
    items = all_items(f)
    if f.count <= 256:
        first, second = np.repeat(items, items.size), np.tile(items, items.size)
    else:
        first, second = moderate_pairs(f, 30_000)
    a, b = array(f, first), array(f, second)
    flags = np.zeros(first.size, np.uint8)
    for function in functions:
        flags |= ufuncs.binary(function, f, first, second)[1]
    ufunc = np.divmod if len(functions) > 1 else getattr(np, functions[0])
    compared(check(ufunc, flags, ufunc.__name__, a, b))


@pytest.mark.exhaustive
@pytest.mark.parametrize("f", ALL, ids=name)
def test_every_code_by_itself(f, compared):
    items = all_items(f)
    a = array(f, items)
    for function in operations.UNARY:
        _, flags = ufuncs.unary(function, f, items)
        compared(check_each(getattr(np, function), flags, function, a))


@pytest.mark.exhaustive
@pytest.mark.parametrize("f", BYTES, ids=name)
def test_every_pair_by_itself(f, compared):
    items = all_items(f)
    first, second = np.repeat(items, items.size), np.tile(items, items.size)
    a, b = array(f, first), array(f, second)
    for function in operations.BINARY:
        _, flags = ufuncs.binary(function, f, first, second)
        compared(check_each(getattr(np, function), flags, function, a, b))


def quiet(f: Format) -> tuple[Items, Items]:
    rng = np.random.default_rng(26)
    if f.count > 256:
        return tuple(random_items(f, rng, (2, 20_000)))  # type: ignore[return-value]
    items = all_items(f)
    return np.repeat(items, items.size), np.tile(items, items.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_what_never_raises(f, compared):
    """Raise no flag in comparisons and predicates, signaling NaNs included."""
    a, b = (array(f, x) for x in quiet(f))
    for function in operations.COMPARISON:
        assert raised(getattr(np, function), a, b)[1] == 0, function
    for function in operations.PREDICATE:
        assert raised(getattr(np, function), a)[1] == 0, function
    order = ("maximum", "minimum", "fmax", "fmin")
    if f.powers:
        order += ("copysign", "absolute", "positive")
    elif f.nan is not None:
        order += ("copysign", "absolute", "negative", "positive", "conjugate", "fabs")
    for function in order:
        ufunc = getattr(np, function)
        assert raised(ufunc, *(a, b)[: ufunc.nin])[1] == 0, function
    compared(a.size * (len(operations.COMPARISON) + len(order)))


@pytest.mark.parametrize("f", ALL, ids=name)
def test_on_bits(f, compared):
    first, second = (x[::11] for x in quiet(f))
    flags = [
        operations.nextafter(f, int(x), int(y))[1]
        for x, y in zip(first, second, strict=True)
    ]
    compared(
        check(
            np.nextafter,
            np.array(flags, np.uint8),
            "nextafter",
            array(f, first),
            array(f, second),
        )
    )
    items = np.unique(first)
    flags = [operations.spacing(f, int(item))[1] for item in items]
    found = array(f, items)
    compared(check(np.spacing, np.array(flags, np.uint8), "spacing", found))


@pytest.mark.parametrize("f", ALL, ids=name)
def test_ldexp(f, compared):
    rng = np.random.default_rng(27)
    items = np.repeat(random_items(f, rng, 300), 6)
    shifts = rng.integers(-160, 160, items.size).astype(np.intc)
    flags = [
        operations.ldexp(f, int(x), int(n))[1]
        for x, n in zip(items, shifts, strict=True)
    ]
    what = np.array(flags, np.uint8)
    compared(check(np.ldexp, what, "ldexp", array(f, items), shifts))


# -- casts ---------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wide", [np.float64, np.float32, np.longdouble])
@pytest.mark.parametrize("f", ALL, ids=name)
def test_from_floats(f, wide, compared):
    x, _ = both_signs(f, *beside_midpoints(f, wide))
    rng = np.random.default_rng(28)
    x = rng.choice(x, min(2000, x.size), replace=False)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, -1e-310]
    edges += [float(f.max_value), 1.01 * float(f.max_value), 2.0**f.normal_exponent]
    edges += [np.nextafter(edge, 0) for edge in edges]
    with np.errstate(all="ignore"):
        x = np.concatenate([x, np.array(edges).astype(wide)])
    flags = []
    for number in x:
        exact = codec.from_float(float(number))
        if np.isfinite(number) and number != 0:
            n, d = number.as_integer_ratio()
            exact = codec.from_ratio(abs(n), d, n < 0)
        flags.append(codec.encode(f, exact)[1])
    target = dtype(f)
    what = f"{wide.__name__} -> {f.name}"
    found = check(lambda v: v.astype(target), np.array(flags, np.uint8), what, x)
    compared(found)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_from_integers(f, compared):
    """Cast integers of each size; in some formats no small integer raises a flag."""
    numbers = {*range(-600, 600)}
    numbers |= {s * 2**k - d for k in range(65) for s in (1, -1) for d in (0, 1)}
    flags = {v: codec.encode(f, codec.from_int(v))[1] for v in sorted(numbers)}
    target = dtype(f)
    for integer in "bBhHiIqQ":
        limits = np.iinfo(integer)
        held = [v for v in flags if limits.min <= v <= limits.max]
        want = np.array([flags[v] for v in held], np.uint8)
        what = f"{integer} -> {f.name}"
        x = np.array(held, integer)
        compared(check(lambda v: v.astype(target), want, what, x))


@pytest.mark.parametrize("f", ALL, ids=name)
def test_between_our_formats(f, compared):
    items = all_items(f)[:: 1 if f.count <= 1 << 16 else 5]
    for g in ALL:
        if g is f:
            continue
        _, flags = encode(g, values(f, items))
        target = dtype(g)
        what = f"{f.name} -> {g.name}"
        compared(check(lambda v: v.astype(target), flags, what, array(f, items)))  # noqa: B023


@pytest.mark.parametrize("f", ALL, ids=name)
def test_from_half_and_bool(f, compared):
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for x in (half, np.array([False, True])):
        _, flags = encode(f, x.astype(np.float64))
        what = f"{x.dtype} -> {f.name}"
        compared(check(lambda v: v.astype(dtype(f)), flags, what, x))


@pytest.mark.parametrize("f", ALL, ids=name)
def test_to_integers(f, compared):
    for integer in "bBhHiIqQ":
        compared(check_to_integer(f, integer))


def check_to_integer(f: Format, integer: str) -> int:
    items = all_items(f)
    limits = np.iinfo(integer)
    whole = np.trunc(values(f, items))
    fits = (whole >= float(limits.min)) & (whole < 2.0 ** int(limits.max).bit_length())
    flags = np.where(fits, 0, codec.INVALID).astype(np.uint8)
    what = f"{f.name} -> {integer}"
    return check(lambda v: v.astype(integer), flags, what, array(f, items))


@pytest.mark.parametrize("f", ALL, ids=name)
def test_to_wider_floats(f, compared):
    """Cast exactly without flags; float16 may overflow or underflow."""
    items = all_items(f)
    for wide in (np.float32, np.float64, np.longdouble, np.complex64, bool):
        _, flags = raised(lambda v: v.astype(wide), array(f, items))  # noqa: B023
        assert flags == 0, wide
        compared(items.size)


# -- reductions and products ---------------------------------------------------


def layouts(x: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Return the same 64 numbers along axes and strides that use different loops."""
    column = np.repeat(x[:, None], 3, axis=1)
    return [
        (x, 0),
        (np.repeat(x, 2)[::2], 0),
        (column, 0),
        (column.T, 1),
        (np.ascontiguousarray(column.T), 1),
        (x[:4], 0),
    ]


@pytest.mark.parametrize("f", ALL, ids=name)
def test_reductions(f, compared):
    """Raise flags by the exact sum or product, rounded once, not by the steps."""
    over = codec.INVALID if f.powers else codec.OVER
    top, least = float(f.max_value), float(f.tiny_value)
    cases = [
        (np.add, np.full(64, top), over),
        (np.multiply, np.full(64, max(2.0, top / 2)), over),
        (np.add, np.full(64, np.nan), 0),
        (np.multiply, np.full(64, 1.0), 0),
        (np.maximum, np.full(64, top), 0),
    ]
    if f.signed:
        balanced = np.resize([top, -top], 64)
        cases += [(np.multiply, np.full(64, least), codec.UNDER)]
        cases += [(np.add, balanced, 0), (np.add, np.zeros(64), 0)]
    if f.infinity is not None:
        cases += [(np.add, np.resize([np.inf, -np.inf], 64), codec.INVALID)]
        cases += [(np.add, np.full(64, np.inf), 0)]
    for ufunc, numbers, want in cases:
        if f.nan is None and np.isnan(numbers).any():
            continue
        x = array(f, encode(f, numbers)[0])
        for layout, axis in layouts(x):
            _, found = raised(lambda u=ufunc, a=layout, n=axis: u.reduce(a, axis=n))
            assert found == want, (ufunc.__name__, numbers[:2], layout.shape, axis)
            compared(layout.size)


@pytest.mark.parametrize("f", ALL, ids=name)
def test_products(f, compared):
    over = codec.INVALID if f.powers else codec.OVER
    for number, want in ((float(f.max_value), over), (1.0, 0)):
        items, _ = encode(f, np.full((3, 3), number))
        a = array(f, items)
        b = array(f, encode(f, np.eye(3) + f.powers)[0]) if want == 0 else a
        for function in (np.matmul, np.vecdot, np.dot):
            _, found = raised(function, a, b)
            assert found == want, (function.__name__, number)
            compared(a.size)
