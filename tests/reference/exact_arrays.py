"""The products of `exact`, for whole matrices.

Numbers are cut into integers of few bits, their limbs, so that all sums of products of
limbs are exact in float64 and int64. tests/exact/test_many_products.py compares this
module with `exact` and `codec`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .codec_arrays import item_type
from .formats import Format

Array = NDArray[Any]

#: Bits of the integers of `Values`.
BITS = 62
#: Matrices of at most so many limbs are multiplied limb by limb.
_MOST_LIMBS = 16


class Values(NamedTuple):
    """Exact numbers, as `codec.Exact`. Their integers have 62 bits or are 0."""

    negative: Array
    integer: Array
    exponent: Array
    sticky: Array


# -- products --------------------------------------------------------------------------


def products(a: Array, b: Array) -> Values:
    """Return the exact product of two matrices of finite float64 numbers."""
    bits = (53 - a.shape[1].bit_length()) // 2
    tops = [
        np.frexp(abs(x).max(i, keepdims=True, initial=0))[1]
        for i, x in ((1, a), (0, b))
    ]
    limbs = [_limbs(x, top, bits) for x, top in zip((a, b), tops, strict=True)]
    if max(map(len, limbs)) > _MOST_LIMBS:
        digits, lowest = _by_terms(a, b, bits)
        return _values(digits, lowest * bits, bits)
    digits = np.zeros((sum(map(len, limbs)), len(a), b.shape[1]), np.int64)
    for i, one in enumerate(limbs[0]):
        for j, other in enumerate(limbs[1]):
            digits[-1 - i - j] += (one @ other).astype(np.int64)
    return _values(digits, sum(tops) - (len(digits) + 1) * bits, bits)


def _limb(rest: Array, exponent: Any) -> Array:
    """Move the whole multiples of 2^exponent out of the rest; return their integers."""
    limb = np.trunc(np.ldexp(rest, -exponent))
    rest -= np.ldexp(limb, exponent)
    return limb


def _limbs(x: Array, top: Array, bits: int) -> list[Array]:
    """Return limbs below 2^top, one after the other, until 0 or too many are left."""
    rest = x.copy()
    limbs: list[Array] = []
    while rest.any() and len(limbs) <= _MOST_LIMBS:
        limbs.append(_limb(rest, top - (len(limbs) + 1) * bits))
    return limbs


def _own_limbs(x: Array, bits: int) -> tuple[list[Array], Array]:
    """Return limbs of places that differ between numbers, and the last places."""
    rest, top = x.copy(), np.frexp(x)[1].astype(np.int64) // bits
    places = [top - i for i in range(54 // bits + 2)]
    limbs = [_limb(rest, place * bits).astype(np.int64) for place in places]
    assert not rest.any()
    return limbs, places[-1]


def _by_terms(a: Array, b: Array, bits: int) -> tuple[Array, int]:
    """Return digits of products with any exponents, and the place of the first one."""
    (ones, rows), (others, columns) = _own_limbs(a, bits), _own_limbs(b, bits)
    lowest = int(rows.min() + columns.min())
    count = int(rows.max() + columns.max()) - lowest + 2 * len(ones) - 1
    digits = np.zeros((count, len(a), b.shape[1]), np.int64)
    elements = np.ix_(range(len(a)), range(b.shape[1]))
    for k in range(a.shape[1]):
        places = rows[:, k, None] + columns[k] - lowest
        terms = np.zeros((2 * len(ones) - 1, *places.shape), np.int64)
        for i, one in enumerate(ones):
            for j, other in enumerate(others):
                terms[-1 - i - j] += one[:, k, None] * other[k]
        for i, term in enumerate(terms):
            digits[(places + i, *elements)] += term
    return digits, lowest


def _carry(digits: Array, bits: int) -> None:
    """Bring all digits but the last, which has the sign, to [0, 2^bits)."""
    for i in range(len(digits) - 1):
        digits[i + 1] += digits[i] >> bits
        digits[i] &= (1 << bits) - 1


def _values(digits: Array, lowest: Any, bits: int) -> Values:
    """Return numbers from digits, of which the first counts 2^lowest."""
    digits = np.concatenate(
        [digits, np.zeros_like(digits, shape=(4, *digits.shape[1:]))]
    )
    _carry(digits, bits)
    negative = digits[-1] < 0
    digits *= np.where(negative, -1, 1)
    _carry(digits, bits)
    top = np.zeros(negative.shape, np.int64)
    for i, digit in enumerate(digits):
        np.copyto(top, np.frexp(digit)[1] + i * bits, where=digit != 0)
    integer, sticky = np.zeros_like(top), np.zeros_like(negative)
    for i, digit in enumerate(digits):
        shift = i * bits - top + BITS
        left, right = np.clip(shift, 0, BITS), np.clip(-shift, 0, BITS)
        integer += digit >> right << left
        sticky |= digit & ((1 << right) - 1) != 0
    return Values(negative, integer, top - BITS + lowest, sticky)


# -- rounding --------------------------------------------------------------------------


def encode(f: Format, x: Values, rounding: str) -> Array:
    """Return the items that numbers round to, as `codec.encode`."""
    is_zero = x.integer == 0
    spacing = x.exponent + BITS - 1 - f.mantissa_bits
    if not f.powers:
        spacing = np.where(is_zero, f.least_exponent, spacing.clip(f.least_exponent))
    cut = np.where(is_zero, BITS, (spacing - x.exponent).clip(max=BITS + 1))
    whole = x.integer >> cut
    rest = x.integer - (whole << cut)
    whole += _rounds_up(f, x, whole, rest, cut, rounding)
    field = (spacing - f.least_exponent).clip(max=1 << f.exponent_bits)
    code = (field << f.mantissa_bits) + whole
    if f.powers:
        code = np.maximum(code - 1, 0)  # without the leading bit, which no item has
    code = code.view(np.uint64)  # numbers far above float64's largest have 64 bits
    stops = (rounding == "toward_positive") & x.negative | (
        (rounding == "toward_negative") & ~x.negative | (rounding == "toward_zero")
    )
    beyond = f.max_code if f.nan is None else f.nan
    beyond = beyond if f.infinity is None else f.infinity
    most = np.where(stops, np.uint64(f.max_code), np.uint64(beyond))
    code = np.where(code > f.max_code, most, code)
    if f.powers:
        code[is_zero | x.negative] = f.nan
    has_sign = x.negative & (f.negative_zero | (code != 0))
    sign = np.where(has_sign, np.uint64(f.sign_bit), np.uint64(0))
    return ((sign | code) << np.uint64(f.shift)).astype(item_type(f))


def _rounds_up(
    f: Format, x: Values, whole: Array, rest: Array, cut: Array, rounding: str
) -> Array:
    """Return where to take the next larger magnitude."""
    inexact = (rest != 0) | x.sticky
    if rounding == "toward_zero":
        return np.zeros_like(inexact)
    if rounding == "toward_positive":
        return inexact & ~x.negative
    if rounding == "toward_negative":
        return inexact & x.negative
    half = np.int64(1) << (cut - 1)
    if rounding == "ties_to_away":
        return rest >= half
    assert rounding == "ties_to_even"
    odd = True if f.powers else whole & 1 != 0
    return (rest > half) | ((rest == half) & (x.sticky | odd))
