/* Integers of 128 bits, and the zero bits of integers. Freestanding, so that C and CUDA
 * compile it. */
#ifndef TF32DTYPE_RUNTIME_WIDE_INTEGERS_H
#define TF32DTYPE_RUNTIME_WIDE_INTEGERS_H

#include <stdint.h>

#if defined(__CUDACC__)
typedef unsigned __int128 tf_u128;
#else
__extension__ typedef unsigned __int128 tf_u128;
#endif

/* tf_leading_zeros and tf_trailing_zeros return the number of zero bits above the first 1
 * of x, and below its last 1. x is not 0. */
static inline int tf_leading_zeros(uint64_t x)
{
#if defined(__CUDACC__)
    return __clzll((long long)x);
#else
    return __builtin_clzll(x);
#endif
}

static inline int tf_trailing_zeros(uint64_t x)
{
#if defined(__CUDACC__)
    return __ffsll((long long)x) - 1;
#else
    return __builtin_ctzll(x);
#endif
}

#endif
