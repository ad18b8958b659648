/* Largest and smallest numbers of arrays. */
#ifndef TF32DTYPE_UFUNCS_MINMAX_H
#define TF32DTYPE_UFUNCS_MINMAX_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* Reduces a whole axis by maximum, minimum, fmax or fmin: data[0] == data[2], and both have
 * stride 0. */
void tf_reduce_extreme(int format, enum tf_binary_op op, char *const data[3],
                       ptrdiff_t stride, ptrdiff_t n);

/* As tf_reduce_extreme, but each result is the first operand of the next one. */
void tf_accumulate_extreme(int format, enum tf_binary_op op, char *const data[3],
                           const ptrdiff_t strides[3], ptrdiff_t n);

/* Returns the index of the first largest (or smallest) item, or of the first NaN. */
ptrdiff_t tf_arg_extreme(int format, int greatest, const char *items, ptrdiff_t n);

#endif
