/* Tiles of any size: see macro_kernel.c. */
#ifndef TF32DTYPE_MATMUL_MACRO_KERNEL_H
#define TF32DTYPE_MATMUL_MACRO_KERNEL_H

#include "matmul/tile_path.h"

/* The paths for tiles of every shape, and for products with k = 0, whose sums are +0. */
extern const struct tf_tile_path tf_macro_kernel_path, tf_zero_path;

/* Adds the sum of k products to each of `sums`, or writes it if not `adds`. Split operands
 * require `adds` to be 0 and k to be at most TF_SPLIT_SUM. */
void tf_sum_over_k(struct tf_workspace *work, const struct tf_tile *tile,
                   ptrdiff_t k, float *sums, int adds);

#endif
