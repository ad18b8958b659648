/* The moduli of emulated precisions, and the scales of rows. */
#ifndef TF32DTYPE_CUDA_EXACT_MODULI_H
#define TF32DTYPE_CUDA_EXACT_MODULI_H

#include "cuda/common/common.h"

enum { MOST_MODULI = 20 };

/* As in tf32dtype/_integer_products/schemes.py. */
constexpr uint32_t EVERY_MODULUS[MOST_MODULI] = {256, 255, 253, 251, 247, 241, 239, 233, 229, 227,
                                      223, 217, 211, 199, 197, 193, 191, 181, 179, 173};

/* Returns EVERY_MODULUS[j], where j is not known during compilation. */
inline uint32_t modulus_of(int j)
{
    uint32_t modulus = 0;
#pragma unroll
    for (int i = 0; i < MOST_MODULI; i++) {
        modulus = i == j ? EVERY_MODULUS[i] : modulus;
    }
    return modulus;
}

/* A row of an operand: its numbers are scaled by 2^scale. */
struct integer_row {
    int32_t top;     /* exponent of the largest magnitude's leading bit; 0 for zeros */
    int32_t scale;
    int16_t special; /* a number is Inf or NaN: the row counts as zeros */
    int16_t is_cut;  /* a number was truncated to an integer */
};
static_assert(sizeof(integer_row) == 12, "as in tf32dtype/cuda/_matmul/integer_products.py");

/* Limits of integers: `limits[i]` is the largest one for which first + i is allowed. They
 * decrease. */
struct scale_limits {
    uint64_t limits[40];
    int32_t count, first;
    int32_t most; /* the largest exponent of fast mode */
    int32_t unused;
};
static_assert(sizeof(scale_limits) == 336 && TF_OFFSETOF(scale_limits, count) == 320,
              "as in tf32dtype/cuda/_matmul/integer_products.py");

/* Returns the largest exponent that an integer allows. */
inline int exponent_for(uint64_t x, const scale_limits &of)
{
    int found = of.first - 1;
#pragma unroll 1
    for (int i = 0; i < of.count; i++) {
        found += x <= of.limits[i]; /* mutant: one exponent more */
    }
    return found;
}

#endif
