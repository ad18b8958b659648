/* Matrix products with the arguments of BLAS's gemm. */
#ifndef TF32DTYPE_MATMUL_BLAS_API_H
#define TF32DTYPE_MATMUL_BLAS_API_H

#include "matmul/matmul.h"

/* BLAS's gemm, with its rules: C = alpha op(A) op(B) + beta C, columns one after the
 * other, `lda` elements apart; op transposes for 'T', 't', 'C' and 'c'; beta = 0 does
 * not read C, alpha = 0 does not read A or B. alpha times the sum is rounded to
 * float32, beta C is added by a fused multiply-add, the result rounded to C's kind.
 * Returns 0; the number of the first argument that BLAS would not take, counted from
 * 1 as there; or -1, as tf_matmul does. */
struct tf_kinds {
    int a, b, c;
};
int tf_blas_gemm(const struct tf_precision *precision, struct tf_kinds kinds, char transa,
            char transb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha,
            const void *a, ptrdiff_t lda, const void *b, ptrdiff_t ldb, float beta,
            void *c, ptrdiff_t ldc);

#endif
