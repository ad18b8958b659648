#include "any_format.h"

static const struct tf_format float64 = {
    "float64", 8, 64, 0, 11, 52, 1, 1023, TF_IEEE, 'd'};

struct tf_format any_format(int index)
{
    return index < TF_FORMAT_COUNT ? *tf_format_rows[index]
           : index == ANY_FLOAT16  ? tf_float16
           : index == ANY_FLOAT32  ? tf_binary32
                                   : float64;
}

/* -- facts ------------------------------------------------------------------------- */

uint64_t any_magnitude_mask(int index)
{
    return index == ANY_FLOAT64 ? UINT64_MAX >> 1 : tf_magnitude_mask(any_format(index));
}

uint64_t any_sign_mask(int index)
{
    return index == ANY_FLOAT64 ? UINT64_C(1) << 63 : tf_sign_mask(any_format(index));
}

uint64_t any_maximum(int index)
{
    return index == ANY_FLOAT64 ? (UINT64_C(0x7FF) << 52) - 1
                                : tf_maximum_magnitude(any_format(index));
}

uint64_t any_nan(int index)
{
    return index == ANY_FLOAT64 ? UINT64_C(0xFFF) << 51 : tf_nan_code(any_format(index));
}

int any_has_infinity(int index) { return any_format(index).specials == TF_IEEE; }

int any_has_negative_zero(int index)
{
    const enum tf_specials specials = any_format(index).specials;
    return specials != TF_FNUZ && specials != TF_EXPONENT_ONLY;
}

int any_is_code(int index, uint64_t code)
{
    return code <= (any_magnitude_mask(index) | any_sign_mask(index));
}

/* -- codes and values ---------------------------------------------------------------- */

struct tf_value any_decode(int index, uint64_t code)
{
    return index == ANY_FLOAT64 ? tf_value_from_double_bits(code)
                                : tf_decode(any_format(index), (uint32_t)code);
}

void any_exact(struct exact *x, int index, uint64_t code)
{
    exact_of_value(x, any_decode(index, code));
}

uint64_t any_at_place(int index, int64_t place)
{
    return place < 0 ? (uint64_t)-place | any_sign_mask(index) : (uint64_t)place;
}

int64_t any_place(int index, uint64_t code)
{
    const int64_t magnitude = (int64_t)(code & any_magnitude_mask(index));
    return code & any_sign_mask(index) ? -magnitude : magnitude;
}

int any_last_place(int index, struct tf_value x)
{
    const struct tf_format f = any_format(index);
    const int unit = x.exponent + 63 - f.mantissa_bits, least = tf_least_exponent(f);
    return unit < least ? least : unit;
}

/* Returns the float64 code of x as tf_encode, whose codes have at most 32 bits. */
static uint64_t encode_float64(struct tf_value x, enum tf_rounding rounding,
                               enum tf_overflow overflow, uint64_t draw, unsigned *flags)
{
    const uint64_t sign = (uint64_t)x.negative << 63, infinity = UINT64_C(0x7FF) << 52;
    if (x.value_class == TF_INFINITY && overflow == TF_OVERFLOW_SATURATE) {
        return sign | (infinity - 1);
    }
    if (x.value_class != TF_NUMBER || x.significand == 0) {
        return tf_double_bits(x);
    }
    const int unit = any_last_place(ANY_FLOAT64, x), least = tf_least_exponent(float64);
    const struct tf_in_units cut = tf_in_units_of(x, unit);
    if (x.exponent + 63 < 1 - float64.bias && (cut.fraction != 0 || cut.more)) {
        *flags |= TF_UNDER;
    }
    /* Limit the exponent's field, into which exponents of 1024 and above do not fit. */
    const uint64_t field = (uint64_t)(unit - least) < 0x7FF ? (uint64_t)(unit - least) : 0x7FF;
    const uint64_t magnitude =
        (field << float64.mantissa_bits) + cut.kept +
        (uint64_t)tf_rounds_up(rounding, x.negative, cut.kept, cut.fraction, cut.more, draw);
    if (magnitude < infinity) {
        return magnitude | sign;
    }
    *flags |= TF_OVER;
    const int stops =
        overflow == TF_OVERFLOW_SATURATE || tf_stops_at_maximum(rounding, x.negative);
    return sign | (stops ? infinity - 1 : infinity);
}

uint64_t any_encode(int index, const struct exact *x, enum tf_rounding rounding,
                    enum tf_overflow overflow, uint64_t draw, unsigned *flags)
{
    const struct tf_value value = exact_to_value(x);
    *flags = 0;
    const uint64_t code =
        index == ANY_FLOAT64
            ? encode_float64(value, rounding, overflow, draw, flags)
            : tf_encode(any_format(index), value, rounding, overflow, draw, flags);
    struct exact result;
    any_exact(&result, index, code);
    *flags |= exact_is_finite(x) && !exact_equal(&result, x) ? ANY_INEXACT : 0;
    return code;
}
