/* Basic definitions, which every kernel file includes first. */
#ifndef TF32DTYPE_CUDA_COMMON_COMMON_H
#define TF32DTYPE_CUDA_COMMON_COMMON_H

#include <stdint.h>

#include "runtime/asserts.h"

/* Declares shared memory of the launch's size, as tests/support/simulator/simt.h does. */
#ifndef SIMT
#define DYNAMIC_SHARED(type, name)                                             \
    extern __shared__ __align__(128) unsigned char tf_dynamic_shared[];        \
    type *name = (type *)tf_dynamic_shared
#endif

/* Returns how many pieces of a size make up the whole; the last one may be short. */
template <class T, class U> __forceinline__ constexpr auto tf_ceil_div(T whole, U piece)
{
    return (whole + (piece - 1)) / piece;
}

/* Returns x, and keeps the compiler from computing values that depend on it earlier. */
inline int computed_here(int x)
{
#ifndef SIMT
    asm volatile("" : "+r"(x));
#endif
    return x;
}

#endif
