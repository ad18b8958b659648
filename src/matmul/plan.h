/* Plans a product, once for each: the way, the packing, the kernels and the tiles. */
#ifndef TF32DTYPE_MATMUL_PLAN_H
#define TF32DTYPE_MATMUL_PLAN_H

#include "matmul/product.h"

/* Fills in a plan, of which only plan->product is given. */
void tf_plan_product(struct tf_plan_of_product *plan);

/* Returns the way to compute a tile of `rows` x `columns`. */
enum tf_way tf_way_of_tile(const struct tf_plan_of_product *plan, size_t rows,
                           size_t columns);

/* Returns the functions that compute and store tiles in a way. */
const struct tf_tile_path *tf_path_of_way(const struct tf_plan_of_product *plan,
                                          enum tf_way way);

/* Returns the micro-kernel for words of a packing, in tiles of `columns`. */
struct tf_kernel tf_kernel_of(enum tf_packing packing, size_t columns);

/* Returns whether operands, when they are packed, are packed as pairs of bfloat16. */
int tf_are_pairs(struct tf_operand a, struct tf_operand b);

/* The name of a way and the reason for it, for users. */
struct tf_way_text {
    const char *name, *reason;
};

struct tf_way_text tf_text_of_way(enum tf_way way);

#endif
