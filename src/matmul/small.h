/* Products of matrices so small that what prepares a tile would take longer. */
#ifndef TF32DTYPE_MATMUL_SMALL_H
#define TF32DTYPE_MATMUL_SMALL_H

#include "matmul/matrix.h"
#include "matmul/precisions.h"

/* tf_matmul of these: on one thread, on the stack. 0, and C is untouched, where matrices
 * are none of them. */
int tf_multiply_small(const struct tf_precision *precision, struct tf_matrix a,
                      struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                      ptrdiff_t k, ptrdiff_t count);

#endif
