/* Operations on codes of single elements: conversions, spacing, nextafter and others. */
#include "formats/scalar_ops.h"

#include <math.h>

double tf_double_from_code(struct tf_format f, uint32_t code)
{
    const uint64_t bits = tf_double_bits(tf_decode(f, code));
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t tf_code_from_double(struct tf_format f, double x, unsigned *flags)
{
    uint32_t code;
    if (tf_round_usual(f, x, &code, flags)) {
        return code;
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return tf_encode(f, tf_value_from_double_bits(bits), TF_TIES_TO_EVEN,
                     TF_OVERFLOW_IEEE, 0, flags);
}

double tf_snapped(struct tf_format f, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int field = (int)(bits >> 52 & 0x7FF);
    if (field == 0 || field == 0x7FF) {
        return x;
    }
    /* The bits below the unit of rounding: over 52 if x is below the smallest number. */
    const int unit = field - 1023 - f.mantissa_bits;
    const int least = tf_least_exponent(f);
    const int cut = (unit > least ? unit : least) - (field - 1023 - 52);
    if (cut > 52) {
        return x;
    }
    const uint64_t half = UINT64_C(1) << (cut - 1);
    const uint64_t rest = bits & ((half << 1) - 1);
    const uint64_t distance = rest > half ? rest - half : half - rest;
    const uint64_t to_unit = rest > half ? 2 * half - rest : rest;
    if (distance <= 16) {
        bits = bits - rest + half;
    } else if (to_unit <= 16) {
        bits = bits - rest + (rest > half ? 2 * half : 0);
    }
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t tf_copysign(struct tf_format f, uint32_t code, uint32_t sign)
{
    const uint32_t mask = tf_sign_mask(f);
    if (f.specials != TF_FNUZ) {
        return (code & ~mask) | (sign & mask);
    }
    /* Neither zero nor NaN has a sign in fnuz. */
    const uint32_t magnitude = code & ~mask;
    return magnitude == 0 ? code : magnitude | (sign == mask ? 0 : sign & mask);
}

/* Returns an integer that orders codes like their numbers; -0 equals +0. */
static int32_t order_of(struct tf_format f, uint32_t code)
{
    const int32_t magnitude = (int32_t)(code & tf_magnitude_mask(f));
    return code & tf_sign_mask(f) ? -magnitude : magnitude;
}

uint32_t tf_nextafter(struct tf_format f, uint32_t from, uint32_t toward,
                      unsigned *flags)
{
    if (tf_is_nan(f, from) || tf_is_nan(f, toward)) {
        return tf_nan_code(f);
    }
    const int32_t x = order_of(f, from), y = order_of(f, toward);
    if (x == y) {
        return from;
    }
    if (f.specials == TF_EXPONENT_ONLY) {
        return y > x ? from + 1 : from - 1;
    }
    if (x == 0) {
        return 1 | (y < 0 ? tf_sign_mask(f) : 0);
    }
    const int outward = (y > x) == (x > 0);
    const uint32_t next = outward ? from + 1 : from - 1;
    const uint32_t magnitude = next & tf_magnitude_mask(f);
    if (outward && f.specials == TF_IEEE && magnitude == tf_infinity_magnitude(f)) {
        *flags |= TF_OVER;
    }
    return magnitude == 0 && f.specials == TF_FNUZ ? 0 : next;
}

uint32_t tf_spacing(struct tf_format f, uint32_t code, unsigned *flags)
{
    const struct tf_value x = tf_decode(f, code);
    if (x.value_class == TF_NAN) {
        return tf_nan_code(f);
    }
    if (x.value_class == TF_INFINITY) {
        *flags |= TF_INVALID;
        return tf_nan_code(f);
    }
    /* For a negative number, the next number up has the smaller magnitude. */
    uint32_t magnitude = code & tf_magnitude_mask(f);
    if (!x.negative && magnitude == tf_maximum_magnitude(f)) {
        *flags |= tf_overflow_flag(f);
        return tf_encode_overflow(f, 0);
    }
    if (f.specials == TF_EXPONENT_ONLY) {
        return code;
    }
    magnitude -= x.negative && magnitude > 0;
    const int field = (int)(magnitude >> f.mantissa_bits);
    const int exponent = tf_least_exponent(f) + (field > 0 ? field - 1 : 0);
    unsigned exact = 0;
    return tf_code_from_double(f, ldexp(1, exponent), &exact);
}
