/* Sums of products on their way to C. */
#ifndef TF32DTYPE_MATMUL_EPILOGUE_H
#define TF32DTYPE_MATMUL_EPILOGUE_H

#include <stddef.h>

/* What a product does with its sums before they are rounded. */
struct tf_epilogue {
    float alpha, beta;
    const float *row_scales, *column_scales; /* of a tile; NULL: none */
    int columns_first;                       /* of the scales */
};

/* Row i of a tile, of n numbers; what is added to it lies at c. */
void tf_apply_epilogue(const struct tf_epilogue *update, float *sums, size_t i, size_t n,
                    int kind, const char *c, ptrdiff_t stride);

/* Up to TF_CHUNK sums to where they belong, rounded to their kind; whether there is an
 * Inf or NaN. What rounding raises is added to *flags. */
int tf_store_sums(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                  unsigned *flags);

#endif
