/* The facts of a row of an operand, which bounds of its dot products need. */
#ifndef TF32DTYPE_CUDA_EXACT_ROWS_H
#define TF32DTYPE_CUDA_EXACT_ROWS_H

#include "cuda/common/common.h"

struct row_facts {
    /* At least the square root of the sum of squares. Inf: only exact sums may be used,
     * because a number is Inf or NaN, or errors of products may be out of range. */
    double norm;
    /* the norm, divided by the largest power of two of which all numbers are multiples */
    double ratio;
    int32_t exponent; /* the row was divided by 2^exponent */
    int32_t unused;
};
static_assert(sizeof(row_facts) == 24, "as in tf32dtype/cuda/_matmul/exact.py");

inline double infinity() { return __longlong_as_double(0x7FFll << 52); }

/* Returns 2^exponent, for normal numbers. */
inline double power_of_two(int exponent)
{
    return __longlong_as_double((long long)(exponent + 1023) << 52);
}

/* Returns x * 2^exponent, which is exact for normal results. */
inline double scaled(double x, int exponent)
{
    const int half = exponent / 2;
    return x * power_of_two(half) * power_of_two(exponent - half);
}

#endif
