"""Numbers as they are typed, exactly, and how exact numbers are written."""

import math
import os
import re
from fractions import Fraction
from typing import Any

import numpy as np

from .._base.errors import UserError
from .._measures.format_facts import floor_log2

_HEX_FLOAT = re.compile(r"([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)p([+-]?\d+)", re.IGNORECASE)
_CODE = re.compile(r"0x[0-9a-f_]+", re.IGNORECASE)
_DECIMAL_EXPONENT = re.compile(r"e([+-]?\d+)\s*\Z", re.IGNORECASE)
_LONGEST_INPUT = 1_000  # this and the next keep the exact integers small
_LARGEST_EXPONENT = 10_000
_LONGEST_DECIMAL = 60

# NaN, the infinities and -0 are not fractions: they are floats.
Number = Fraction | float


def is_code(text: str) -> bool:
    """Return whether a string is a code such as 0x3FC0, which needs a format."""
    return _CODE.fullmatch(text) is not None


def parse(text: str) -> Number:
    """Return the exact value of a number that the user typed.

    Raises
    ------
    UserError
        If the string is not a number, or is too long to be kept exactly.
    """
    if len(text) > _LONGEST_INPUT:
        raise UserError(
            f"number must have at most {_LONGEST_INPUT} characters; got {len(text)}"
        )
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", text, re.IGNORECASE):
        return float(text)
    hexadecimal = _HEX_FLOAT.fullmatch(text)
    exponent = hexadecimal[4] if hexadecimal else ""
    if decimal := _DECIMAL_EXPONENT.search(text):
        exponent = decimal[1]
    if len(exponent) > 6 or abs(int(exponent or 0)) > _LARGEST_EXPONENT:
        raise UserError(
            f"exponent must be at most {_LARGEST_EXPONENT} in size; got {text}"
        )
    try:
        if hexadecimal:
            sign, whole, part, exponent = hexadecimal.groups()
            mantissa = Fraction(int(whole + part, 16), 16 ** len(part))
            return (-1 if sign == "-" else 1) * mantissa * Fraction(2) ** int(exponent)
        value = Fraction(text)
        return -0.0 if value == 0 and text.startswith("-") else value
    except ZeroDivisionError:
        raise UserError(f"number must not divide by zero; got {text}") from None
    except ValueError:
        if os.sep in text or os.path.splitext(text.partition(":")[0])[1]:
            raise UserError(
                f"{text} is not an existing file and not a number"
                + ("; use FILE:NAME for a tensor of a file" if ":" in text else "")
            ) from None
        raise UserError(
            "argument must be a file or a number such as 3.14159, 1e-40, 1/3, 0x1.8p-3,"
            f" inf or nan; got {text!r}"
        ) from None


def exact_value(value: np.floating[Any] | float) -> Number:
    """Return a number of a format, exactly."""
    as_float = float(value)  # exact: every format here is part of float64
    return Fraction(as_float) if math.isfinite(as_float) else as_float


def finite(x: Number) -> Fraction | None:
    """Return a number as a fraction, -0 as 0; None for NaN and the infinities."""
    if isinstance(x, Fraction):
        return x
    return Fraction(x) if math.isfinite(x) else None


def to_float(x: Number) -> float:
    """Return the nearest float64; what is beyond its range is infinite."""
    try:
        return float(x)
    except OverflowError:
        return -math.inf if x < 0 else math.inf


def to_odd_float(x: Number) -> float:
    """Round a number to odd in float64.

    Such a float64 has all that a later rounding needs. Between two of its numbers, x
    becomes the one whose last bit is set. A number that is out of range becomes
    infinite.
    """
    nearest = to_float(x)
    if not math.isfinite(nearest) or not isinstance(x, Fraction) or nearest == x:
        return nearest
    if int(np.float64(nearest).view(np.int64)) & 1:
        return nearest
    return math.nextafter(nearest, math.inf if x > nearest else -math.inf)


def integer_times_power(exact: Number) -> str | None:
    """As "201 * 2^-6", the integer odd; None if it is not finite."""
    if not isinstance(exact, Fraction):
        return None
    exponent = 1 - exact.denominator.bit_length()
    integer = exact.numerator
    while exact and integer % 2 == 0:
        integer, exponent = integer // 2, exponent + 1
    return f"{integer} * 2^{exponent}"


def decimal_digits(exact: Number) -> str | None:
    """Return all decimals of a binary fraction; None if they are very many."""
    if not isinstance(exact, Fraction):
        return None
    places = exact.denominator.bit_length() - 1
    digits = str(abs(exact.numerator) * 5**places).rjust(places + 1, "0")
    if len(digits) > _LONGEST_DECIMAL:
        return None
    sign = "-" if exact < 0 else ""
    if places == 0:
        return sign + digits
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def hexadecimal(value: float) -> str | None:
    """As a hexadecimal float without zeros at its end."""
    return re.sub(r"\.?0+p", "p", value.hex()) if math.isfinite(value) else None


def shown(exact: Number) -> str:
    """Return the number as a fraction; if that is long, only its magnitude."""
    if not isinstance(exact, Fraction):
        return str(exact)
    if exact.numerator.bit_length() + exact.denominator.bit_length() < 200:
        return str(exact)
    return f"about {'-' if exact < 0 else ''}2^{floor_log2(abs(exact))}"
