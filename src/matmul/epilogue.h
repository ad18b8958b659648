/* The epilogue: scales, rounds and stores sums of products in C. */
#ifndef TF32DTYPE_MATMUL_EPILOGUE_H
#define TF32DTYPE_MATMUL_EPILOGUE_H

#include "matmul/product.h"

/* Stores n sums, at most TF_CHUNK, rounded to `kind`. Returns whether there is an Inf or
 * NaN. Adds the flags that rounding raises to *flags, unless `flags` is NULL. */
int tf_store_sums(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                  unsigned *flags);

/* Stores the sums of a tile in C by its path's store: times the scales and alpha, plus beta
 * C. Returns the flags that this raises, and those of products whose sums are Inf or
 * NaN. */
unsigned tf_store_tile(const struct tf_plan_of_product *plan, struct tf_workspace *work,
                       const struct tf_tile *tile, const struct tf_tile_path *path,
                       float *sums, struct tf_matrix c);

#endif
