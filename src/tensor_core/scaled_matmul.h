/* Products of matrices with a scale for each block of k, as a tensor core has them. */
#ifndef TF32DTYPE_TENSOR_CORE_SCALED_MATMUL_H
#define TF32DTYPE_TENSOR_CORE_SCALED_MATMUL_H

#include <stddef.h>

#include "tensor_core/scaled_mma_model.h"

/* Lines along k, one byte an element: rows of A or columns of B. */
struct tf_scaled_lines {
    const char *codes;
    ptrdiff_t line, along; /* strides in bytes */
    const char *scales;    /* codes, one a block */
    ptrdiff_t scale_line, scale_along;
    int format; /* index, of formats of 8 bits or fewer */
};

/* Goes on with the accumulators c, m rows of n, C-contiguous. The model is one that the
 * loops are made for: a depth of 32 with groups of 1, or 64 with groups of 16. Runs on as
 * many threads as OpenMP offers, which change no bit. Returns -1, with nothing written, if
 * memory is short; or if it was stopped (stops.h). */
int tf_scaled_matmul(const struct tf_scaled_model *model, struct tf_scaled_lines a,
                     struct tf_scaled_lines b, float *c, ptrdiff_t m, ptrdiff_t n,
                     ptrdiff_t k);

/* sums = fma(scales_a * scales_b, block, sums), of m rows of n, in float32. */
void tf_promote_block(const float *block, const float *scales_a, const float *scales_b,
                      float *sums, ptrdiff_t m, ptrdiff_t n);

#endif
