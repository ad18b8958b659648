/* A tile of C as the task of a thread. */
#ifndef TF32DTYPE_MATMUL_TILE_H
#define TF32DTYPE_MATMUL_TILE_H

#include "matmul/tile_path.h"
#include "runtime/thread_pool.h"

/* A matrix of the product as lines along k: its rows (axis 0), or its columns (1). */
struct tf_operand tf_operand_of(const struct tf_tiled_product *product,
                                struct tf_matrix x, int axis);

/* As a tf_task_fn, of a struct tf_tiled_product: computes a tile by the path that suits
 * it, and stores it. Returns the flags that this raises. */
unsigned tf_multiply_tile(const void *context, ptrdiff_t task, struct tf_worker *worker);

#endif
