/* Matrix products in the contract's order. */
#ifndef TF32DTYPE_MATMUL_MATMUL_H
#define TF32DTYPE_MATMUL_MATMUL_H

#include <stddef.h>

#include "matmul/matrix.h"
#include "matmul/precisions.h"

/* Writes C = A @ B for `count` times one m x k and one k x n matrix. The contract's order
 * (docs/concepts/accumulation.md):
 *
 *   1. products are exact;
 *   2. they are summed by float32 fused multiply-adds over each 256 consecutive k, from
 *      +0; of parts over each 32 k, from the smallest products to the greatest, with the
 *      sums scaled from split order to split order, and those sums are added in k order
 *      within 256;
 *   3. the 256-sums are added in k order in float32; of parts within 4096 k;
 *   4. of parts the 4096-sums are added in k order;
 *   5. one rounding to the kind of C.
 *
 * On a path of its own (a tensor core's): what that defines. Without any k, C is then as
 * it was if it `continues`.
 *
 * Runs on as many threads as OpenMP offers, which change no bit. Returns -1, with C
 * untouched, if memory is short; or, with C undefined, if it was stopped (stops.h). */
int tf_matmul(const struct tf_precision *precision, struct tf_matrix a,
              struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
              ptrdiff_t k, ptrdiff_t count);

/* tf_matmul where A and B are parts of matrices that have a scale each (TF_SCALED_MATRIX):
 * `greatest` are the greatest finite magnitudes of these matrices. */
int tf_matmul_part(const struct tf_precision *precision, const float greatest[2],
                   struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                   ptrdiff_t m, ptrdiff_t n, ptrdiff_t k);

/* C = alpha A @ B + beta C, as BLAS has it: beta = 0 does not read C, alpha = 0 does not
 * read A or B. alpha times the sum is rounded to float32, beta C is added by a fused
 * multiply-add, the result rounded to C's kind. */
int tf_gemm_strided(const struct tf_precision *precision, struct tf_matrix a,
                struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                ptrdiff_t k, ptrdiff_t count, float alpha, float beta);

/* Once, when the instruction set has been chosen. */
void tf_matmul_prepare(void);

#endif
