"""Convert codes of the formats in functions that numba compiles.

numba does not support dtypes of other packages. Compiled functions take the codes,
which are unsigned integers, and convert each value when they use it::

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

#: Facts of float32: the codes of Inf and the quiet NaN, mantissa bits, exponent bias.
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
_MANTISSA, _BIAS = 23, 127


__all__ = ["from_float32", "to_float32"]


def __dir__() -> list[str]:
    return __all__


def to_float32(format: FormatLike) -> Any:
    """Return a function that converts codes of a format to float32.

    Parameters
    ----------
    format : str, dtype or type
        A format of this package.

    Returns
    -------
    ufunc
        A function of `numba.vectorize`. It takes uint8, uint16 or uint32, the stored
        bits of an element as an unsigned integer, and returns the same float32 as
        ``a.astype(np.float32)``. Call it with arrays like a NumPy ufunc, or with single
        values in compiled functions. Narrower unsigned integers are widened and would
        then be other codes, so pass ``td.bits(a)`` of an array of this format.

    Raises
    ------
    TypeError, ValueError
        If `format` is not a format.

    See Also
    --------
    from_float32 : Return a function that converts to codes.
    tf32dtype.bits : Return the codes of an array.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> decode = td.interop.numba.to_float32("bfloat16")
    >>> decode(np.array([0x3F80, 0x4049], np.uint16))
    array([1.      , 3.140625], dtype=float32)
    """
    return _decoder(find(format))


def from_float32(format: FormatLike) -> Any:
    """Return a function that converts float32 to codes of a format.

    Parameters
    ----------
    format : str, dtype or type
        A format of this package.

    Returns
    -------
    ufunc
        A function of `numba.vectorize`. It takes float32 and returns uint8, uint16 or
        uint32, the stored bits of ``x.astype(format)``, which rounds to nearest, ties
        to even. It raises no floating-point flags, so NumPy does not warn.

    Raises
    ------
    TypeError, ValueError
        If `format` is not a format.

    See Also
    --------
    to_float32 : Return a function that converts from codes.
    tf32dtype.from_bits : Create an array from codes.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> encode = td.interop.numba.from_float32("float8_e4m3fn")
    >>> codes = encode(np.float32([1.1, 1000]))
    >>> codes, codes.view(td.float8_e4m3fn)
    (array([ 57, 127], dtype=uint8), array([1.125,   nan], dtype='float8_e4m3fn'))
    """
    return _encoder(find(format))


@cache
def _decoder(form: Format) -> Any:
    unused, used, size_bits, greatest = _sizes(form)
    upward = _MANTISSA - form.mantissa_bits
    # The factor between the exponents of both; it is exact for subnormal numbers too.
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
            # Powers of two: 2^-127 below the midpoint, and 2^-126 from it on.
            return int(word >= 3 << _MANTISSA - 2)
        # x is significand * 2^(exponent - bias - 23), with the bias of the format.
        # Exponents below 1 are subnormal, with the spacing of exponent 1.
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
    """Return the facts of the bit fields of an element.

    These are the number of unused low bits, the mask of a code, the number of its bits
    without the sign, and the code of the largest number.
    """
    unused = form.unused_low_bits
    greatest = int(bits(form.type(form.max))) >> unused
    return unused, (1 << form.bits) - 1, form.bits - form.signed, greatest
