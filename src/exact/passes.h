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
int tf_exact_slice(double *rest, void *slice, size_t m, size_t k, int is_float,
                   const int64_t *exponents, double *norms);

/* The sums of m rows, their bounds and their results. `first` is the first row. Arrays of
 * rows have row_step elements for each rank. Rows of terms and results have n elements. */
struct tf_exact_rounding {
    struct tf_row_of_sums first;
    size_t m;
    const double *row_ratios;
    const int64_t *row_exponents; /* NULL with column_exponents */
    enum tf_rounding rounding;
    int is_float;
    void *results;
    int64_t *pairs; /* the row and the column of each undecided sum, in any order */
    size_t most;    /* pairs, at most; others are only counted */
    atomic_size_t left; /* the number of undecided sums, to which each pass adds */
};

/* Rounds all sums. */
int tf_exact_round(struct tf_exact_rounding *call);

enum { TF_EXACT_COLUMNS = 1 << 11 };

/* Rounds the sums of a tile, of TF_EXACT_COLUMNS columns at most, which starts in row i and
 * column j. Its rows are `ld` elements apart. `context` is a struct tf_exact_rounding. */
void tf_exact_round_tile(const void *context, const double *sums, size_t ld, size_t i,
                         size_t j, size_t rows, size_t columns);

#endif
