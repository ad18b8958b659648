/* Binary operations on strided arrays. */
#ifndef TF32DTYPE_UFUNCS_BINARY_H
#define TF32DTYPE_UFUNCS_BINARY_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* data and strides: two operands and the result, all of one format. A result
 * that is the next item's first operand (reduce, accumulate) is respected. */
void tf_binary(int format, enum tf_binary_op op, char *const data[3],
               const ptrdiff_t strides[3], ptrdiff_t n);

/* Two results: floor_divide and remainder. */
void tf_divmod(int format, char *const data[4], const ptrdiff_t strides[4],
               ptrdiff_t n);

#endif
