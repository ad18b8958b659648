/* Sums of products in which an operand may be triangular. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_TRIANGLE_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_TRIANGLE_H

#include "programs/blas/blas_multiply.h"

/* tf_blas_multiply_full, or what BLAS makes of a triangular operand.
 *
 * BLAS does not read the other triangle of a triangular operand, nor what it would be
 * multiplied by. The sums are those of the operand with zeros there; where such a zero
 * makes NaN of an Inf or a NaN, that number counts as 0 too, and so do numbers that the
 * precision would make Inf. */
int tf_blas_multiply(const struct tf_precision *precision, struct tf_blas_pair x,
                     struct tf_matrix c);

#endif
