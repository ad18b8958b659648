/* Chosen elements of a product of rows, each rounded once. */
#ifndef TF32DTYPE_EXACT_ELEMENTS_H
#define TF32DTYPE_EXACT_ELEMENTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "exact/matrix.h"
#include "exact/sums.h"

/* Rows, and what bounds their dot products: see class Rows in tf32dtype/_exact/rows.py. */
struct tf_exact_side {
    struct tf_exact_matrix given, operand;
    const double *norms;
    const double *lost;       /* NULL: no row lost anything */
    const int64_t *exponents; /* NULL: no row was divided */
    const uint8_t *special;   /* NULL: no row has an Inf or a NaN */
};

struct tf_exact_elements {
    struct tf_exact_side x, y;
    double error; /* of `dot` in struct tf_exact_kernels, relative to the norms */
    const int64_t *pairs; /* a row of x and a row of y for each element */
    size_t count;
    struct tf_exact_results results;
    size_t row; /* of a matrix of results, in elements; 0: results are in the order of pairs */
    atomic_size_t sums; /* the number of exact sums, to which the call adds */
};

/* Writes the elements: by dot products in twice float64's precision, and by exact sums where
 * these do not decide. Returns -1 as tf_exact_dots. */
int tf_exact_compute(struct tf_exact_elements *call);

#endif
