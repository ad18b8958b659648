/* Means, variances, sums, products, ... in one pass, where they are sure to be what
 * rounding NumPy's float64 results once gives.
 *
 * NumPy adds and multiplies in an order of its own. Any order is as near to the exact
 * result as a bound says that follows from the number of elements and the greatest of
 * them: where all that lies within twice the bound rounds to one item, it is the item.
 * Sums and products of other lines are computed in NumPy's order, where that is known.
 */
#ifndef TF32DTYPE_UFUNCS_MOMENTS_H
#define TF32DTYPE_UFUNCS_MOMENTS_H

#include "ufuncs/summed_lines.h"

/* Of outer x inner lines. */
struct tf_sums {
    double *sums;    /* or what products are with 2^exponents */
    double *squares; /* NULL where they are not wanted */
    int64_t *exponents;
    double *counts;
    int32_t *greatest, *least; /* as of struct tf_moments */
};

/* Sums of all lines, or products. */
void tf_add_lines(const struct tf_summed *lines, enum tf_statistic statistic,
                  struct tf_sums found);

/* The items that follow from them, and what rounding to these raises; a variance is
 * divided by count - freedom. 0 if NumPy has to say. */
int tf_statistics(const struct tf_summed *lines, enum tf_statistic statistic,
                  double freedom, struct tf_sums found, void *items, unsigned *flags);

/* The mean of one line without a mask, weighted by items at `weights`, likewise. */
int tf_weighted_mean(const struct tf_summed *lines, const char *weights,
                     ptrdiff_t stride, void *item, unsigned *flags);

#endif
