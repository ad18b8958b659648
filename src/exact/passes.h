/* Passes over the rows of matrices, with the kernels of exact products. Each returns -1 if
 * memory is short or the call was stopped. Rows adjoin. */
#ifndef TF32DTYPE_EXACT_PASSES_H
#define TF32DTYPE_EXACT_PASSES_H

#include <stdatomic.h>

#include "exact/kernels.h"
#include "exact/matrix.h"

/* Writes the rows of a matrix as float64, and the facts of each row. Either may be NULL. */
int tf_exact_load(struct tf_exact_matrix given, double *rows, struct tf_row_facts *facts);

/* Slices rows: see `slice` in struct tf_exact_kernels. Writes two norms for each row. */
int tf_exact_slice(double *rest, double *slice, size_t m, size_t k,
                   const int64_t *exponents, double *norms);

/* Writes two numbers for each of `count` pairs of rows, pairs[2 i] of x and pairs[2 i + 1]
 * of y, whose sum is their dot product with a small error: see `dot`. */
int tf_exact_compensate(const double *x, const double *y, size_t k, const int64_t *pairs,
                        size_t count, double *sums);

/* The sums of m rows, their bounds and their results. `first` is the first row. Arrays of
 * rows have row_step elements for each rank. Rows of terms, results and undecided have n
 * elements. */
struct tf_exact_rounding {
    struct tf_row_of_sums first;
    size_t m;
    const double *row_ratios;
    const int64_t *row_exponents; /* NULL with column_exponents */
    enum tf_rounding rounding;
    int is_float;
    void *results;
    uint8_t *undecided;
    atomic_size_t left; /* the number of undecided sums, to which each pass adds */
};

/* Rounds all sums. */
int tf_exact_round(struct tf_exact_rounding *call);

/* Rounds the sums of a tile, of one term each; `context` is a struct tf_exact_rounding. The
 * sums are those from row i and column j on, and their rows are `ld` elements apart. */
void tf_exact_round_tile(const void *context, const double *sums, size_t ld, size_t i,
                         size_t j, size_t rows, size_t columns);

#endif
