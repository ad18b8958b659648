/* Matrix products in the contract's order. */
#ifndef TF32DTYPE_MATMUL_MATMUL_H
#define TF32DTYPE_MATMUL_MATMUL_H

#include <stddef.h>

#include "matmul/matrix.h"

/* What numbers are divided by before they are rounded: the greatest finite magnitude
 * over the format's, of each matrix or of each row of A and column of B. */
enum tf_scaling { TF_UNSCALED, TF_SCALED_MATRIX, TF_SCALED_LINES };

/* What NumPy's float32 and float64 numbers become before they are multiplied; numbers
 * of our formats, and float16, are multiplied as they are. If parts > 1 every operand is
 * split, whatever its dtype. */
struct tf_precision {
    int format;    /* what they are rounded to: a format, TF_FLOAT16 or TF_FLOAT32 */
    int rounding;  /* enum tf_rounding: tf32 also to ties_to_away and toward_zero */
    int scaling;   /* enum tf_scaling */
    int parts;     /* 1; or 2 or 3, of bfloat16 or tf32: operand_split.h */
    int split_orders; /* of 2 or 3 parts: which products, 2 (of 3), 3 (6) or 5 (9) */
    int saturates; /* Inf counts as the largest number, in a split */
    /* What computes the tiles of C instead of this CPU's float32: a tensor core
     * (tensor_core/mma_matmul.h); or NULL. The rest is 0 where it is NULL. */
    const struct tf_tile_path *path;
    int promote;   /* k after which accumulators are added to others; 0: never */
    int continues; /* the accumulators begin with C, not with zero */
    int silent;    /* no flags are raised */
};

/* Writes C = A @ B for `count` times one m x k and one k x n matrix. The contract's order
 * (docs/how_to/precision.md, "The order of the sums"):
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
