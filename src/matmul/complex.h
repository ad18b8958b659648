/* Products of complex matrices, computed as four real products. */
#ifndef TF32DTYPE_MATMUL_COMPLEX_H
#define TF32DTYPE_MATMUL_COMPLEX_H

#include "matmul/matmul.h"

/* Which operands are conjugated. */
struct tf_conjugates {
    int a, b;
};

/* The largest finite magnitudes of two complex matrices: of[0] and of[1] have those of the
 * real and of the imaginary components of A and of B. */
struct tf_greatest {
    float of[2][2];
};

/* Writes C = A @ B for complex matrices, where P is a real product, computed by tf_matmul:
 *
 *     real:       P(ar, br) - P(ai, bi)
 *     imaginary:  P(ar, bi) + P(ai, br)
 *
 * with one addition each, in the type of C. A conjugated operand has -ai or -bi instead.
 * The kinds are TF_FLOAT32 for complex64 and TF_FLOAT64 for complex128. `greatest` is NULL,
 * or as in tf_matmul_part; then `count` is 1. Returns -1, with C untouched, if memory is
 * short or the call was stopped (stops.h). */
int tf_matmul_complex(const struct tf_precision *precision,
                      struct tf_conjugates conjugates, struct tf_matrix a,
                      struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                      ptrdiff_t k, ptrdiff_t count,
                      const struct tf_greatest *greatest);

#endif
