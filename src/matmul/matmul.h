/* Matrix products in the contract's order. */
#ifndef TF32DTYPE_MATMUL_MATMUL_H
#define TF32DTYPE_MATMUL_MATMUL_H

#include <stddef.h>

#include "matmul/matrix.h"
#include "matmul/precisions.h"

/* Writes C = A @ B for `count` times one m x k and one k x n matrix. The contract's order
 * (docs/concepts/accumulation.md):
 *
 *   1. Products are exact.
 *   2. A chain of float32 fused multiply-adds, from +0, sums the products of each 256
 *      consecutive k. Chains of components have 32 k: they start with the smallest
 *      products, and scale their sums between split orders. The sums of 32 k are added in
 *      k order within 256.
 *   3. The 256-sums are added in k order in float32, those of components within 4096 k.
 *   4. The 4096-sums of components are added in k order.
 *   5. The sum is rounded once to the kind of C.
 *
 * If the precision has a path (a tensor core), the path defines the order. If it
 * `continues` and k is 0, C stays as it was.
 *
 * The number of threads, at most what OpenMP offers, changes no bit. Returns -1, with C
 * untouched, if memory is short; or, with C undefined, if it was stopped (stops.h). */
int tf_matmul(const struct tf_precision *precision, struct tf_matrix a,
              struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
              ptrdiff_t k, ptrdiff_t count);

/* Computes tf_matmul for A and B that belong to larger matrices with a scale each
 * (TF_SCALED_MATRIX): `greatest` has the largest finite magnitudes of these matrices. */
int tf_matmul_part(const struct tf_precision *precision, const float greatest[2],
                   struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                   ptrdiff_t m, ptrdiff_t n, ptrdiff_t k);

/* Writes C = alpha A @ B + beta C. As in BLAS, beta = 0 does not read C, and alpha = 0 does
 * not read A or B. alpha times the sum is rounded to float32. A fused multiply-add adds
 * beta C, and the result is rounded to C's kind. */
int tf_gemm_strided(const struct tf_precision *precision, struct tf_matrix a,
                struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                ptrdiff_t k, ptrdiff_t count, float alpha, float beta);

/* Prepares products. To be called once, after the choice of the instruction set. */
void tf_matmul_prepare(void);

#endif
