"""Conversions of the formats' codes that code compiled by numba calls.

numba knows nothing of other packages' dtypes. Compiled functions take the codes, which
are unsigned integers, and convert each number as they use it::

    decode = td.interop.numba.to_float32("bfloat16")
    encode = td.interop.numba.from_float32("bfloat16")

    @numba.njit
    def halve(codes):
        for i in range(codes.size):
            codes[i] = encode(decode(codes[i]) * np.float32(0.5))

    halve(a.view(np.uint16))
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from .._base.requirements import need
from .._formats.codes import bits
from .._formats.table import Format, find
from .._formats.typed import FormatLike

numba: ModuleType = need("td.interop.numba", "numba", "numba")

#: Of float32: Inf and the quiet NaN, bits of the mantissa, exponents' bias.
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
_MANTISSA, _BIAS = 23, 127


__all__ = ["from_float32", "to_float32"]


def __dir__() -> list[str]:
    return __all__


def to_float32(format: FormatLike) -> Any:
    """A function from a format's codes to float32.

    Parameters
    ----------
    format : str, dtype or type
        A format of this package.

    Returns
    -------
    ufunc
        Of `numba.vectorize`: takes uint8, uint16 or uint32, what the format's items are
        as unsigned integers, and returns the same float32 as ``a.astype(np.float32)``.
        Of arrays as NumPy's, of single numbers within compiled functions. Narrower
        unsigned integers are widened, and then are other codes: give it ``td.bits(a)``
        of an array of this format.

    Raises
    ------
    TypeError, ValueError
        For what is no format.

    Examples
    --------
    >>> td.interop.numba.to_float32("bfloat16")(np.array([0x3F80, 0x4049], np.uint16))
    array([1.      , 3.140625], dtype=float32)
    """
    return _decoder(find(format))


def from_float32(format: FormatLike) -> Any:
    """A function from float32 to a format's codes.

    Parameters
    ----------
    format : str, dtype or type
        A format of this package.

    Returns
    -------
    ufunc
        Of `numba.vectorize`: takes float32 and returns uint8, uint16 or uint32, the
        items of ``x.astype(format)``, which are rounded to the nearest, ties to even.
        No floating-point flag is raised, so that NumPy warns of nothing.

    Raises
    ------
    TypeError, ValueError
        For what is no format.

    Examples
    --------
    >>> codes = td.interop.numba.from_float32("float8_e4m3fn")(np.float32([1.1, 1000]))
    >>> codes, codes.view(td.float8_e4m3fn)
    (array([ 57, 127], dtype=uint8), array([1.12, nan], dtype=float8_e4m3fn))
    """
    return _encoder(find(format))


@cache
def _decoder(form: Format) -> Any:
    unused, used, size_bits, greatest = _sizes(form)
    upward = _MANTISSA - form.mantissa_bits
    # From the format's exponents to float32's: exact, of subnormal numbers too.
    scale = np.float32(2.0 ** (_BIAS - form.bias))
    infinity = greatest + 1 if form.has_infinity else -1
    has_zero, negative_zero = form.has_zero, form.has_negative_zero

    def decode(item: Any) -> Any:
        word: Any
        code = item >> unused & used
        size = code & (1 << size_bits) - 1
        sign = code >> size_bits
        if sign and not size and not negative_zero:
            sign, word = 0, _NAN
        elif size > greatest:
            word = _INFINITY if size == infinity else _NAN
        elif has_zero or size:
            number = np.uint32(size << upward).view(np.float32) * scale
            word = np.int64(np.float32(number).view(np.uint32))
        else:
            word = 1 << _MANTISSA - 1  # 2^-127, a subnormal number
        return np.uint32(sign << 31 | word).view(np.float32)

    return numba.vectorize([f"float32(uint{8 * form.itemsize})"])(decode)


@cache
def _encoder(form: Format) -> Any:
    unused, _, size_bits, greatest = _sizes(form)
    mantissa, bias = form.mantissa_bits, form.bias
    has_zero, negative_zero = form.has_zero, form.has_negative_zero
    with np.errstate(all="ignore"):
        specials = np.array([np.nan, -np.nan, np.inf, -np.inf], np.float32)
        nan, negative_nan, beyond, negative_beyond = bits(
            specials.astype(form.dtype)
        ).tolist()

    def encode(x: Any) -> Any:
        word: Any = np.int64(np.float32(x).view(np.uint32))
        sign = word >> 31
        word &= 0x7FFFFFFF
        if word > _INFINITY or (not has_zero and (sign or not word)):
            return negative_nan if sign else nan
        if not has_zero and word < 1 << _MANTISSA:
            # Powers of two: 2^-127 below and 2^-126 from halfway between them on.
            return int(word >= 3 << _MANTISSA - 2)
        # x is significand * 2^(exponent - bias - 23). The exponent counts as those of
        # the format, whose subnormal numbers, below 1, have the spacing of 1.
        exponent = max(word >> _MANTISSA, 1)
        significand = word - ((exponent - 1) << _MANTISSA)
        exponent += bias - _BIAS
        dropped = min(_MANTISSA - mantissa + 1 - min(exponent, 1), _MANTISSA + 2)
        rest = significand & (1 << dropped) - 1
        half = 1 << dropped - 1
        kept = significand >> dropped
        kept += rest > half or (rest == half and kept & 1)
        size = ((max(exponent, 1) - 1) << mantissa) + kept
        if size > greatest:
            return negative_beyond if sign else beyond
        if not negative_zero and not size:
            sign = 0
        return (sign << size_bits | size) << unused

    return numba.vectorize([f"uint{8 * form.itemsize}(float32)"])(encode)


def _sizes(form: Format) -> tuple[int, int, int, int]:
    """Return the sizes of bit fields of an item.

    These are the unused low bits, the mask of a code, its bits without the sign, and
    those of the largest number.
    """
    unused = form.unused_low_bits
    greatest = int(bits(form.type(form.max))) >> unused
    return unused, (1 << form.bits) - 1, form.bits - form.signed, greatest
