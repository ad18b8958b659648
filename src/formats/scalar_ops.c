/* Operations on the code of one element, and those of arrays that are made of them:
 * spacing, nextafter and others. */
#include "formats/scalar_ops.h"

#include <math.h>

#include "runtime/fp_environment.h"
#include "formats/items.h"
#include "ufuncs/pair_tables.h"
#include "ufuncs/parts.h"

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

/* Codes of numbers in the order of the numbers, -0 beside 0. */
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
    if (f.specials == TF_EXPONENT_ONLY) {
        return code;
    }
    magnitude -= x.negative && magnitude > 0;
    const int field = (int)(magnitude >> f.mantissa_bits);
    const int exponent = tf_least_exponent(f) + (field > 0 ? field - 1 : 0);
    unsigned exact = 0;
    return tf_code_from_double(f, ldexp(1, exponent), &exact);
}

/* -- other shapes ---------------------------------------------------------------------- */

/* What a table of all pairs is made of. */
static void nextafter_pairs(int format, int key, const uint8_t *a, const uint8_t *b,
                            uint8_t *results, uint8_t *flags, size_t n)
{
    (void)key;
    const struct tf_format f = *tf_format_rows[format];
    for (size_t i = 0; i < n; i++) {
        unsigned raised = 0;
        results[i] = (uint8_t)tf_nextafter(f, tf_load_code(f, (const char *)&a[i]),
                                           tf_load_code(f, (const char *)&b[i]), &raised);
        flags[i] = (uint8_t)raised;
    }
}

static unsigned next_numbers(int format, char *const data[3], const ptrdiff_t strides[3],
                             ptrdiff_t n)
{
    const struct tf_format f = *tf_format_rows[format];
    const struct tf_pair_table *table =
        tf_pair_table(format, TF_NEXTAFTER + TF_BINARY_COUNT, n, nextafter_pairs);
    if (table) {
        return tf_look_up_pairs(table, data, strides, n, tf_is_serial(data, strides));
    }
    unsigned flags = 0;
    if (f.itemsize > 1 && !tf_is_serial(data, strides)) {
        TF_BUFFER(buffer);
        struct operand a, b;
        operand_begin(&a, data[0], strides[0], 1);
        operand_begin(&b, data[1], strides[1], 1);
        for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
            const size_t count = (size_t)(n - done < TF_CHUNK ? n - done : TF_CHUNK);
            const void *x = operand_items(&a, f.itemsize, count);
            const void *y = operand_items(&b, f.itemsize, count);
            char *out = data[2] + done * strides[2];
            void *target = operand_target(out, strides[2], f.itemsize, x, y, f.itemsize,
                                          count, buffer);
            flags |= tf_isa->parts->nextafter[f.itemsize == 4 ? 0 : 1](x, y, target, count);
            tf_scatter(target, out, strides[2], f.itemsize, count);
        }
        return flags;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t from = tf_load_code(f, data[0] + i * strides[0]);
        const uint32_t toward = tf_load_code(f, data[1] + i * strides[1]);
        tf_store_code(f, data[2] + i * strides[2], tf_nextafter(f, from, toward, &flags));
    }
    return flags;
}

void tf_other(int format, enum tf_code_op op, char *const *data,
              const ptrdiff_t *strides, ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    switch (op) {
    case TF_NEXTAFTER: flags = next_numbers(format, data, strides, n); break;
    case TF_MODF: flags = tf_modf(format, data, strides, n); break;
    case TF_FREXP: flags = tf_frexp(format, data, strides, n); break;
    case TF_LDEXP: flags = tf_ldexp(format, sizeof(int64_t), data, strides, n); break;
    case TF_LDEXP_INT: flags = tf_ldexp(format, sizeof(int32_t), data, strides, n); break;
    case TF_OTHER_COUNT: break;
    }
    tf_fp_end(saved, flags);
}
