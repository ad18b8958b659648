/* Sums of products on their way to C. */
#ifndef TF32DTYPE_MATMUL_EPILOGUE_H
#define TF32DTYPE_MATMUL_EPILOGUE_H

#include "matmul/product.h"

/* Up to TF_CHUNK sums to where they belong, rounded to their kind; whether there is an
 * Inf or NaN. What rounding raises is added to *flags. */
int tf_store_sums(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                  unsigned *flags);

/* Brings the sums of a tile to C by its path's store: times the scales and alpha, plus
 * beta C. Returns the flags that this raises, and those that products of its operands
 * raised whose sums are Inf or NaN. */
unsigned tf_store_tile(const struct tf_plan_of_product *plan, struct tf_workspace *work,
                       const struct tf_tile *tile, const struct tf_tile_path *path,
                       float *sums, struct tf_matrix c);

#endif
