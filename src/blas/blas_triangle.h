/* Sums that zeros of a triangular operand have made NaN, since they met Inf or NaN. */
#ifndef TF32DTYPE_BLAS_BLAS_TRIANGLE_H
#define TF32DTYPE_BLAS_BLAS_TRIANGLE_H

#include "blas/blas_multiply.h"

/* Computes these sums of a product again, which are in C. Returns -1 if memory is short or it
 * was stopped; else whether a NaN is left that comes from no NaN, so that it raises
 * FE_INVALID. Whether the flag is raised then does not count. */
int tf_blas_mend_triangle(const struct tf_precision *precision, struct tf_blas_pair x,
                          struct tf_matrix c);

#endif
