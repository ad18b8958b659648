/* float32 numbers and their bits. Freestanding, so that C and CUDA compile it. */
#ifndef TF32DTYPE_FORMATS_FLOAT_BITS_H
#define TF32DTYPE_FORMATS_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

#include "runtime/bit_masks.h"
#include "runtime/inline.h"

TF_INLINE uint32_t tf_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TF_INLINE float tf_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns a float64 as float32 bits, rounded to odd: the last kept bit is set if any bit
 * below it was. Below float32's normal range the result is rounded to nearest, and exact
 * only for multiples of 2^-149. Magnitudes from 2^128 on become Inf. */
TF_INLINE uint32_t tf_odd_single(double x)
{
    const uint64_t cut = (UINT64_C(1) << 29) - 1;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits | ((bits & cut) + cut)) & ~cut;
    memcpy(&x, &bits, sizeof x);
    return tf_bits_of((float)x);
}

/* Scales *value to [1, 2) in magnitude and adds its power of two to *exponent, so that no
 * product leaves float64's range. Zero, subnormal numbers, Inf and NaN are unchanged. */
TF_INLINE void tf_normalize(double *value, int64_t *exponent)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    const int64_t field = (int64_t)(bits >> 52 & 0x7FF);
    const int64_t moved = field != 0 && field != 0x7FF ? field - 1023 : 0;
    bits -= (uint64_t)moved << 52;
    *exponent += moved;
    memcpy(value, &bits, sizeof bits);
}

/* Returns 1 if all numbers within a relative distance of 2^-28 of a float64 magnitude round
 * to the same number with `mantissa_bits`. They do if the magnitude is in float32's normal
 * range, and farther than 2^-24 of its binade from the middle of two such numbers. */
TF_INLINE int tf_rounds_surely(uint64_t magnitude, int mantissa_bits)
{
    const uint64_t margin = UINT64_C(1) << 28;
    const uint64_t half = UINT64_C(1) << (51 - mantissa_bits);
    const uint64_t least = ((UINT64_C(1023) - 126) << 52) + margin;
    const uint64_t beyond = ((UINT64_C(1023) + 128) << 52) - half;
    /* `rest` counts from `margin` below the middle on; what is less wraps to large
     * numbers. */
    const uint64_t rest = (magnitude - half + margin) & (2 * half - 1);
    return (magnitude - least < beyond - least) & (rest > 2 * margin);
}

/* Returns an integer that orders bits: -NaN < -Inf < ... < -0 < +0 < ... < NaN. This
 * function and tf_bf16_order() are their own inverses. */
TF_INLINE int32_t tf_total_order(uint32_t bits)
{
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) >> 1));
}

/* As tf_total_order, for the bits of a bfloat16. */
TF_INLINE int16_t tf_bf16_order(int16_t bits)
{
    return (int16_t)(bits ^ ((bits >> 15) & TF_BF16_MAGNITUDE_BITS));
}

#endif
