/* Computes the sums of products in which an operand may be triangular. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_TRIANGLE_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_TRIANGLE_H

#include "programs/blas/blas_multiply.h"

/* Writes the sums of a pair to C as tf_blas_multiply_full, and as BLAS for a triangular
 * operand. Returns -1 if memory is short or a signal stopped it.
 *
 * BLAS reads neither the other triangle of a triangular operand, nor the elements that it
 * would be multiplied by. The sums here are those of the operand with zeros there. If such
 * a zero makes NaN of an Inf or a NaN, or of an element that the precision changes to Inf,
 * the element counts as 0 too. */
int tf_blas_multiply(const struct tf_precision *precision, struct tf_blas_pair x,
                     struct tf_matrix c);

#endif
