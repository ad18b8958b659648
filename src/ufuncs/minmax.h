/* Greatest and least numbers of arrays. */
#ifndef TF32DTYPE_UFUNCS_MINMAX_H
#define TF32DTYPE_UFUNCS_MINMAX_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* maximum, minimum, fmax, fmin over a whole axis at once:
 * data[0] == data[2], both strides 0. */
void tf_reduce_extreme(int format, enum tf_binary_op op, char *const data[3],
                       ptrdiff_t stride, ptrdiff_t n);

/* The same where each result is the first operand of the next. */
void tf_accumulate_extreme(int format, enum tf_binary_op op, char *const data[3],
                           const ptrdiff_t strides[3], ptrdiff_t n);

/* The place of the first greatest (or least) item, or of the first NaN. */
ptrdiff_t tf_arg_extreme(int format, int greatest, const char *items, ptrdiff_t n);

#endif
