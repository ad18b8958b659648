/* Products of complex64, made of four float32 products. */
#ifndef TF32DTYPE_MATMUL_COMPLEX64_H
#define TF32DTYPE_MATMUL_COMPLEX64_H

#include "matmul/matmul.h"

/* C = A @ B of complex64, or conj(A) @ B, with P a float32 product:
 *
 *     real:       P(ar, br) - P(ai, bi)      conjugated:  P(ar, br) + P(ai, bi)
 *     imaginary:  P(ar, bi) + P(ai, br)                   P(ar, bi) - P(ai, br)
 *
 * with one float32 addition each. Returns -1, with C untouched, if memory is
 * short or it was stopped (stops.h). */
int tf_matmul_complex64(const struct tf_precision *precision, int conjugated,
                        struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                        ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, ptrdiff_t count);

#endif
