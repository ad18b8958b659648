/* Matrix multiplication of float64 matrices by chains of fused multiply-adds. */
#ifndef TF32DTYPE_TENSOR_CORE_FMA_MATMUL_H
#define TF32DTYPE_TENSOR_CORE_FMA_MATMUL_H

#include <stddef.h>

#include "matmul/matrix.h"

/* Computes C = C + A @ B in float64 for `count` pairs of an m x k and a k x n matrix. Each
 * element is a chain c = fma(a, b, c) in the order of k. Zeros after the last k fill the
 * last instruction; they turn c = -0 into +0 and change nothing else. Every NaN becomes
 * 0x7FF8000000000000. If k is 0, C stays as it is.
 *
 * Runs on as many threads as OpenMP offers; their number changes no bit. Raises no
 * floating-point flags. Returns -1 if memory is short, with C unchanged, or if it was
 * stopped (stops.h), with C undefined. */
int tf_fma_matmul(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c, ptrdiff_t m,
                  ptrdiff_t n, ptrdiff_t k, ptrdiff_t count, ptrdiff_t instruction_depth);

/* Takes the sums of a tile: `rows` rows of a matrix from row i on, `ld` elements apart, and
 * `columns` columns from column j on. */
typedef void tf_sums_fn(const void *context, const double *sums, size_t ld, size_t i,
                        size_t j, size_t rows, size_t columns);

/* Computes A @ B in float64 for one matrix of float32 or float64 each, and gives each sum to
 * `store` once, from any thread. Sums have another order than those of tf_fma_matmul: see
 * tf_float64_depth. Returns -1 as tf_fma_matmul. */
int tf_float64_matmul(struct tf_matrix a, struct tf_matrix b, ptrdiff_t m, ptrdiff_t n,
                      ptrdiff_t k, tf_sums_fn *store, const void *context);

/* Returns the most roundings of a product until tf_float64_matmul has added it to a sum of
 * k products, or 0 if BLAS libraries take less time. */
size_t tf_float64_depth(size_t k);

#endif
