/* Exact dot products and sums, each rounded once: the slow way, which always decides. */
#ifndef TF32DTYPE_EXACT_SUMS_H
#define TF32DTYPE_EXACT_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/codec.h"

/* Results: float64, or float32 if `is_float`. */
struct tf_exact_results {
    void *data;
    int is_float;
    enum tf_rounding rounding;
};

/* Writes the dot products of `count` pairs of rows, pairs[2 i] of x and pairs[2 i + 1] of
 * y. Rows of x and y have k numbers and adjoin. Returns -1 if memory is short or the call
 * was stopped. */
int tf_exact_dots(const double *x, const double *y, size_t k, const int64_t *pairs,
                  size_t count, struct tf_exact_results results);

/* Writes the sums of `count` rows of n numbers, which are `along` bytes apart. The rows are
 * `step` bytes apart. Returns -1 as tf_exact_dots. */
int tf_exact_sums(const char *x, ptrdiff_t step, ptrdiff_t along, size_t n, size_t count,
                  struct tf_exact_results results);

#endif
