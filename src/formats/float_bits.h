/* float32 and its bits. Freestanding, so that C and CUDA compile it. */
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

/* float64 as float32 bits, rounded to odd: bits that are cut leave a one. Below float32's
 * normal numbers, and beyond the greatest, it is rounded to nearest. */
TF_INLINE uint32_t tf_odd_single(double x)
{
    const uint64_t cut = (UINT64_C(1) << 29) - 1;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits | ((bits & cut) + cut)) & ~cut;
    memcpy(&x, &bits, sizeof x);
    return tf_bits_of((float)x);
}

/* The significand back to [1, 2), so that no product leaves float64's range; its power of
 * two goes to the exponent. Zero, Inf and NaN stay, and what is subnormal. */
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

/* Whether a float64 magnitude rounds to so many mantissa bits as any number would that is
 * within 2^-28 of it: normal in float32, within its range, and farther than 2^-24 of its
 * binade from those halfway between two. */
TF_INLINE int tf_rounds_surely(uint64_t magnitude, int mantissa_bits)
{
    const uint64_t margin = UINT64_C(1) << 28;
    const uint64_t half = UINT64_C(1) << (51 - mantissa_bits);
    const uint64_t least = ((UINT64_C(1023) - 126) << 52) + margin;
    const uint64_t beyond = ((UINT64_C(1023) + 128) << 52) - half;
    /* From margin on to the other side of `half`, which wraps to great ones. */
    const uint64_t rest = (magnitude - half + margin) & (2 * half - 1);
    return (magnitude - least < beyond - least) & (rest > 2 * margin);
}

/* The order of bits as integers: -NaN < -Inf < ... < -0 < +0 < ... < NaN. Each function
 * is its own inverse. */
TF_INLINE int32_t tf_total_order(uint32_t bits)
{
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) >> 1));
}

/* The same of bfloat16's. */
TF_INLINE int16_t tf_bf16_order(int16_t bits)
{
    return (int16_t)(bits ^ ((bits >> 15) & TF_BF16_MAGNITUDE_BITS));
}

#endif
