/* A matrix that exact products and sums read. */
#ifndef TF32DTYPE_EXACT_MATRIX_H
#define TF32DTYPE_EXACT_MATRIX_H

#include <stddef.h>

/* m rows of k numbers: float32 if `is_float`, else float64. Strides are in bytes. */
struct tf_exact_matrix {
    const char *items;
    ptrdiff_t strides[2];
    size_t m, k;
    int is_float;
};

#endif
