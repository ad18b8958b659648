/* Exact dot products and sums, each rounded once. */
#ifndef TF32DTYPE_EXACT_SUMS_H
#define TF32DTYPE_EXACT_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "exact/digits.h"
#include "exact/matrix.h"
#include "formats/codec.h"

/* Results: float64, or float32 if `is_float`. */
struct tf_exact_results {
    void *data;
    int is_float;
    enum tf_rounding rounding;
};

/* Rounds a value to result i. */
void tf_exact_write(const struct tf_exact_results *results, size_t i, struct tf_value value);

/* Writes the dot products of `count` pairs of rows, pairs[2 i] of x and pairs[2 i + 1] of
 * y. Rows of x and y have k numbers and adjoin. Returns -1 if memory is short or the call
 * was stopped. This is the slow way, which always decides. */
int tf_exact_dots(const double *x, const double *y, size_t k, const int64_t *pairs,
                  size_t count, struct tf_exact_results results);

/* Writes the sum of each row of a matrix. Returns -1 as tf_exact_dots. */
int tf_exact_sums(struct tf_exact_matrix x, struct tf_exact_results results);

#endif
