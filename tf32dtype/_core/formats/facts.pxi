# The table of formats for Python.

from tf32dtype._core.formats.formats cimport *

names = tuple(tf_format_rows[i].name.decode() for i in range(TF_FORMAT_COUNT))

_SPECIALS = {TF_IEEE: "ieee", TF_FN: "fn", TF_FNUZ: "fnuz", TF_FINITE: "finite",
             TF_EXPONENT_ONLY: "powers"}


def facts(int index):
    """Return the properties of a format, from formats.h, as a dictionary."""
    cdef tf_format f = tf_format_rows[index][0]
    cdef uint32_t greatest = tf_maximum_magnitude(f)
    cdef uint32_t normal = 0 if f.specials == TF_EXPONENT_ONLY else (1 << f.mantissa_bits)
    return {
        "name": names[index],
        "itemsize": f.itemsize,
        "bits": f.width,
        "unused_low_bits": f.shift,
        "exponent_bits": f.exponent_bits,
        "mantissa_bits": f.mantissa_bits,
        "bias": f.bias,
        "signed": bool(f.is_signed),
        "specials": _SPECIALS[f.specials],
        "max": tf_double_from_code(f, greatest),
        "smallest_normal": tf_double_from_code(f, normal),
        "smallest_subnormal": tf_double_from_code(f, normal and 1),
    }


# Whether the numbers of format `a` are all numbers of `b`.
cdef struct number_set:
    int precision        # bits of the significand
    int least            # exponent of the spacing at zero
    double maximum
    bint has_sign, has_infinity, has_nan, has_zero, has_negative_zero


cdef number_set number_set_of(int kind):
    cdef number_set s
    cdef tf_format f
    s.has_sign = s.has_infinity = s.has_nan = True
    s.has_zero = s.has_negative_zero = True
    if kind == TF_FLOAT16:
        s.precision, s.least, s.maximum = 11, -24, 65504.0
    elif kind == TF_FLOAT32:
        s.precision, s.least, s.maximum = 24, -149, 3.4028234663852886e38
    elif kind == TF_FLOAT64:
        s.precision, s.least, s.maximum = 53, -1074, 1.7976931348623157e308
    else:
        f = tf_format_rows[kind][0]
        s.precision = f.mantissa_bits + 1
        s.least = tf_least_exponent(f)
        s.maximum = tf_double_from_code(f, tf_maximum_magnitude(f))
        s.has_sign = f.is_signed
        s.has_infinity = f.specials == TF_IEEE
        s.has_nan = f.specials != TF_FINITE
        s.has_zero = f.specials != TF_EXPONENT_ONLY
        s.has_negative_zero = f.is_signed and f.specials != TF_FNUZ
    return s


cdef bint holds(int larger, int smaller):
    cdef number_set a = number_set_of(smaller), b = number_set_of(larger)
    return (
        a.precision <= b.precision and a.least >= b.least
        and a.maximum <= b.maximum and a.has_sign <= b.has_sign
        and a.has_infinity <= b.has_infinity and a.has_nan <= b.has_nan
        and a.has_zero <= b.has_zero and a.has_negative_zero <= b.has_negative_zero
    )
