/* Matrix products in the contract's order. */
#ifndef TF32DTYPE_MATMUL_H
#define TF32DTYPE_MATMUL_H

#include <stddef.h>

/* C = A @ B for one m x k and one k x n matrix of a format; element (i, j) of
 * a matrix lies at data + i * strides[0] + j * strides[1] (bytes).
 *
 * Exact products, summed by float32 fused multiply-adds over each 256
 * consecutive k from +0; those sums added in k order in float32; one rounding
 * to the format, or none `into_float32`. Returns -1, with C untouched, if
 * memory is short. */
struct tf_matrix {
    char *data;
    ptrdiff_t strides[2];
};

int tf_matmul(int format, int into_float32, struct tf_matrix a, struct tf_matrix b,
              struct tf_matrix c, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k);

/* Frees the memory that is kept from call to call. */
void tf_matmul_free(void);

#endif
