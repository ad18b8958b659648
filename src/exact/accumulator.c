/* Exact sums of float64 numbers and of their products, and their one rounding. */
#include "exact/accumulator.h"

#include <math.h>
#include <string.h>

#include "formats/float_bits.h"

void tf_accumulator_clear(struct tf_accumulator *sum)
{
    memset(sum, 0, sizeof *sum);
    sum->left = TF_EXACT_ADDITIONS;
}

static inline void count_addition(struct tf_accumulator *sum)
{
    if (--sum->left == 0) {
        tf_carry_digits(sum->digits);
        sum->left = TF_EXACT_ADDITIONS;
    }
}

static inline uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void tf_accumulator_add(struct tf_accumulator *sum, const double *x, ptrdiff_t stride,
                        size_t n)
{
    for (size_t i = 0; i < n; i++, x = (const double *)((const char *)x + stride)) {
        const uint64_t bits = bits_of(*x);
        if (!tf_is_finite_double(bits)) {
            sum->special += *x;
            continue;
        }
        const struct tf_integer term = tf_integer_of(bits);
        const unsigned place = (unsigned)(term.exponent - TF_EXACT_LEAST);
        int64_t *digit = sum->digits + place / 32;
        const tf_u128 shifted = (tf_u128)term.significand << place % 32;
        digit[0] += tf_signed_amount((uint64_t)shifted & TF_EXACT_DIGIT, term.negative);
        digit[1] += tf_signed_amount((uint64_t)(shifted >> 32) & TF_EXACT_DIGIT, term.negative);
        digit[2] += tf_signed_amount((uint64_t)(shifted >> 64), term.negative);
        count_addition(sum);
    }
}

void tf_accumulator_add_products(struct tf_accumulator *sum, const double *x,
                                 const double *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t a = bits_of(x[i]), b = bits_of(y[i]);
        if (!tf_is_finite_double(a) || !tf_is_finite_double(b)) {
            sum->special += x[i] * y[i];
            continue;
        }
        const struct tf_product_digits product = tf_product_digits_of(a, b);
        int64_t *digit = sum->digits + product.digit;
        for (int j = 0; j < 5; j++) {
            digit[j] += tf_signed_amount(product.amounts[j], product.negative);
        }
        count_addition(sum);
    }
}

struct tf_value tf_accumulator_value(struct tf_accumulator *sum)
{
    if (!isfinite(sum->special)) {
        return tf_value_special(sum->special < 0, isnan(sum->special) ? TF_NAN : TF_INFINITY);
    }
    sum->left = TF_EXACT_ADDITIONS;
    return tf_value_of_digits(sum->digits);
}

double tf_round_to_double(struct tf_value x, enum tf_rounding rounding)
{
    const uint64_t bits = tf_round_to_ieee(x, 11, 52, rounding);
    double result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

float tf_round_to_float(struct tf_value x, enum tf_rounding rounding)
{
    return tf_float_of((uint32_t)tf_round_to_ieee(x, 8, 23, rounding));
}
