/* Tiles of any size: see macro_kernel.c. */
#ifndef TF32DTYPE_MATMUL_MACRO_KERNEL_H
#define TF32DTYPE_MATMUL_MACRO_KERNEL_H

#include "matmul/tile_path.h"

/* For tiles of every shape; and for products without any k, whose sums are +0. */
extern const struct tf_tile_path tf_macro_kernel_path, tf_zero_path;

/* Adds the products of k, in order, to `sums`, or writes them there if not `adds`. Of
 * parts only where `adds` is 0 and k at most TF_SPLIT_SUM. */
void tf_sum_over_k(struct tf_workspace *work, const struct tf_tile *tile,
                   ptrdiff_t k, float *sums, int adds);

#endif
