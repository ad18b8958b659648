/* Means, variances, sums, products, ... in one pass, if they surely equal NumPy's float64
 * results, rounded once.
 *
 * NumPy adds and multiplies in an order of its own. In any order, the error has a bound
 * that follows from the number of elements and the largest magnitude. If all numbers within
 * twice the bound round to one item, the result is this item. Sums and products of other
 * lines are computed in NumPy's order, if that is known. */
#ifndef TF32DTYPE_UFUNCS_MOMENTS_H
#define TF32DTYPE_UFUNCS_MOMENTS_H

#include "ufuncs/summed_lines.h"

/* The sums of outer x inner lines. */
struct tf_sums {
    double *sums;    /* or for products, factors of 2^exponents */
    double *squares; /* NULL if not wanted */
    int64_t *exponents;
    double *counts;
    int32_t *greatest, *least; /* as in struct tf_moments */
};

/* Computes the sums of all lines, or their products. */
void tf_add_lines(const struct tf_summed *lines, enum tf_statistic statistic,
                  struct tf_sums found);

/* Writes the items that follow from the sums, and adds the flags of their rounding. A
 * variance is divided by count - freedom. Returns 0 if NumPy must compute instead. */
int tf_statistics(const struct tf_summed *lines, enum tf_statistic statistic,
                  double freedom, struct tf_sums found, void *items, unsigned *flags);

/* As tf_statistics, for the mean of one line without a mask, weighted by `weights`. */
int tf_weighted_mean(const struct tf_summed *lines, const char *weights,
                     ptrdiff_t stride, void *item, unsigned *flags);

#endif
