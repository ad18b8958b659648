/* Results of float64 whose rounding is sure: those that tf_rounds_surely(). */
#ifndef TF32DTYPE_UFUNCS_SURELY_H
#define TF32DTYPE_UFUNCS_SURELY_H

#include "formats/float_bits.h"

/* Returns the bits of the float32 number to which such a result rounds with this many
 * mantissa bits. Uses integers: a reduction waits for these few steps. */
TF_INLINE uint32_t tf_surely_rounded(double x, int mantissa_bits)
{
    const uint64_t half = UINT64_C(1) << (51 - mantissa_bits);
    const uint32_t rebias = UINT32_C(896) << 23; /* 1023 - 127 */
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t magnitude = ((bits & INT64_MAX) + half) & ~(2 * half - 1);
    return ((uint32_t)(magnitude >> 29) - rebias) | (uint32_t)(bits >> 63) << 31;
}

/* Returns whether a number below float32's normal range rounds like all numbers within
 * 2^-28 of it, and raises the same. It must be farther than 2^-14 of half the smallest
 * number from all multiples of that half. */
TF_INLINE int tf_tiny_rounds_surely(double x, int mantissa_bits)
{
    const double to_integer = 0x1.8p+52, margin = 0x1p-14;
    const uint64_t scale = (uint64_t)(1023 + 127 + mantissa_bits) << 52;
    double halves;
    memcpy(&halves, &scale, sizeof halves);
    halves *= x;
    const double rest = halves - (halves + to_integer - to_integer);
    const double normal = (double)(UINT32_C(2) << mantissa_bits);
    return ((rest > margin) | (rest < -margin)) & (halves < normal) & (halves > -normal);
}

#endif
