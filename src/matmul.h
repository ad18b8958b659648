/* Matrix products in the contract's order. */
#ifndef TF32DTYPE_MATMUL_H
#define TF32DTYPE_MATMUL_H

#include <stddef.h>

/* Element (i, j) of matrix number l lies at
 * data + l * step + i * strides[0] + j * strides[1] (bytes). */
struct tf_matrix {
    char *data;
    ptrdiff_t strides[2];
    ptrdiff_t step;
};

/* C = A @ B for `count` times one m x k and one k x n matrix of a format.
 *
 * Exact products, summed by float32 fused multiply-adds over each 256
 * consecutive k from +0; those sums added in k order in float32; one rounding
 * to the format, or none `into_float32`. On as many threads as OpenMP offers,
 * which change no bit. Returns -1, with C untouched, if memory is short. */
int tf_matmul(int format, int into_float32, struct tf_matrix a, struct tf_matrix b,
              struct tf_matrix c, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
              ptrdiff_t count);

/* Once, when the instruction set has been chosen. */
void tf_matmul_prepare(void);

#endif
