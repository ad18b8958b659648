"""Exact operations on exact numbers, settled by integers and integer roots.

Each function takes `Exact` numbers. It returns an `Exact` number with the flags that
the exact operation raises (divide at a pole, invalid where there is no value). Overflow
and underflow belong to the rounding that follows. Special cases are those of IEEE
754-2019 and of C's functions. Where NumPy defines more (floor_divide, remainder,
logical and order functions), they are NumPy's.
"""

from collections.abc import Callable
from math import isqrt

from .codec import DIVIDE, INVALID, NAN, Exact, infinity, zero

Result = tuple[Exact, int]

ONE = Exact(False, 1)
INVALID_NAN: Result = (NAN, INVALID)
QUIET_NAN: Result = (NAN, 0)


def is_zero(x: Exact) -> bool:
    return not x.special and x.integer == 0


def is_integer(x: Exact) -> bool:
    if x.special or x.exponent >= 0:
        return not x.special
    return x.integer & ((1 << -x.exponent) - 1) == 0


def aligned(x: Exact, y: Exact) -> tuple[int, int, int]:
    """Return two finite numbers as signed integers in units of 2**exponent."""
    exponent = min(x.exponent, y.exponent)
    m = x.integer << (x.exponent - exponent)
    n = y.integer << (y.exponent - exponent)
    return (-m if x.negative else m), (-n if y.negative else n), exponent


def order(x: Exact, y: Exact) -> int:
    """Return -1, 0 or 1 if x is less than, equal to or greater than y, without NaNs."""
    if x.special or y.special:
        a = (-1 if x.negative else 1) if x.special else 0
        b = (-1 if y.negative else 1) if y.special else 0
    else:
        a, b, _ = aligned(x, y)
    return (a > b) - (a < b)


def negated(x: Exact) -> Exact:
    return x._replace(negative=not x.negative)


def either_nan(x: Exact, y: Exact) -> bool:
    return x.special == "nan" or y.special == "nan"


# -- IEEE 754's operations ---------------------------------------------------


def add(x: Exact, y: Exact) -> Result:
    if either_nan(x, y):
        return QUIET_NAN
    if x.special and y.special and x.negative != y.negative:
        return INVALID_NAN
    if x.special or y.special:
        return (x if x.special else y), 0
    m, n, exponent = aligned(x, y)
    total = m + n
    if total == 0:  # the sum is -0 only for -0 + -0
        return zero(x.negative and y.negative), 0
    return Exact(total < 0, abs(total), exponent), 0


def subtract(x: Exact, y: Exact) -> Result:
    return add(x, negated(y))


def multiply(x: Exact, y: Exact) -> Result:
    if either_nan(x, y):
        return QUIET_NAN
    negative = x.negative != y.negative
    if x.special or y.special:
        if is_zero(x) or is_zero(y):
            return INVALID_NAN
        return infinity(negative), 0
    return Exact(negative, x.integer * y.integer, x.exponent + y.exponent), 0


def square(x: Exact) -> Result:
    return multiply(x, x)


def divide(x: Exact, y: Exact) -> Result:
    if either_nan(x, y):
        return QUIET_NAN
    negative = x.negative != y.negative
    if x.special:
        return INVALID_NAN if y.special else (infinity(negative), 0)
    if is_zero(y):
        return INVALID_NAN if is_zero(x) else (infinity(negative), DIVIDE)
    if y.special or is_zero(x):
        return zero(negative), 0
    shift = 64 + y.integer.bit_length()
    quotient, rest = divmod(x.integer << shift, y.integer)
    exponent = x.exponent - y.exponent - shift
    return Exact(negative, quotient, exponent, rest != 0), 0


def reciprocal(x: Exact) -> Result:
    return divide(ONE, x)


def root(negative: bool, radicand: int, exponent: int) -> Exact:
    """Return the square root of radicand * 2**exponent, to at least 64 bits."""
    shift = 128 + (exponent & 1)
    radicand <<= shift
    result = isqrt(radicand)
    return Exact(negative, result, (exponent - shift) // 2, result * result != radicand)


def sqrt(x: Exact) -> Result:
    if x.special == "nan":
        return QUIET_NAN
    if is_zero(x):
        return x, 0
    if x.negative:
        return INVALID_NAN
    return (x if x.special else root(False, x.integer, x.exponent)), 0


def cbrt(x: Exact) -> Result:
    if x.special or is_zero(x):
        return QUIET_NAN if x.special == "nan" else (x, 0)
    shift = 192 + x.exponent % 3
    radicand = x.integer << shift
    low, high = 0, 1 << (radicand.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= radicand else (low, middle)
    return Exact(x.negative, low, (x.exponent - shift) // 3, low**3 != radicand), 0


def hypot(x: Exact, y: Exact) -> Result:
    if x.special == "inf" or y.special == "inf":
        return infinity(), 0  # even if the other is NaN: IEEE 754-2019, 9.2.1
    if either_nan(x, y):
        return QUIET_NAN
    m, n, exponent = aligned(x, y)
    if m == n == 0:
        return zero(), 0
    return root(False, m * m + n * n, 2 * exponent), 0


# -- quotients and remainders ------------------------------------------------


def fmod(x: Exact, y: Exact) -> Result:
    """Return the remainder of the truncated quotient; it has the sign of x."""
    if either_nan(x, y):
        return QUIET_NAN
    if x.special or is_zero(y):
        return INVALID_NAN
    if y.special:
        return x, 0
    m, n, exponent = aligned(x, y)
    return Exact(x.negative, abs(m) % abs(n), exponent), 0


def remainder(x: Exact, y: Exact) -> Result:
    """Return the remainder of the floored quotient; it has the sign of y."""
    if either_nan(x, y):
        return QUIET_NAN
    if x.special or is_zero(y):
        return INVALID_NAN
    if y.special:
        if is_zero(x):
            return zero(y.negative), 0
        return (x if x.negative == y.negative else y), 0
    m, n, exponent = aligned(x, y)
    return Exact(y.negative, abs(m % n), exponent), 0


def floor_divide(x: Exact, y: Exact) -> Result:
    if either_nan(x, y):
        return QUIET_NAN
    if is_zero(y) or is_zero(x):
        return divide(x, y)
    if x.special:
        return INVALID_NAN
    if y.special:
        return (zero() if x.negative == y.negative else negated(ONE)), 0
    m, n, _ = aligned(x, y)
    return Exact(x.negative != y.negative, abs(m // n)), 0


# -- rounding to integers ----------------------------------------------------


def _integral(pick: Callable[[int, int], int]) -> Callable[[Exact], Result]:
    """Return an operation that rounds m / 2**shift to the integer pick(m, shift)."""

    def operation(x: Exact) -> Result:
        if x.special == "nan":
            return QUIET_NAN
        if x.special or x.exponent >= 0:
            return x, 0
        m = -x.integer if x.negative else x.integer
        return Exact(x.negative, abs(pick(m, -x.exponent))), 0

    return operation


def _half_even(m: int, shift: int) -> int:
    whole, rest = divmod(m, 1 << shift)
    half = 1 << (shift - 1)
    return whole + (rest > half or (rest == half and whole & 1))


floor = _integral(lambda m, shift: m >> shift)
ceil = _integral(lambda m, shift: -(-m >> shift))
trunc = _integral(lambda m, shift: m >> shift if m >= 0 else -(-m >> shift))
rint = _integral(_half_even)


def fraction_part(x: Exact) -> Result:
    """Return the first result of modf. The second result is trunc."""
    if x.special == "nan":
        return QUIET_NAN
    if x.special:
        return zero(x.negative), 0
    if x.exponent >= 0:
        return zero(x.negative), 0
    return x._replace(integer=x.integer & ((1 << -x.exponent) - 1)), 0


def frexp_mantissa(x: Exact) -> Result:
    if x.special or is_zero(x):
        return QUIET_NAN if x.special == "nan" else (x, 0)
    return x._replace(exponent=-x.integer.bit_length()), 0


def frexp_exponent(x: Exact) -> int:
    if x.special or is_zero(x):
        return 0
    return x.integer.bit_length() + x.exponent


def ldexp(x: Exact, n: int) -> Result:
    if x.special == "nan":
        return QUIET_NAN
    if x.special or is_zero(x):
        return x, 0
    return x._replace(exponent=x.exponent + n), 0


# -- signs and order ---------------------------------------------------------


def sign(x: Exact) -> Result:
    if x.special == "nan":
        return QUIET_NAN
    return (zero() if is_zero(x) else ONE._replace(negative=x.negative)), 0


def heaviside(x: Exact, y: Exact) -> Result:
    if x.special == "nan":
        return QUIET_NAN
    if is_zero(x):
        return QUIET_NAN if y.special == "nan" else (y, 0)
    return (zero() if x.negative else ONE), 0


def _larger(x: Exact, y: Exact) -> Exact:
    way = order(x, y)
    if way == 0:  # -0 < +0
        return y if x.negative else x
    return x if way > 0 else y


def _smaller(x: Exact, y: Exact) -> Exact:
    return y if _larger(x, y) is x else x


def maximum(x: Exact, y: Exact) -> Result:
    return QUIET_NAN if either_nan(x, y) else (_larger(x, y), 0)


def minimum(x: Exact, y: Exact) -> Result:
    return QUIET_NAN if either_nan(x, y) else (_smaller(x, y), 0)


def _ignoring_nan(
    operation: Callable[[Exact, Exact], Exact],
) -> Callable[[Exact, Exact], Result]:
    def ignoring(x: Exact, y: Exact) -> Result:
        if x.special == "nan":
            return QUIET_NAN if y.special == "nan" else (y, 0)
        return (x if y.special == "nan" else operation(x, y)), 0

    return ignoring


fmax = _ignoring_nan(_larger)
fmin = _ignoring_nan(_smaller)


def _comparison(accept: Callable[[int], bool]) -> Callable[[Exact, Exact], bool]:
    def compare(x: Exact, y: Exact) -> bool:
        return not either_nan(x, y) and accept(order(x, y))

    return compare


equal = _comparison(lambda way: way == 0)
less = _comparison(lambda way: way < 0)
less_equal = _comparison(lambda way: way <= 0)
greater = _comparison(lambda way: way > 0)
greater_equal = _comparison(lambda way: way >= 0)


def not_equal(x: Exact, y: Exact) -> bool:
    return not equal(x, y)


def truth(x: Exact) -> bool:
    """Return the truth value of x. NaN counts as true, as in Python."""
    return not is_zero(x)
