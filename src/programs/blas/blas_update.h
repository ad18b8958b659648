/* Updates C as BLAS does: C = alpha sums + beta C. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_UPDATE_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_UPDATE_H

#include "programs/blas/blas_call.h"

/* Writes C, or its triangle, from the sums A B, m x n, which are stored by rows or by
 * columns (tf_blas_by_columns): values of tf_blas_sum_kind; for complex products, pairs.
 * `more` are the sums of the second product of syr2k and her2k, otherwise NULL. Without
 * `sums`, C becomes beta C. Operations are in C's own type, and each is rounded once:
 *
 *     real:     s = alpha sum, plus alpha more;  C = fma(beta, C, s)
 *     complex:  the same with x y = (xr yr - xi yi, xr yi + xi yr), or (xr yr, xr yi)
 *               where xi = 0, x being alpha or beta; and C = s + beta C
 *
 * With beta = 0, C = s, and C is not read. The diagonal of a Hermitian C counts as real,
 * and becomes real. Unless `silent`, raises flags as tf_matmul does: overflow if finite
 * values give Inf, invalid if values without NaN give NaN. */
void tf_blas_update(const struct tf_blas_product *product, const char *sums,
                    const char *more, int silent);

/* Returns whether C, and so its sums, are stored by columns rather than by rows. */
int tf_blas_by_columns(const struct tf_blas_product *product);

/* Returns the kind of the real components of `sums`: that of C's type for complex products.
 * Others have float32 sums; those of product->products are float64 if C's type is, and
 * for dsdot and sdsdot. */
int tf_blas_sum_kind(const struct tf_blas_product *product);

/* Returns the size of an item of `sums` in bytes. */
size_t tf_blas_sum_size(const struct tf_blas_product *product);

#endif
