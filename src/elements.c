#include "elements.h"

#include <math.h>

#include "fpstatus.h"

void tf_store_code(struct tf_format f, char *item, uint32_t code)
{
    const uint32_t bits = code << f.shift;
    if (f.itemsize == 4) {
        memcpy(item, &bits, 4);
    } else if (f.itemsize == 2) {
        const uint16_t half = (uint16_t)bits;
        memcpy(item, &half, 2);
    } else {
        *(uint8_t *)item = (uint8_t)bits;
    }
}

double tf_double_from_code(struct tf_format f, uint32_t code)
{
    const uint64_t bits = tf_double_bits(tf_decode(f, code));
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t tf_code_from_double(struct tf_format f, double x, unsigned *flags)
{
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
    /* Bits that rounding will cut off; all of them where x is subnormal. */
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
    /* Neither zero nor NaN has a sign here. */
    const uint32_t magnitude = code & ~mask;
    return magnitude == 0 ? code : magnitude | (sign == mask ? 0 : sign & mask);
}

uint32_t tf_nextafter(struct tf_format f, uint32_t from, uint32_t toward,
                      unsigned *flags)
{
    if (tf_is_nan(f, from) || tf_is_nan(f, toward)) {
        return tf_nan_code(f);
    }
    const double x = tf_double_from_code(f, from), y = tf_double_from_code(f, toward);
    if (x == y) {
        return from;
    }
    if (f.specials == TF_POWERS) {
        return y > x ? from + 1 : from - 1;
    }
    const uint32_t sign = tf_sign_mask(f);
    if (x == 0) {
        return 1 | (y < 0 ? sign : 0);
    }
    const int outward = (y > x) == (x > 0);
    const uint32_t next = outward ? from + 1 : from - 1;
    if (isfinite(x) && tf_decode(f, next).kind == TF_INFINITY) {
        *flags |= TF_OVER;
    }
    const int is_zero = (next & tf_magnitude_mask(f)) == 0;
    return is_zero && f.specials == TF_FNUZ ? 0 : next;
}

uint32_t tf_spacing(struct tf_format f, uint32_t code, unsigned *flags)
{
    const struct tf_value x = tf_decode(f, code);
    if (x.kind == TF_NAN) {
        return tf_nan_code(f);
    }
    if (x.kind == TF_INFINITY) {
        *flags |= TF_INVALID;
        return tf_nan_code(f);
    }
    /* Below zero the next number up is the smaller one in magnitude. */
    uint32_t magnitude = code & tf_magnitude_mask(f);
    if (!x.negative && magnitude == tf_maximum_magnitude(f)) {
        *flags |= tf_overflow_flag(f);
        return tf_encode_overflow(f, 0);
    }
    if (f.specials == TF_POWERS) {
        return code;
    }
    magnitude -= x.negative && magnitude > 0;
    const int field = (int)(magnitude >> f.mantissa_bits);
    const int exponent = tf_least_exponent(f) + (field > 0 ? field - 1 : 0);
    unsigned exact = 0;
    return tf_code_from_double(f, ldexp(1, exponent), &exact);
}

/* -- other shapes ---------------------------------------------------------------------- */

static uint32_t round_result(struct tf_format f, double r, int nan_expected,
                             unsigned *flags)
{
    if (isnan(r)) {
        *flags |= nan_expected && f.specials != TF_FINITE ? 0 : TF_INVALID;
        return tf_nan_code(f);
    }
    return tf_code_from_double(f, r, flags);
}

static void other_one(struct tf_format f, enum tf_other_op op, char *const *data,
                      unsigned *flags)
{
    const uint32_t a = tf_load_code(f, data[0]);
    const double x = tf_double_from_code(f, a);
    switch (op) {
    case TF_COPYSIGN_CODES:
        tf_store_code(f, data[2], tf_copysign(f, a, tf_load_code(f, data[1])));
        break;
    case TF_NEXTAFTER:
        tf_store_code(f, data[2],
                      tf_nextafter(f, a, tf_load_code(f, data[1]), flags));
        break;
    case TF_MODF: {
        double whole;
        const double part = modf(x, &whole);
        tf_store_code(f, data[1], round_result(f, part, isnan(x), flags));
        tf_store_code(f, data[2], round_result(f, whole, isnan(x), flags));
        break;
    }
    case TF_FREXP: {
        int exponent = 0;
        const double part = frexp(x, &exponent);
        const int32_t stored = isfinite(x) ? exponent : 0;
        tf_store_code(f, data[1], round_result(f, part, isnan(x), flags));
        memcpy(data[2], &stored, sizeof stored);
        break;
    }
    case TF_LDEXP:
    case TF_LDEXP_INT: {
        int64_t exponent;
        if (op == TF_LDEXP) {
            memcpy(&exponent, data[1], sizeof exponent);
        } else {
            int32_t narrow;
            memcpy(&narrow, data[1], sizeof narrow);
            exponent = narrow;
        }
        /* Beyond +-600 every format overflows or underflows alike. */
        const int bounded = exponent > 600    ? 600
                            : exponent < -600 ? -600
                                              : (int)exponent;
        tf_store_code(f, data[2],
                      round_result(f, ldexp(x, bounded), isnan(x), flags));
        break;
    }
    case TF_OTHER_COUNT: break;
    }
}

void tf_other(int format, enum tf_other_op op, char *const *data,
              const ptrdiff_t *strides, ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const struct tf_format f = *tf_format_rows[format];
    unsigned flags = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        char *items[3];
        for (int k = 0; k < 3; k++) {
            items[k] = data[k] + i * strides[k];
        }
        other_one(f, op, items, &flags);
    }
    tf_fp_end(saved, flags);
}

int tf_compare_items(struct tf_format f, const char *a, const char *b)
{
    const double x = tf_double_from_code(f, tf_load_code(f, a));
    const double y = tf_double_from_code(f, tf_load_code(f, b));
    if (isnan(x) || isnan(y)) {
        return isnan(x) - isnan(y);
    }
    return (x > y) - (x < y);
}
