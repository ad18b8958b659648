/* Binary operations on strided arrays. */
#ifndef TF32DTYPE_UFUNCS_BINARY_H
#define TF32DTYPE_UFUNCS_BINARY_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* Computes n results. data and strides: two operands and the result, all of one format. A
 * result may be the first operand of the next item (reduce, accumulate). */
void tf_binary(int format, enum tf_binary_op op, char *const data[3],
               const ptrdiff_t strides[3], ptrdiff_t n);

/* Writes two results: floor_divide to data[2] and remainder to data[3]. */
void tf_divmod(int format, char *const data[4], const ptrdiff_t strides[4],
               ptrdiff_t n);

#endif
