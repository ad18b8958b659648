"""Exact sums of numbers and of products, by Python's integers, rounded once."""

import math
from collections.abc import Iterable

from . import codec
from .formats import Format

#: All numbers and products are integers in units of 2**UNIT.
UNIT = -2200


def _integer(x: float) -> int:
    """Return a finite number in units of 2**(UNIT / 2)."""
    numerator, denominator = x.as_integer_ratio()
    return (numerator << (-UNIT // 2)) // denominator


def dot(
    x: Iterable[float],
    y: Iterable[float],
    form: Format,
    rounding: str = "ties_to_even",
) -> int:
    """Return the item that the sum of products rounds to."""
    total, special = 0, 0.0
    for a, b in zip(x, y, strict=True):
        if math.isfinite(a) and math.isfinite(b):
            total += _integer(a) * _integer(b)
        else:
            special += a * b
    return _rounded(total, special, form, rounding)


def total(x: Iterable[float], form: Format, rounding: str = "ties_to_even") -> int:
    """Return the item that the sum rounds to."""
    values = list(x)
    return dot(values, [1.0] * len(values), form, rounding)


def _rounded(total: int, special: float, form: Format, rounding: str) -> int:
    exact = codec.Exact(total < 0, abs(total), UNIT)
    if special != 0:
        kind = "nan" if math.isnan(special) else "inf"
        exact = codec.Exact(kind == "inf" and special < 0, special=kind)
    return codec.encode(form, exact, rounding)[0]
