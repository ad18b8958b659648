"""Code to exact value, and exact value to code with IEEE 754's flags.

An exact number is an integer times a power of two, plus a little if `sticky` is true.
Then more than 0 and less than one unit of `integer` was truncated. A correct rounding
needs no more of a quotient, a root or a transcendental value.
"""

import math
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from .formats import Format

# Flags, with the values of NumPy's FPE_* constants.
DIVIDE, OVER, UNDER, INVALID = 1, 2, 4, 8

NEAREST = ("ties_to_even", "ties_to_away")
ROUNDINGS = (
    *NEAREST,
    "toward_zero",
    "toward_positive",
    "toward_negative",
    "to_odd",
    "stochastic",
)
OVERFLOWS = ("ieee", "saturate")


class Exact(NamedTuple):
    """(-1)**negative * (integer + s) * 2**exponent, with 0 < s < 1 if sticky, else s =
    0. `special` is "inf" or "nan", or empty for a finite number."""

    negative: bool
    integer: int = 0
    exponent: int = 0
    sticky: bool = False
    special: str = ""


NAN = Exact(False, special="nan")


def infinity(negative: bool = False) -> Exact:
    return Exact(negative, special="inf")


def zero(negative: bool = False) -> Exact:
    return Exact(negative)


# -- to and from exact numbers ---------------------------------------------


def decode_code(f: Format, code: int) -> Exact:
    """Return the value of a right-aligned code."""
    negative = bool(code & f.sign_bit)
    magnitude = code & ~f.sign_bit
    if f.is_nan(code):
        # A format that has only one NaN has no sign for it.
        return Exact(negative and f.negative_zero, special="nan")
    if magnitude == f.infinity:
        return infinity(negative)
    exponent = magnitude >> f.mantissa_bits
    mantissa = magnitude & ((1 << f.mantissa_bits) - 1)
    if f.powers:
        return Exact(False, 1, exponent - f.bias)
    if exponent == 0:  # subnormal: no hidden bit, the exponent of field 1
        return Exact(negative, mantissa, 1 - f.bias - f.mantissa_bits)
    hidden = 1 << f.mantissa_bits
    return Exact(negative, hidden | mantissa, exponent - f.bias - f.mantissa_bits)


@cache
def _values(f: Format) -> list[Exact]:
    return [decode_code(f, code) for code in range(f.count)]


def decode(f: Format, item: int) -> Exact:
    """Return the value of an item; bits outside the code are ignored."""
    code = (item >> f.shift) & (f.count - 1)
    if f.count <= 1 << 16:
        return _values(f)[code]
    return decode_code(f, code)


def to_fraction(x: Exact) -> Fraction:
    """Return the value of a finite, exact number; -0 becomes 0."""
    if x.special or x.sticky:
        raise ValueError(f"not an exact finite number: {x}")
    value = Fraction(x.integer) * Fraction(2) ** x.exponent
    return -value if x.negative else value


def to_float(x: Exact) -> float:
    """Return a Python float, which holds every value of our formats."""
    value = float(x.special) if x.special else math.ldexp(x.integer, x.exponent)
    return -value if x.negative else value


def from_ratio(numerator: int, denominator: int, negative: bool = False) -> Exact:
    """Return a quotient of positive integers to at least 64 bits."""
    shift = max(0, 64 + denominator.bit_length() - numerator.bit_length())
    quotient, rest = divmod(numerator << shift, denominator)
    return Exact(negative, quotient, -shift, rest != 0)


def from_fraction(value: Fraction) -> Exact:
    if value == 0:
        return zero()
    return from_ratio(abs(value.numerator), value.denominator, value < 0)


def from_int(value: int) -> Exact:
    return Exact(value < 0, abs(value))


def from_float(value: float) -> Exact:
    """Convert a Python float, with the sign of a zero, but not of a NaN."""
    negative = str(value)[0] == "-"  # str of a NaN shows no sign
    if value != value:
        return NAN
    if value in (float("inf"), float("-inf")):
        return infinity(negative)
    numerator, denominator = abs(value).as_integer_ratio()
    return Exact(negative, numerator, 1 - denominator.bit_length())


# -- rounding ---------------------------------------------------------------


def _rounds_up(
    x: Exact, odd: bool, rest: int, unit: int, rounding: str, draw: int
) -> bool:
    """Return whether to step to the next larger magnitude. `odd` says whether the
    smaller magnitude is odd. `rest` (and the sticky bit) of `unit` is the distance from
    the smaller magnitude."""
    if not rest and not x.sticky:
        return False
    if rounding == "ties_to_even":
        return 2 * rest > unit or (2 * rest == unit and (x.sticky or odd))
    if rounding == "ties_to_away":
        return 2 * rest >= unit
    if rounding == "toward_zero":
        return False
    if rounding == "toward_positive":
        return not x.negative
    if rounding == "toward_negative":
        return x.negative
    if rounding == "to_odd":
        return not odd
    if rounding == "stochastic":  # with probability rest / unit
        if x.sticky:
            raise ValueError("stochastic rounding needs an exact value")
        return draw * unit < rest << 64
    raise ValueError(rounding)


def _stops(rounding: str, overflow: str, negative: bool) -> bool:
    """Return whether a finite number out of range becomes the largest finite number.
    IEEE 754-2019, section 7.4, defines the directed modes. Round to odd truncates and
    never leaves the finite numbers."""
    return (
        overflow == "saturate"
        or rounding in ("toward_zero", "to_odd")
        or (rounding == "toward_positive" and negative)
        or (rounding == "toward_negative" and not negative)
    )


def _beyond(f: Format, negative: bool, stop: bool) -> int:
    """Return the code for a number out of range: Inf, else NaN, else the maximum."""
    sign = f.sign_bit if negative else 0
    if stop or (f.infinity is None and f.nan is None):
        return sign | f.max_code
    if f.infinity is not None:
        return sign | f.infinity
    assert f.nan is not None
    return sign | f.nan


def _nan(f: Format, negative: bool) -> tuple[int, int]:
    if f.nan is None:  # zero with the NaN's sign
        return (f.sign_bit if negative else 0), INVALID
    return f.nan | (f.sign_bit if negative else 0), 0


def _split(f: Format, x: Exact) -> tuple[int, int, int, int]:
    """Return x in units of the format's spacing: whole, rest, unit, exponent."""
    top = x.integer.bit_length() + x.exponent
    spacing = max(top - 1 - f.mantissa_bits, f.least_exponent)
    shift = spacing - x.exponent
    if x.sticky and shift < 1:
        raise ValueError("an approximation too coarse to round")
    if shift <= 0:
        return x.integer << -shift, 0, 1, spacing
    unit = 1 << shift
    return x.integer >> shift, x.integer & (unit - 1), unit, spacing


def encode_code(
    f: Format,
    x: Exact,
    rounding: str = "ties_to_even",
    overflow: str = "ieee",
    draw: int = 0,
) -> tuple[int, int]:
    """Return the code that an exact number rounds to, and the flags raised. `draw` is
    the 64-bit random integer of stochastic rounding."""
    if abs(x.exponent) > 1 << 20:  # exp(1e38): avoid shifts by so many bits
        x = x._replace(exponent=(1 << 14) * (1 if x.exponent > 0 else -1))
    if f.powers:
        return _encode_power(f, x, rounding, overflow, draw)
    if x.special == "nan":
        return _nan(f, x.negative)
    if x.special == "inf":
        stop = overflow == "saturate"
        flags = 0 if f.infinity is not None else OVER
        return _beyond(f, x.negative, stop), flags
    sign = f.sign_bit if x.negative else 0
    if x.integer == 0 and not x.sticky:
        return (sign if f.negative_zero else 0), 0

    whole, rest, unit, spacing = _split(f, x)
    inexact = bool(rest) or x.sticky
    if _rounds_up(x, bool(whole & 1), rest, unit, rounding, draw):
        whole += 1
    magnitude = ((spacing - f.least_exponent) << f.mantissa_bits) + whole
    if magnitude > f.max_code:
        return _beyond(f, x.negative, _stops(rounding, overflow, x.negative)), OVER
    small = x.integer.bit_length() + x.exponent <= f.normal_exponent
    flags = UNDER if small and inexact else 0
    if magnitude == 0 and not f.negative_zero:
        sign = 0
    return sign | magnitude, flags


def _encode_power(
    f: Format, x: Exact, rounding: str, overflow: str, draw: int
) -> tuple[int, int]:
    """Round to e8m0's nearest power of two, ties upward; numbers out of range are NaN.
    In units of the power of two below, x is between 1 and 2. A tie goes to the even
    number, which is upward, and round to odd goes downward."""
    assert f.nan is not None
    if x.special == "nan":
        return f.nan, 0
    if x.negative or not (x.integer or x.sticky or x.special):
        return f.nan, INVALID
    if x.special == "inf":
        return (f.max_code, OVER) if overflow == "saturate" else (f.nan, INVALID)
    shift = x.integer.bit_length() - 1
    code = shift + x.exponent - f.least_exponent
    if code < 0:
        return 0, UNDER
    unit = 1 << shift
    if x.sticky and shift < 1:
        raise ValueError("an approximation too coarse to round")
    code += _rounds_up(x, True, x.integer - unit, unit, rounding, draw)
    if code > f.max_code:
        stop = _stops(rounding, overflow, False)
        return (f.max_code, OVER) if stop else (f.nan, INVALID)
    return code, 0


def encode(
    f: Format,
    x: Exact,
    rounding: str = "ties_to_even",
    overflow: str = "ieee",
    draw: int = 0,
) -> tuple[int, int]:
    """Return `encode_code` as an item."""
    code, flags = encode_code(f, x, rounding, overflow, draw)
    return code << f.shift, flags


def clean(f: Format, item: int) -> int:
    """Return an item without the bits outside the code."""
    return item & ((f.count - 1) << f.shift)
