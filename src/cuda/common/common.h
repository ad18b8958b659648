/* What every kernel file includes first. */
#ifndef TF32DTYPE_CUDA_COMMON_COMMON_H
#define TF32DTYPE_CUDA_COMMON_COMMON_H

#include <stdint.h>

/* A block's memory whose size the launch says. tests/support/simulator/simt.h has its own. */
#ifndef SIMT
#define DYNAMIC_SHARED(type, name)                                             \
    extern __shared__ __align__(128) unsigned char tf_dynamic_shared[];        \
    type *name = (type *)tf_dynamic_shared
#endif

/* The same number; but what follows from it is not computed before. */
inline int computed_here(int x)
{
#ifndef SIMT
    asm volatile("" : "+r"(x));
#endif
    return x;
}

#endif
