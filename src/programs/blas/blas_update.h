/* What BLAS makes of sums: C = alpha sums + beta C. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_UPDATE_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_UPDATE_H

#include "programs/blas/blas_call.h"

/* Writes C, or its triangle, from the sums A B, m x n, row after row, or column after
 * column as C has them: float32 numbers; of complex products pairs of C's type. `more`
 * are those of the second product of syr2k and her2k, else NULL; without `sums` C
 * becomes beta C. In C's own type, each operation rounded once:
 *
 *     real:     s = alpha sum, plus alpha more;  C = fma(beta, C, s)
 *     complex:  the same with x y = (xr yr - xi yi, xr yi + xi yr), or (xr yr, xr yi)
 *               where xi = 0, x being alpha or beta; and C = s + beta C
 *
 * With beta = 0 it is s, and C is not read. The diagonal of a Hermitian C counts, and
 * becomes, real. Raises what tf_matmul does: overflow for Inf of finite numbers, invalid
 * for NaN of numbers. */
void tf_blas_update(const struct tf_blas_product *product, const char *sums,
                    const char *more, int silent);

/* Whether the columns of C, and so of sums, are close. */
int tf_blas_by_columns(const struct tf_blas_product *product);

/* What an item of `sums` takes. */
size_t tf_blas_sum_size(char type);

#endif
