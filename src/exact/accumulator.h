/* Exact sums of float64 numbers and of their products, and their one rounding.
 *
 * An accumulator is an integer of 4352 bits in units of 2^-2176. It holds every product of
 * two float64 numbers, from 2^-2148 to below 2^2048, and 2^62 of the largest ones. It has
 * 136 digits of 32 bits, each in an int64_t, so that additions leave carries for later
 * (Neal, "Fast exact summation using small and large superaccumulators", 2015). */
#ifndef TF32DTYPE_EXACT_ACCUMULATOR_H
#define TF32DTYPE_EXACT_ACCUMULATOR_H

#include <stddef.h>
#include <stdint.h>

#include "formats/codec.h"

enum { TF_EXACT_DIGITS = 136, TF_EXACT_LEAST = -2176 };

struct tf_accumulator {
    int64_t digits[TF_EXACT_DIGITS];
    /* The sum of terms that are not finite; 0 if there are none. */
    double special;
    /* Additions until a digit may overflow: each adds less than 2^33 to a digit. */
    int32_t left;
};

void tf_accumulator_clear(struct tf_accumulator *sum);

/* Adds n numbers, which are `stride` bytes apart. */
void tf_accumulator_add(struct tf_accumulator *sum, const double *x, ptrdiff_t stride,
                        size_t n);

/* Adds the products of n pairs of numbers. */
void tf_accumulator_add_products(struct tf_accumulator *sum, const double *x,
                                 const double *y, size_t n);

/* Returns the sum; later additions may follow. Its sticky bit stands for all bits below the
 * significand. A sum of zero is positive. */
struct tf_value tf_accumulator_value(struct tf_accumulator *sum);

/* Rounds a value to float64 or float32, once, in any mode but TF_STOCHASTIC. NaN is the
 * canonical one. Magnitudes out of range become Inf or the largest number as IEEE 754
 * says, and the largest number for TF_TO_ODD. */
double tf_round_to_double(struct tf_value x, enum tf_rounding rounding);
float tf_round_to_float(struct tf_value x, enum tf_rounding rounding);

#endif
