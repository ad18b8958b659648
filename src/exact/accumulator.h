/* Exact sums of float64 numbers and of their products, and their one rounding. */
#ifndef TF32DTYPE_EXACT_ACCUMULATOR_H
#define TF32DTYPE_EXACT_ACCUMULATOR_H

#include <stddef.h>
#include <stdint.h>

#include "exact/digits.h"

struct tf_accumulator {
    int64_t digits[TF_EXACT_DIGITS];
    /* The sum of terms that are not finite; 0 if there are none. */
    double special;
    int32_t left; /* additions until a carry is due */
};

void tf_accumulator_clear(struct tf_accumulator *sum);

/* Adds n numbers, which are `stride` bytes apart. */
void tf_accumulator_add(struct tf_accumulator *sum, const double *x, ptrdiff_t stride,
                        size_t n);

/* Adds the products of n pairs of numbers. */
void tf_accumulator_add_products(struct tf_accumulator *sum, const double *x,
                                 const double *y, size_t n);

/* Returns the sum, as tf_value_of_digits(); later additions may follow. */
struct tf_value tf_accumulator_value(struct tf_accumulator *sum);

/* Round a value to float64 or float32, as tf_round_to_ieee(). */
double tf_round_to_double(struct tf_value x, enum tf_rounding rounding);
float tf_round_to_float(struct tf_value x, enum tf_rounding rounding);

#endif
