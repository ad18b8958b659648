/* Products of float64 matrices whose elements are chains of fused multiply-adds. */
#ifndef TF32DTYPE_TENSOR_CORE_FMA_MATMUL_H
#define TF32DTYPE_TENSOR_CORE_FMA_MATMUL_H

#include <stddef.h>

#include "matmul/matrix.h"

/* C = C + A @ B for `count` times one m x k and one k x n matrix, all of float64: for each
 * k in order c = fma(a, b, c), with zeros after the last k up to whole instructions. Of
 * these c = -0 becomes +0 and nothing else changes. Every NaN is 0x7FF8000000000000.
 * Without any k, C is as it was.
 *
 * Runs on as many threads as OpenMP offers, which change no bit; raises no flags. Returns
 * -1, with C untouched, if memory is short; or, with C undefined, if it was stopped
 * (stops.h). */
int tf_fma_matmul(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c, ptrdiff_t m,
                  ptrdiff_t n, ptrdiff_t k, ptrdiff_t count, ptrdiff_t instruction_depth);

#endif
