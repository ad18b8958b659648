"""Make operands whose exact result is close to halfway between two numbers.

Such operands expose a computation that rounds twice, and a function with small errors.
Among random operands, only one in thousands does.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from tests.reference.codec_arrays import (
    Floats,
    Items,
    encode,
    item_type,
    midpoints,
    values,
)
from tests.reference.formats import Format

Integers = npt.NDArray[np.int64]
Pairs = tuple[Items, Items]


def _closest(distance: Integers) -> Integers:
    count = distance.size // 256
    return np.argpartition(distance, count)[:count]


def _significands(f: Format) -> tuple[Integers, Integers]:
    one = np.arange(1 << f.mantissa_bits, 2 << f.mantissa_bits)
    return np.repeat(one, one.size), np.tile(one, one.size)


def _place(
    f: Format,
    rng: np.random.Generator,
    first: Integers,
    second: Integers,
    exponent: Integers,
    sign: int,
) -> Pairs:
    """Scale significands by powers of two, and return the items of the numbers.
    `exponent` is the sum of the two exponents, or their difference if sign is -1."""
    low, high = f.least_exponent, f.bias - f.mantissa_bits
    if sign > 0:
        bottom = np.maximum(low, exponent - high)
        top = np.minimum(high, exponent - low)
    else:
        bottom = np.maximum(low, exponent + low)
        top = np.minimum(high, exponent + high)
    own = rng.integers(bottom, top + 1)
    other = sign * (exponent - own)
    numbers = []
    for integers, scale in ((first, own), (second, other)):
        signs = rng.choice([-1.0, 1.0], integers.size)
        numbers.append(encode(f, signs * np.ldexp(integers.astype(float), scale))[0])
    return numbers[0], numbers[1]


@cache
def _hard_products(f: Format) -> Integers:
    """Return columns: two significands, and the low bits that their product loses.

    All significands are tried. A product that loses s bits is near a tie if the lost
    bits are close to 2**(s - 1).
    """
    p = f.mantissa_bits + 1
    first, second = _significands(f)
    found = []
    for lost in range(p - 1, 2 * p + 1):
        rest = (first * second) & ((1 << lost) - 1)
        chosen = _closest(np.abs(rest - (1 << (lost - 1))))
        lost_bits = np.full(chosen.size, lost)
        found.append(np.stack([first[chosen], second[chosen], lost_bits]))
    return np.concatenate(found, axis=1)


def products(f: Format, rng: np.random.Generator, count: int) -> Pairs:
    """Return factors whose products are near ties; most products are subnormal."""
    p = f.mantissa_bits + 1
    table = _hard_products(f)
    a, b, lost = table[:, rng.integers(0, table.shape[1], count)]
    exponent = f.least_exponent - lost
    normal = lost <= p
    high = 2 * (f.bias - f.mantissa_bits) - p
    exponent[normal] = rng.integers(f.least_exponent, high, normal.sum())
    return _place(f, rng, a, b, exponent, 1)


@cache
def _hard_quotients(f: Format) -> Integers:
    """Return columns of two significands, and the bits after the point of the quotient.
    Near a tie the remainder is close to half of the divisor."""
    first, second = _significands(f)
    found = []
    for kept in range(f.mantissa_bits + 2):
        rest = (first << kept) % second
        chosen = _closest(np.abs(2 * rest - second))
        places = np.full(chosen.size, kept)
        found.append(np.stack([first[chosen], second[chosen], places]))
    return np.concatenate(found, axis=1)


def quotients(f: Format, rng: np.random.Generator, count: int) -> Pairs:
    """Return operands whose quotients are near ties; most quotients are subnormal."""
    p = f.mantissa_bits + 1
    table = _hard_quotients(f)
    a, b, kept = table[:, rng.integers(0, table.shape[1], count)]
    exponent = f.least_exponent + kept
    normal = kept >= p - 1
    exponent[normal] = rng.integers(-2 * f.bias + p, f.bias, normal.sum())
    exponent = np.maximum(exponent, f.least_exponent - f.bias + f.mantissa_bits)
    return _place(f, rng, a, b, exponent, -1)


def sums(f: Format, rng: np.random.Generator, count: int) -> Pairs:
    """Return terms whose sums are near ties. The sum loses low bits of the smaller
    term. These bits are close to half a unit."""
    p = f.mantissa_bits + 1
    gap = rng.integers(1, p + 3, count)
    first = rng.integers(1 << (p - 1), 1 << p, count)
    half = np.int64(1) << (gap - 1)
    low = half + rng.integers(-1, 2, count)
    high = rng.integers(0, 1 << p, count) << gap
    second = np.clip((high | low) & ((1 << p) - 1), 1, None)
    scale = rng.integers(f.least_exponent, f.bias - 2 * p - 4, count)
    x = np.ldexp(first.astype(float), scale + gap)
    y = np.ldexp(second.astype(float), scale)
    x, y = (z * rng.choice([-1.0, 1.0], count) for z in (x, y))
    swap = rng.random(count) < 0.5
    items = encode(f, np.where(swap, y, x))[0], encode(f, np.where(swap, x, y))[0]
    return items


ARITHMETIC: dict[str, Callable[[Format, np.random.Generator, int], Pairs]] = {
    "add": sums,
    "subtract": sums,
    "multiply": products,
    "divide": quotients,
}


# -- functions: a midpoint and one operand give the second operand -------------


def _above(f: Format, x: Floats, rng: np.random.Generator, reach: int) -> Floats:
    """Return a midpoint a few steps above each of the positive numbers x."""
    _, middle = midpoints(f)
    code = np.searchsorted(middle, x) + rng.integers(0, reach, x.size)
    return middle[np.minimum(code, middle.size - 2)]


def _number(f: Format, x: Floats) -> Floats:
    return values(f, encode(f, x)[0])


def _power(f: Format, rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """Return operands of power with results near 1. There a step of the second operand
    changes the result by much less than one unit."""
    x = _number(f, np.exp(rng.standard_normal(count) * rng.choice([0.1, 3], count)))
    x[x == 1] = 3
    t = _above(f, np.ones(count), rng, 12)
    y = np.log(np.where(rng.random(count) < 0.5, t, 1 / t)) / np.log(x)
    small = rng.random(count) < 0.05  # exact ties: few bits to a small power
    x[small] = rng.integers(1, 1 << (f.mantissa_bits // 2 + 2), small.sum())
    y[small] = rng.choice([2.0, 3.0, 1.5, 0.5, 4.0, -1.0, -2.0], small.sum())
    return x, y


def _hypot(f: Format, rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    x = _number(f, np.ldexp(rng.random(count) + 1, rng.integers(-132, 120, count)))
    t = _above(f, x, rng, 4)
    return x, np.sqrt((t - x) * (t + x))


def _arctan2(f: Format, rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """Return operands with angles near a quarter and half turn, and small angles."""
    y = _number(f, np.ldexp(rng.random(count) + 1, rng.integers(-60, 60, count)))
    _, middle = midpoints(f)
    near = np.searchsorted(middle, rng.choice([np.pi / 2, np.pi], count))
    t = middle[near + rng.integers(-40, 40, count)]
    return y, y / np.tan(t)


def _logaddexp(
    f: Format, rng: np.random.Generator, count: int, base: float
) -> tuple[Floats, Floats]:
    x = _number(f, np.ldexp(rng.random(count) + 1, rng.integers(-6, 12, count)))
    x *= rng.choice([-1.0, 1.0], count)
    step = np.abs(_above(f, np.abs(x), rng, 3) - np.abs(x))
    return x, x + np.log(np.expm1(step * np.log(base))) / np.log(base)


_SOLVED: dict[
    str, Callable[[Format, np.random.Generator, int], tuple[Floats, Floats]]
] = {
    "power": _power,
    "hypot": _hypot,
    "arctan2": _arctan2,
    "logaddexp": lambda f, rng, count: _logaddexp(f, rng, count, np.e),
    "logaddexp2": lambda f, rng, count: _logaddexp(f, rng, count, 2.0),
}
FUNCTIONS = tuple(_SOLVED)


def solved(function: str, f: Format, rng: np.random.Generator, count: int) -> Pairs:
    """Return pairs whose function value is near a midpoint, and their neighbors."""
    with np.errstate(all="ignore"):
        x, y = _SOLVED[function](f, rng, count)
    first, second = encode(f, x)[0], encode(f, y)[0]
    step = rng.integers(-1, 2, count) << f.shift
    second = (second + step.astype(second.dtype)).astype(second.dtype)
    if function != "arctan2":
        return first, second
    return tuple(
        np.concatenate(pair)
        for pair in zip((first, second), quotients(f, rng, count // 4), strict=True)
    )  # type: ignore[return-value]


# -- casts: numbers one step from each midpoint --------------------------------


@cache
def codes_around(f: Format) -> tuple[Floats, tuple[Items, Items, Items]]:
    """Return each midpoint, and the codes for numbers below, at and above it. A
    midpoint itself rounds to the even code, and in e8m0 upward."""
    codes, middle = midpoints(f)
    beyond = f.max_code
    if f.infinity is not None:
        beyond = f.infinity
    elif f.nan is not None:
        beyond = f.nan
    upper = np.where(codes == f.max_code, beyond, codes + 1)
    even = np.where((codes % 2 == 0) & (not f.powers), codes, upper)
    return middle, (codes << f.shift, even << f.shift, upper << f.shift)


def beside_midpoints(f: Format, wide: type[np.floating]) -> tuple[np.ndarray, Items]:
    """Return each midpoint and its two neighbors in a wider type, and their codes.
    Midpoints that the type cannot represent are left out."""
    middle, (below, even, above) = codes_around(f)
    with np.errstate(over="ignore"):
        exact = middle.astype(wide)
    held = exact.astype(np.float64) == middle
    exact = exact[held]
    infinity = wide(np.inf)
    numbers = [np.nextafter(exact, -infinity), exact, np.nextafter(exact, infinity)]
    codes = [below[held], even[held], above[held]]
    return np.concatenate(numbers), np.concatenate(codes).astype(item_type(f))


def integers_beside_midpoints(
    f: Format, wide: type[np.integer]
) -> tuple[np.ndarray, Items]:
    """Return the integers at each midpoint and one below and above it, and their codes.
    The type has at least 32 bits. Its limits are therefore not among the integers."""
    limits = np.iinfo(wide)
    middle, codes = codes_around(f)
    held = (middle == np.rint(middle)) & (middle < float(limits.max))
    whole = middle[held].astype(np.uint64)
    steps = [whole - np.uint64(1), whole, whole + np.uint64(1)]
    numbers = np.concatenate(steps).astype(wide)
    items = np.concatenate([code[held] for code in codes]).astype(item_type(f))
    if limits.min == 0:
        return numbers, items
    positive = numbers > 0
    negative = negative_items(f, items[positive])
    return (
        np.concatenate([numbers, -numbers[positive]]),
        np.concatenate([items, negative]),
    )


def negative_items(f: Format, items: Items) -> Items:
    """Return the items of a cast of negated numbers, from those of positive numbers."""
    if f.powers:
        assert f.nan is not None
        return np.full_like(items, f.nan)
    negative = items | np.array(f.sign_bit << f.shift, items.dtype)
    return negative if f.negative_zero else np.where(items == 0, items, negative)


def both_signs(f: Format, x: np.ndarray, items: Items) -> tuple[np.ndarray, Items]:
    return np.concatenate([x, -x]), np.concatenate([items, negative_items(f, items)])
