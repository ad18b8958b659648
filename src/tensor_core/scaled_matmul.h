/* Multiply matrices that have one scale per block of k, as a tensor core does. */
#ifndef TF32DTYPE_TENSOR_CORE_SCALED_MATMUL_H
#define TF32DTYPE_TENSOR_CORE_SCALED_MATMUL_H

#include <stddef.h>

#include "tensor_core/scaled_mma_model.h"

/* Lines along k, one byte per element: rows of A or columns of B. */
struct tf_scaled_lines {
    const char *codes;
    ptrdiff_t line, along; /* strides in bytes */
    const char *scales;    /* codes, one per block */
    ptrdiff_t scale_line, scale_along;
    int format; /* index of a format of 8 bits or fewer */
};

/* Adds the products to the accumulators c, m rows of n, C-contiguous. The model must have a
 * depth of 32 with groups of 1, or 64 with groups of 16. Runs on as many threads as OpenMP
 * offers; their number changes no bit. Returns -1 if memory is short, with nothing written,
 * or if it was stopped (stops.h). */
int tf_scaled_matmul(const struct tf_scaled_model *model, struct tf_scaled_lines a,
                     struct tf_scaled_lines b, float *c, ptrdiff_t m, ptrdiff_t n,
                     ptrdiff_t k);

/* Computes sums = fma(scales_a * scales_b, block, sums) in float32, for m rows of n. */
void tf_promote_block(const float *block, const float *scales_a, const float *scales_b,
                      float *sums, ptrdiff_t m, ptrdiff_t n);

#endif
