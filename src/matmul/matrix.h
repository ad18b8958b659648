/* A matrix in memory, or a stack of matrices, and its transpose. */
#ifndef TF32DTYPE_MATMUL_MATRIX_H
#define TF32DTYPE_MATMUL_MATRIX_H

#include <stddef.h>

#include "formats/number_kinds.h"
#include "matmul/kernels.h"
#include "runtime/sizes.h"

/* Element (i, j) of matrix number l is at data + l * step + i * strides[0] + j *
 * strides[1], in bytes. */
struct tf_matrix {
    char *data;
    ptrdiff_t strides[2];
    ptrdiff_t step;
    int kind; /* a format, TF_FLOAT16, TF_FLOAT32 or TF_FLOAT64 */
};

static inline struct tf_matrix tf_transposed(struct tf_matrix x)
{
    const struct tf_matrix t = {x.data, {x.strides[1], x.strides[0]}, x.step, x.kind};
    return t;
}

/* Returns whether to compute the transpose of an m x n matrix C instead, since tiles of C
 * are wide and are stored row by row. */
static inline int tf_should_transpose(struct tf_matrix c, ptrdiff_t m, ptrdiff_t n)
{
    const int columns_are_close = tf_distance(c.strides[0]) < tf_distance(c.strides[1]);
    return m > n && n < TF_MR   ? 1
           : n > m && m < TF_MR ? 0
                                : columns_are_close;
}

#endif
