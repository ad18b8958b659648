#include "special_reasons.h"

#include "json.h"
#include "tensor_core/mma_model.h"

enum special { ORDINARY, IS_NAN, IS_INF, IS_NEGATIVE_INF };

static enum special special_product(uint32_t x, uint32_t y)
{
    const uint32_t found = tf_mma_special(0, &x, 0, &y, 0, 1, 0);
    return !found                          ? ORDINARY
           : tf_mma_is_nan(found)          ? IS_NAN
           : found == TF_NEGATIVE_INF_BITS ? IS_NEGATIVE_INF
                                           : IS_INF;
}

static enum special special_number(uint32_t x)
{
    return special_product(x, 0x3F800000u); /* times 1 */
}

static void put_place(int32_t k) /* -1: c */
{
    json_put(k < 0 ? "c" : "k ");
    if (k >= 0) {
        json_put_integer(k);
    }
}

static const char *factor_name(uint32_t x)
{
    const int negative = (int)(x >> 31);
    return tf_mma_is_infinite(x) ? (negative ? "-inf" : "inf") : negative ? "-0" : "0";
}

static void write_nan(int32_t k, uint32_t x, uint32_t y)
{
    const int a = tf_mma_is_nan(x), b = tf_mma_is_nan(y);
    json_begin_text();
    put_place(k);
    if (k < 0) {
        json_put(" is NaN");
    } else if (a || b) {
        json_put(a && b ? ": a and b are NaN" : a ? ": a is NaN" : ": b is NaN");
    } else {
        json_put(": ");
        json_put(factor_name(x));
        json_put(" * ");
        json_put(factor_name(y));
    }
    json_end_text();
}

static void write_infinity(int32_t k, enum special sign)
{
    json_begin_text();
    put_place(k);
    json_put(sign == IS_INF ? ": +inf" : ": -inf");
    json_end_text();
}

void write_reasons(const uint32_t *a, const uint32_t *b, const int32_t *ks, int32_t count,
                   uint32_t c)
{
    const int32_t none = -2;
    int nan = special_number(c) == IS_NAN;
    int32_t positive = special_number(c) == IS_INF ? -1 : none;
    int32_t negative = special_number(c) == IS_NEGATIVE_INF ? -1 : none;
    if (nan) {
        write_nan(-1, c, 0);
    }
    for (int32_t i = 0; i < count; i++) {
        const enum special special = special_product(a[ks[i]], b[ks[i]]);
        if (special == IS_NAN) {
            nan = 1;
            write_nan(ks[i], a[ks[i]], b[ks[i]]);
        }
        positive = special == IS_INF && positive == none ? ks[i] : positive;
        negative = special == IS_NEGATIVE_INF && negative == none ? ks[i] : negative;
    }
    if (nan) {
        return;
    }
    if (positive != none && negative != none) {
        json_begin_text();
        json_put("+inf of ");
        put_place(positive);
        json_put(" and -inf of ");
        put_place(negative);
        json_end_text();
        return;
    }
    if (special_number(c) != ORDINARY) {
        write_infinity(-1, special_number(c));
    }
    for (int32_t i = 0; i < count; i++) {
        const enum special special = special_product(a[ks[i]], b[ks[i]]);
        if (special != ORDINARY) {
            write_infinity(ks[i], special);
        }
    }
}
