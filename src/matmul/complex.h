/* Products of complex numbers, made of four real products. */
#ifndef TF32DTYPE_MATMUL_COMPLEX_H
#define TF32DTYPE_MATMUL_COMPLEX_H

#include "matmul/matmul.h"

/* Which operands are conjugated. */
struct tf_conjugates {
    int a, b;
};

/* The greatest finite magnitudes of two complex matrices: of the real numbers of each, of
 * the imaginary ones. */
struct tf_greatest {
    float of[2][2];
};

/* C = A @ B of complex numbers, with P a product of real ones, tf_matmul's:
 *
 *     real:       P(ar, br) - P(ai, bi)
 *     imaginary:  P(ar, bi) + P(ai, br)
 *
 * with one addition each, in the type of C; a conjugated operand has minus its ai or bi. The kinds are those of the parts: TF_FLOAT32
 * for complex64, TF_FLOAT64 for complex128. `greatest` is NULL, or as tf_matmul_part has it,
 * with a count of 1. Returns -1, with C untouched, if memory is
 * short or it was stopped (stops.h). */
int tf_matmul_complex(const struct tf_precision *precision,
                      struct tf_conjugates conjugates, struct tf_matrix a,
                      struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                      ptrdiff_t k, ptrdiff_t count,
                      const struct tf_greatest *greatest);

#endif
