/* Computes a tile of C, as the task of a thread. */
#ifndef TF32DTYPE_MATMUL_TILE_H
#define TF32DTYPE_MATMUL_TILE_H

#include "matmul/product.h"

/* As a tf_tile_fn, for a struct tf_plan_of_product: computes a tile in the way that suits
 * it, and stores it. */
unsigned tf_multiply_tile(const void *context, struct tf_tile_place place,
                          struct tf_worker *worker);

#endif
