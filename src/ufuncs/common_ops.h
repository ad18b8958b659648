/* The common operations on two float32 numbers: +, -, * and /. */
#ifndef TF32DTYPE_UFUNCS_COMMON_OPS_H
#define TF32DTYPE_UFUNCS_COMMON_OPS_H

#include "formats/float_bits.h"
#include "ufuncs/kernels.h"

/* Returns x op y, rounded to float32; `op` is one of the four. */
TF_INLINE float tf_common_result(enum tf_binary_op op, float x, float y)
{
    switch (op) {
    case TF_ADD: return x + y;
    case TF_SUBTRACT: return x - y;
    case TF_MULTIPLY: return x * y;
    default: return x / y;
    }
}

/* Returns whether a subnormal result may be inexact. Subnormal sums are exact. */
TF_INLINE int tf_may_underflow(enum tf_binary_op op)
{
    return op == TF_MULTIPLY || op == TF_TRUE_DIVIDE;
}

#endif
