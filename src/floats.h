/* float32 and its bits. Freestanding, so that C and CUDA compile it. */
#ifndef TF32DTYPE_FLOATS_H
#define TF32DTYPE_FLOATS_H

#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define TF_INLINE static __forceinline__
#else
#define TF_INLINE static inline __attribute__((always_inline))
#endif

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

/* The order of bits as integers: -NaN < -Inf < ... < -0 < +0 < ... < NaN. */
TF_INLINE int32_t tf_total_order(uint32_t bits)
{
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) >> 1));
}

#endif
