# Python objects -> codes, each with one rounding; and codes -> text.

import numbers
import sys

_INFINITE = frozenset(["inf", "infinity", "nan"])
# Beyond 2**+-LIMIT every format over- or underflows alike.
cdef enum:
    LIMIT = 100000


cdef uint32_t code_from_ratio(tf_format f, bint negative, object numerator,
                              object denominator, unsigned *flags) except? 0xFFFFFFFF:
    """numerator / denominator, both positive integers of any size."""
    # 66 bits of the quotient, of which the encoder takes 64 and whether the
    # rest is zero.
    shift = 66 - numerator.bit_length() + denominator.bit_length()
    if shift >= 0:
        quotient, rest = divmod(numerator << shift, denominator)
    else:
        quotient, rest = divmod(numerator, denominator << -shift)
    surplus = quotient.bit_length() - 64
    sticky = rest != 0 or (quotient & ((1 << surplus) - 1)) != 0
    exponent = max(-LIMIT, min(LIMIT, surplus - shift))
    return tf_code_from_integer(f, negative, quotient >> surplus, exponent, sticky,
                                flags)


cdef uint32_t code_from_int(tf_format f, object x, unsigned *flags) except? 0xFFFFFFFF:
    if x == 0:
        return tf_code_from_double(f, 0.0, flags)
    return code_from_ratio(f, x < 0, abs(x), 1, flags)


cdef uint32_t code_from_text(tf_format f, object text, unsigned *flags) except? 0xFFFFFFFF:
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    try:
        approximate = float(text)
    except ValueError:
        raise ValueError(
            f"could not convert string to {f.name.decode()}: {text!r}"
        ) from None
    word = text.strip()
    if word.lstrip("+-").lower() in _INFINITE:
        if word.startswith("-"):
            approximate = -abs(approximate) if approximate == approximate else (
                -float("nan"))
        return tf_code_from_double(f, approximate, flags)
    from decimal import Decimal
    exact = Decimal(word)
    if exact == 0:
        return tf_code_from_double(f, approximate, flags)
    # Decimal exponents may be astronomical: do not write such numbers out.
    if exact.adjusted() > 400 or exact.adjusted() < -400:
        scale = LIMIT if exact.adjusted() > 0 else -LIMIT
        return tf_code_from_integer(f, exact < 0, 1, scale, 0, flags)
    return code_from_exact(f, exact, flags)


cdef uint32_t code_from_exact(tf_format f, object x, unsigned *flags) except? 0xFFFFFFFF:
    """A finite number that has as_integer_ratio()."""
    numerator, denominator = x.as_integer_ratio()
    if numerator == 0:
        return tf_code_from_double(f, 0.0, flags)
    return code_from_ratio(f, numerator < 0, abs(numerator), denominator, flags)


cdef uint32_t code_from_object(int format, object x, unsigned *flags) except? 0xFFFFFFFF:
    """A number, or text that reads as one, rounded to nearest once."""
    cdef tf_format f = tf_format_rows[format][0]
    cdef int other
    if type(x) is float:
        return tf_code_from_double(f, x, flags)
    other = format_of_scalar(x)
    if other >= 0:
        return tf_code_from_double(
            f, tf_double_from_code(tf_format_rows[other][0], code_of_scalar(x, other)),
            flags)
    if isinstance(x, (int, np.bool_, np.integer)):
        return code_from_int(f, int(x), flags)
    if isinstance(x, (str, bytes)):
        return code_from_text(f, x, flags)
    if isinstance(x, np.longdouble):
        if np.isfinite(x) and x != 0:
            return code_from_exact(f, x, flags)
        return tf_code_from_double(f, float(x), flags)
    if isinstance(x, numbers.Rational):
        return code_from_ratio(
            f, x < 0, abs(int(x.numerator)), int(x.denominator), flags
        ) if x else tf_code_from_double(f, 0.0, flags)
    decimal = sys.modules.get("decimal")  # no need to import what x is not of
    if decimal is not None and isinstance(x, decimal.Decimal):
        if x.is_finite() and x != 0:
            return code_from_text(f, str(x), flags)
        return tf_code_from_double(
            f, float("nan") if x.is_nan() else float(x), flags)
    if x is None:  # as NumPy has it for its own floats
        return tf_code_from_double(f, float("nan"), flags)
    if isinstance(x, np.complexfloating):
        float(x)  # warns of the imaginary part
        return code_from_object(format, x.real, flags)
    if isinstance(x, complex):
        raise TypeError(
            f"can't convert complex to {f.name.decode()}; use {x!r}.real")
    try:
        return tf_code_from_double(f, float(x), flags)
    except TypeError:
        if PySequence_Check(x):
            raise ValueError("setting an array element with a sequence.") from None
        if hasattr(x, "__float__"):
            raise
        raise TypeError(
            f"{f.name.decode()} is made from a number or a string, not"
            f" {type(x).__name__}"
        ) from None


cdef int warn(unsigned flags, const char *where=b"cast") except -1:
    """Tell of exceptions as NumPy does, by default when it sets an item."""
    cdef int errors = 0
    if flags & <unsigned>TF_OVER:
        errors |= NPY_FPE_OVERFLOW
    if flags & <unsigned>TF_UNDER:
        errors |= NPY_FPE_UNDERFLOW
    if flags & <unsigned>TF_INVALID:
        errors |= NPY_FPE_INVALID
    if errors:
        PyUFunc_GiveFloatingpointErrors(where, errors)
    return 0


cdef str shortest(int format, uint32_t code):
    """The shortest decimal that reads back as the same code."""
    cdef tf_format f = tf_format_rows[format][0]
    cdef unsigned flags = 0
    x = tf_double_from_code(f, code)
    if x != x or x - x != 0 or x == 0:
        return repr(x)
    from decimal import Decimal
    for digits in range(17):
        nearest = Decimal(f"{x:.{digits}e}")
        # Below a power of two the next number is nearer than above it, so the
        # nearest decimal may miss where the one further out does not.
        unit = Decimal((0, (1,), nearest.adjusted() - digits))
        for candidate in (nearest, nearest + unit.copy_sign(nearest)):
            flags = 0
            if code_from_exact(f, candidate, &flags) == code:
                return repr(float(candidate))
    return repr(x)
