# Python objects to codes, each with one rounding, and codes to strings.

import numbers

from libc.math cimport nextafter

from tf32dtype._core.formats.formats cimport *

_INFINITE = frozenset(["inf", "infinity", "nan"])
# Above 2**LIMIT every format overflows, and below 2**-LIMIT it underflows.
cdef enum:
    LIMIT = 100000


cdef uint32_t code_from_ratio(tf_format f, bint negative, object numerator,
                              object denominator, unsigned *flags) except? 0xFFFFFFFF:
    """Round the ratio of two positive integers of any size to a code."""
    # The quotient has 66 bits. The encoder takes 64 of them, and whether the rest is
    # zero.
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
        from tf32dtype._base.wording import brief
        raise ValueError(
            f"could not convert string to {f.name.decode()}: {brief(text)}"
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
    # Decimal exponents may be huge: do not write such numbers as integers.
    if exact.adjusted() > 400 or exact.adjusted() < -400:
        scale = LIMIT if exact.adjusted() > 0 else -LIMIT
        return tf_code_from_integer(f, exact < 0, 1, scale, 0, flags)
    return code_from_exact(f, exact, flags)


cdef uint32_t code_from_exact(tf_format f, object x, unsigned *flags) except? 0xFFFFFFFF:
    """Round a finite number that has as_integer_ratio() to a code."""
    numerator, denominator = x.as_integer_ratio()
    if numerator == 0:
        return tf_code_from_double(f, 0.0, flags)
    return code_from_ratio(f, numerator < 0, abs(numerator), denominator, flags)


cdef uint32_t code_from_object(int format, object x, unsigned *flags) except? 0xFFFFFFFF:
    """Round a number, or a string of a number, to the nearest code."""
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
    # x cannot be a Decimal if the module is not imported. Do not import it here,
    # because another thread may be importing it.
    if isinstance(x, getattr(sys.modules.get("decimal"), "Decimal", ())):
        if x.is_finite() and x != 0:
            return code_from_text(f, str(x), flags)
        return tf_code_from_double(
            f, float("nan") if x.is_nan() else float(x), flags)
    if x is None:  # NaN, as for NumPy's own floats
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
            f"{f.name.decode()}() argument must be a number or a string; got"
            f" {type(x).__name__}"
        ) from None


# -- codes to strings ------------------------------------------------------------------

cdef bint reads_back(tf_format f, str text, uint32_t code) except -1:
    """Return whether a decimal string rounds to a code.

    If both neighbors of the nearest float round to the same code, they decide. This is
    nearly always the case, and faster than exact arithmetic."""
    cdef unsigned flags = 0
    cdef double x = float(text)
    cdef uint32_t below = tf_code_from_double(f, nextafter(x, -float("inf")), &flags)
    cdef uint32_t above = tf_code_from_double(f, nextafter(x, float("inf")), &flags)
    return (below if below == above else code_from_text(f, text, &flags)) == code


cdef double printed_number(int format, uint32_t code) except? -1.0:
    """Return the float whose shortest digits are printed for a code.

    Formats of 8 bits and less print the exact value, because the shortest decimal for
    448 would be 450. Wider formats print the shortest decimal that rounds to the code.
    """
    cdef tf_format f = tf_format_rows[format][0]
    cdef double x = tf_double_from_code(f, code)
    if f.width <= 8 or x != x or x - x != 0 or x == 0:
        return x
    is_power = code & ((1 << f.mantissa_bits) - 1) == 0
    for digits in range(17):
        nearest = f"{x:.{digits}e}"
        if reads_back(f, nearest, code):
            return float(nearest)
        if is_power:
            # The next number below a power of two is nearer than the next above it. So
            # the nearest decimal may round to another code, and the one above may not.
            from decimal import Decimal
            mantissa, _, exponent = nearest.partition("e")
            unit = Decimal(1).scaleb(-digits).copy_sign(Decimal(mantissa))
            further = f"{Decimal(mantissa) + unit}e{exponent}"
            if reads_back(f, further, code):
                return float(further)
    return x


def printed(scalar):
    """Return the float whose shortest digits are printed for a scalar."""
    cdef int format = format_of_scalar(scalar)
    return printed_number(format, code_of_scalar(scalar, format))


cdef str text_of(int format, uint32_t code):
    """Return the string for str(), in scientific notation where NumPy's float32 is."""
    cdef double x = tf_double_from_code(tf_format_rows[format][0], code)
    cdef double magnitude = x if x >= 0 else -x
    number = printed_number(format, code)
    if x != x or x - x != 0 or x == 0 or 1e-4 <= magnitude < 1e6:
        return repr(number)
    return np.format_float_scientific(number, trim="-")
