/* Products of matrices so small that the preparation of a tile would take longer. */
#ifndef TF32DTYPE_MATMUL_SMALL_H
#define TF32DTYPE_MATMUL_SMALL_H

#include "matmul/product.h"

enum {
    TF_SMALL_SIDE = 64,
    TF_SMALL_NUMBERS = TF_SMALL_SIDE * TF_SMALL_SIDE, /* of A, B and C, with padding */
    TF_ROWS_BEHIND = TF_TALL_MR - 1, /* rows after the last, which kernels read and write */
    TF_SMALL_SUMS = TF_SMALL_NUMBERS + TF_ROWS_BEHIND * TF_SMALL_SIDE,
};

/* Computes products as TF_SMALL_MATRICES, in one thread, with words and sums on the
 * stack. */
void tf_multiply_small(const struct tf_plan_of_product *plan);

#endif
