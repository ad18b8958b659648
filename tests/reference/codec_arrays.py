"""The rounding of `codec`, for whole float64 arrays.

float64 holds every value of our formats and every midpoint between two values. Scaling
by a power of two and rounding to an integer are exact in float64. The steps are
therefore the same as with Python integers. tests/formats/test_reference.py compares the
two.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .codec import INVALID, OVER, UNDER, decode_code, to_float
from .formats import Format

Floats = npt.NDArray[np.float64]
Items = npt.NDArray[Any]
Flags = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def item_type(f: Format) -> np.dtype[Any]:
    return np.dtype(f"u{f.item_bits // 8}")


def all_items(f: Format) -> Items:
    """Return every code of the format, as items."""
    return (np.arange(f.count, dtype=np.uint32) << f.shift).astype(item_type(f))


@cache
def _table(f: Format) -> Floats:
    codes = range(f.count)
    return np.array([to_float(decode_code(f, code)) for code in codes])


def values(f: Format, items: Items) -> Floats:
    """Return the numbers of items; bits outside the code are ignored."""
    return _table(f)[(items.astype(np.uint32) >> f.shift) & (f.count - 1)]


def flag(mask: Mask, value: int) -> Flags:
    return np.multiply(mask, value, dtype=np.uint8)


def spacing_exponents(f: Format, x: Floats) -> npt.NDArray[np.int32]:
    """Return the exponent of the distance between the neighbors of x."""
    exponents = np.frexp(x)[1].astype(np.int32) - 1 - f.mantissa_bits
    return np.where(x == 0, f.least_exponent, np.maximum(exponents, f.least_exponent))


def encode(f: Format, x: Floats, inexact: Mask | bool = False) -> tuple[Items, Flags]:
    """Return the items that x rounds to, ties to even, and the flags raised. NaNs
    become the canonical NaN, as in arithmetic. Where `inexact`, x is not exactly the
    intended number, but close enough to round to the same item."""
    if f.powers:
        return _encode_powers(f, x)
    infinite, nan, negative = np.isinf(x), np.isnan(x), np.signbit(x)
    finite = np.where(infinite | nan, 0.0, x)
    spacing = spacing_exponents(f, finite)
    scaled = np.ldexp(np.abs(finite), -spacing)
    whole = np.rint(scaled)
    steps = (spacing - f.least_exponent).astype(np.int64) << f.mantissa_bits
    code = steps + whole.astype(np.int64)

    over = infinite | (code > f.max_code)
    small = np.abs(finite) < least_normal(f)
    under = small & ((whole != scaled) | inexact) & ~infinite & ~nan
    flags = flag(under, UNDER)
    beyond = f.infinity if f.infinity is not None else f.nan
    code[over] = f.max_code if beyond is None else beyond
    if f.infinity is not None:
        flags |= flag(over & ~infinite, OVER)
    else:
        flags |= flag(over, OVER)
    if f.negative_zero:
        code[negative] |= f.sign_bit
    else:  # fnuz: zero and NaN have no sign, as the code of -0 is the NaN
        code[negative & (code != 0)] |= f.sign_bit
    code[nan] = 0 if f.nan is None else f.nan
    if f.nan is None:
        flags |= flag(nan, INVALID)
    return (code << f.shift).astype(item_type(f)), flags


def _encode_powers(f: Format, x: Floats) -> tuple[Items, Flags]:
    """Round to e8m0's nearest power of two, ties upward."""
    nan = np.isnan(x)
    wrong = (x <= 0) | np.isinf(x)
    fit = np.where(nan | wrong, 1.0, x)
    mantissa, exponent = np.frexp(fit)
    code = exponent - 1 - f.least_exponent + (mantissa >= 0.75)
    below = exponent - 1 < f.least_exponent
    wrong |= ~below & (code > f.max_code)
    code = np.where(below, 0, np.where(wrong | nan, f.nan, code))
    flags = flag(below, UNDER) | flag(wrong, INVALID)
    return code.astype(item_type(f)), flags


def near_boundary(f: Format, x: Floats, error: Floats) -> Mask:
    """Return where a number within `error` of x may round to another code."""
    finite, error = (np.where(np.isfinite(x), y, 0.0) for y in (x, error))
    if f.powers:
        mantissa, exponent = np.frexp(finite)
        return np.abs(mantissa - 0.75) <= np.ldexp(error, -exponent)
    spacing = spacing_exponents(f, finite)
    scaled = np.ldexp(np.abs(finite), -spacing)
    margin = np.ldexp(error, -spacing)
    return np.abs(scaled - np.floor(scaled) - 0.5) <= margin


def least_normal(f: Format) -> float:
    """Return the smallest normal number; inexact results below it raise underflow."""
    return 2.0**f.normal_exponent


def midpoints(f: Format) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the codes c >= 0, and the numbers halfway between c and c + 1.

    After the maximum comes the number that the next code would have. The last midpoint
    is therefore where rounding leaves the finite numbers. For e8m0, a midpoint is the
    mean of two powers of two.
    """
    codes = np.arange(f.max_code + 1, dtype=np.int64)
    low = _table(f)[codes]
    step = low if f.powers else np.ldexp(1.0, spacing_exponents(f, low))
    return codes, low + step / 2


def random_items(
    f: Format, rng: np.random.Generator, shape: int | tuple[int, ...]
) -> Items:
    """Return items with codes drawn uniformly."""
    codes = rng.integers(0, f.count, size=shape, dtype=np.uint32)
    return (codes << f.shift).astype(item_type(f))
