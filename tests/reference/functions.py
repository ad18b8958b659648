"""Transcendental functions, rounded correctly by Ziv's strategy.

Evaluate with mpmath. If both ends of the error interval do not round to the same code
with the same flags, double the precision and evaluate again. This would not end for
exact results and ties, which are therefore settled first. The theorems of Lindemann and
Gelfond-Schneider say which they are: exp, log, the trigonometric and hyperbolic
functions of a nonzero algebraic number (other than log 1) are transcendental, and x**y
is irrational unless it can be written down.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import mpmath
from mpmath import mp

from . import arithmetic
from .arithmetic import INVALID_NAN, ONE, QUIET_NAN, either_nan, is_integer, is_zero
from .codec import DIVIDE, Exact, infinity, zero

#: A function that returns a real number with a precision in bits.
Approximation = Callable[[int], "mpmath.mpf"]
Outcome = tuple[Exact | Approximation, int]

#: mpmath's results are off by at most a few units in the last place.
GUARD_BITS = 12


def to_mpf(x: Exact) -> mpmath.mpf:
    """Return a finite number exactly."""
    integer = -x.integer if x.negative else x.integer
    with mp.workprec(max(53, x.integer.bit_length())):
        return mpmath.mpf((integer, x.exponent))


def _ends(value: mpmath.mpf, precision: int) -> tuple[Exact, Exact]:
    """Return an interval around `value` that contains the exact number."""
    negative, integer, exponent, bits = value._mpf_
    integer = int(integer) << (precision - bits + 2 if bits < precision + 2 else 0)
    exponent = int(exponent) - max(0, precision - bits + 2)
    slack = (integer >> (precision - GUARD_BITS)) + 1
    return (
        Exact(bool(negative), integer - slack, exponent),
        Exact(bool(negative), integer + slack, exponent),
    )


def decide(
    approximation: Approximation, rounded: Callable[[Exact], tuple[int, int]]
) -> tuple[int, int]:
    """Round a number that is neither a tie nor a value of the format."""
    precision = 80
    while precision < 1 << 14:
        with mp.workprec(precision):
            value = approximation(precision)
        if value != 0:
            low, high = map(rounded, _ends(value, precision))
            if low == high:
                return low
        precision *= 2
    raise ArithmeticError("an exact case that was not settled beforehand")


# -- one argument ------------------------------------------------------------


def _unary(
    function: Callable[[mpmath.mpf], mpmath.mpf],
    x: Exact,
    cancels: bool = False,
) -> Outcome:
    """Return an approximation of function(x). `cancels` says that bits are lost where x
    is small or close to a zero of the function."""
    lost = abs(x.integer.bit_length() + x.exponent) if cancels else 0
    argument = to_mpf(x)

    def evaluate(precision: int) -> mpmath.mpf:
        with mp.workprec(precision + min(2 * lost, 1200)):
            return function(argument)

    return evaluate, 0


def exp(x: Exact) -> Outcome:
    if x.special:
        return _exponential_limit(x)
    return (ONE, 0) if is_zero(x) else _unary(mpmath.exp, x)


def _exponential_limit(x: Exact) -> Outcome:
    if x.special == "nan":
        return QUIET_NAN
    return (zero() if x.negative else x), 0


def exp2(x: Exact) -> Outcome:
    if x.special:
        return _exponential_limit(x)
    if is_integer(x):
        n = x.integer << x.exponent if x.exponent > 0 else x.integer >> -x.exponent
        return Exact(False, 1, -n if x.negative else n), 0
    return _unary(lambda t: mpmath.exp(t * mp.ln2), x, cancels=True)


def expm1(x: Exact) -> Outcome:
    if x.special == "inf":
        return (Exact(True, 1) if x.negative else x), 0
    if x.special or is_zero(x):
        return QUIET_NAN if x.special else (x, 0)
    if x.negative and x.integer.bit_length() + x.exponent > 11:
        # exp(x) < 2**-1024: the result is just above -1
        return Exact(True, (1 << 200) - 1, -200, True), 0
    return _unary(mpmath.expm1, x, cancels=True)


def _logarithm(
    function: Callable[[mpmath.mpf], mpmath.mpf],
    exact: Callable[[Exact], int | None],
) -> Callable[[Exact], Outcome]:
    def operation(x: Exact) -> Outcome:
        if x.special == "nan":
            return QUIET_NAN
        if is_zero(x):
            return infinity(True), DIVIDE
        if x.negative:
            return INVALID_NAN
        if x.special:
            return x, 0
        known = exact(x)
        if known is not None:
            return Exact(known < 0, abs(known)), 0
        return _unary(function, x)

    return operation


def _whole_log2(x: Exact) -> int | None:
    bits = x.integer.bit_length() - 1
    return bits + x.exponent if x.integer == 1 << bits else None


def _whole_log10(x: Exact) -> int | None:
    value = Fraction(x.integer) * Fraction(2) ** x.exponent
    digits = len(str(value.numerator)) - 1  # 10**-n is not a binary fraction
    return digits if value == 10**digits else None


def _zero_at_one(x: Exact) -> int | None:
    return 0 if _whole_log2(x) == 0 else None


log = _logarithm(mpmath.log, _zero_at_one)
log2 = _logarithm(lambda t: mpmath.log(t) / mp.ln2, _whole_log2)
log10 = _logarithm(mpmath.log10, _whole_log10)


def log1p(x: Exact) -> Outcome:
    if x.special == "nan":
        return QUIET_NAN
    if x == infinity() or is_zero(x):
        return x, 0
    way = arithmetic.order(x, Exact(True, 1))
    if way == 0:
        return infinity(True), DIVIDE
    return INVALID_NAN if way < 0 else _unary(mpmath.log1p, x, cancels=True)


def _entire(
    function: Callable[[mpmath.mpf], mpmath.mpf],
    at_zero: Exact | None = None,
    at_infinity: Callable[[Exact], Outcome] = lambda x: INVALID_NAN,
    within_one: bool = False,
) -> Callable[[Exact], Outcome]:
    """Return a function that is transcendental at every finite x but zero. Its value at
    zero is zero itself unless `at_zero` says otherwise. `within_one` says that it is
    defined only for |x| <= 1."""

    def operation(x: Exact) -> Outcome:
        if x.special == "nan":
            return QUIET_NAN
        if x.special:
            return at_infinity(x)
        if is_zero(x):
            return (x if at_zero is None else at_zero), 0
        if within_one and arithmetic.order(x._replace(negative=False), ONE) > 0:
            return INVALID_NAN
        return _unary(function, x, cancels=True)

    return operation


def _same(x: Exact) -> Outcome:
    return x, 0


def _half_turn(x: Exact) -> Outcome:
    return lambda precision: (-mp.pi if x.negative else +mp.pi) / 2, 0


def _sign(x: Exact) -> Outcome:
    return Exact(x.negative, 1), 0


def _tanh(t: mpmath.mpf) -> mpmath.mpf:
    # 1 - 2 exp(-2|t|) is closer to 1 than any precision that a caller asks for.
    return mpmath.tanh(t) if abs(t) < 2000 else mpmath.sign(t) * (1 - mpmath.eps)


sin = _entire(mpmath.sin)
cos = _entire(mpmath.cos, at_zero=ONE)
tan = _entire(mpmath.tan)
arcsin = _entire(mpmath.asin, within_one=True)
arctan = _entire(mpmath.atan, at_infinity=_half_turn)
sinh = _entire(mpmath.sinh, at_infinity=_same)
cosh = _entire(mpmath.cosh, at_zero=ONE, at_infinity=lambda x: (infinity(), 0))
tanh = _entire(_tanh, at_infinity=_sign)
arcsinh = _entire(mpmath.asinh, at_infinity=_same)
degrees = _entire(lambda t: t * 180 / mp.pi, at_infinity=_same)
radians = _entire(lambda t: t * mp.pi / 180, at_infinity=_same)


def arccos(x: Exact) -> Outcome:
    if x == ONE or (not x.special and arithmetic.equal(x, ONE)):
        return zero(), 0
    if is_zero(x):
        return _half_turn(zero())
    return _entire(mpmath.acos, within_one=True)(x)


def arccosh(x: Exact) -> Outcome:
    if x.special == "nan" or x == infinity():
        return QUIET_NAN if x.special == "nan" else (x, 0)
    way = -1 if x.special else arithmetic.order(x, ONE)
    if way <= 0:
        return (zero(), 0) if way == 0 else INVALID_NAN
    return _unary(mpmath.acosh, x)


def arctanh(x: Exact) -> Outcome:
    if not x.special and arithmetic.equal(x._replace(negative=False), ONE):
        return infinity(x.negative), DIVIDE
    return _entire(mpmath.atanh, within_one=True)(x)


# -- two arguments -----------------------------------------------------------


def _odd(y: Exact) -> bool:
    """Return whether a finite y is an odd integer."""
    return is_integer(y) and y.exponent <= 0 and bool(y.integer >> -y.exponent & 1)


def _rational_power(x: Exact, y: Exact) -> Exact | None:
    """Return |x|**y if it is a binary fraction of at most 64 bits, else None."""
    odd = x.integer // (x.integer & -x.integer)
    two = x.exponent + (x.integer & -x.integer).bit_length() - 1
    times, shift = y.integer, -y.exponent
    while shift < 0 or (shift > 0 and times % 2 == 0):
        times, shift = (times * 2, shift + 1) if shift < 0 else (times // 2, shift - 1)
    for _ in range(shift):  # one square root for each binary digit of y after the point
        if two % 2 or isqrt(odd) ** 2 != odd:
            return None
        odd, two = isqrt(odd), two // 2
    if odd > 1 and (y.negative or times * (odd.bit_length() - 1) > 64):
        return None  # not a binary fraction, or too many bits
    exponent = -two * times if y.negative else two * times
    return Exact(False, odd**times if odd > 1 else 1, exponent)


def power(x: Exact, y: Exact) -> Outcome:
    """Return x**y, with the special cases of C's pow (C17, F.10.4.4)."""
    if is_zero(y) or x == ONE or (not x.special and arithmetic.equal(x, ONE)):
        return ONE, 0
    if either_nan(x, y):
        return QUIET_NAN
    if y.special:
        way = 1 if x.special else arithmetic.order(x._replace(negative=False), ONE)
        if way == 0:  # (-1)**inf
            return ONE, 0
        return (zero() if (way > 0) == y.negative else infinity()), 0
    negative = x.negative and _odd(y)
    if is_zero(x):
        return (infinity(negative), DIVIDE) if y.negative else (zero(negative), 0)
    if x.special:
        return (zero(negative) if y.negative else infinity(negative)), 0
    if x.negative and not is_integer(y):
        return INVALID_NAN
    exact = _rational_power(x, y)
    if exact is not None:
        return exact._replace(negative=negative), 0
    base, index = to_mpf(x._replace(negative=False)), to_mpf(y)
    # The absolute error of y log(x) is the relative error of the power.
    lost = max(0, y.integer.bit_length() + y.exponent) + 8

    def evaluate(precision: int) -> mpmath.mpf:
        with mp.workprec(precision + lost):
            value = mpmath.exp(index * mpmath.log(base))
        return -value if negative else value

    return evaluate, 0


def arctan2(y: Exact, x: Exact) -> Outcome:
    if either_nan(x, y):
        return QUIET_NAN
    if is_zero(y) and not x.negative:  # x may be zero or Inf
        return zero(y.negative), 0
    if y.special != "inf" and x == infinity():
        return zero(y.negative), 0
    sign = -1 if y.negative else 1
    if x.special or y.special or is_zero(x) or is_zero(y):
        # On the axes and diagonals, the result is a multiple of 1/8 turn.
        if x.special and y.special:
            eighths = 3 if x.negative else 1
        elif y.special or (is_zero(x) and not is_zero(y)):
            eighths = 2
        else:
            eighths = 4
        return (lambda precision: sign * eighths * mp.pi / 4), 0
    a, b = to_mpf(y), to_mpf(x)
    gap = abs(a.man.bit_length() + a.exp - b.man.bit_length() - b.exp)

    def evaluate(precision: int) -> mpmath.mpf:
        with mp.workprec(precision + min(2 * gap, 1200)):
            return mpmath.atan2(a, b)

    return evaluate, 0


def _logaddexp(x: Exact, y: Exact, unit: Callable[[], mpmath.mpf]) -> Outcome:
    """Return log(b**x + b**y) in base b, where unit() is log(b)."""
    if either_nan(x, y):
        return QUIET_NAN
    high, low = (x, y) if arithmetic.order(x, y) >= 0 else (y, x)
    if high.special or low.special:
        return (zero() if is_zero(high) else high), 0
    m, n, exponent = arithmetic.aligned(high, low)
    gap = Exact(False, m - n, exponent)
    if gap.integer.bit_length() + gap.exponent > 12:
        # high plus less than 2**-2048
        if is_zero(high):
            return Exact(False, 1, -4096), 0
        bits = 200
        return Exact(
            high.negative,
            (high.integer << bits) - high.negative,
            high.exponent - bits,
            True,
        ), 0
    a, d = to_mpf(high), to_mpf(gap)

    def evaluate(precision: int) -> mpmath.mpf:
        # If the sum cancels, |result| is far above 2**-100 for our formats.
        with mp.workprec(precision + 300):
            return a + mpmath.log1p(mpmath.exp(-d * unit())) / unit()

    return evaluate, 0


def logaddexp(x: Exact, y: Exact) -> Outcome:
    return _logaddexp(x, y, lambda: mpmath.mpf(1))


def logaddexp2(x: Exact, y: Exact) -> Outcome:
    if not x.special and not y.special and arithmetic.equal(x, y):
        return arithmetic.add(x, ONE)
    return _logaddexp(x, y, lambda: +mp.ln2)
