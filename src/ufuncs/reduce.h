/* Sums and products: reductions as if exact, rounded once. */
#ifndef TF32DTYPE_UFUNCS_REDUCE_H
#define TF32DTYPE_UFUNCS_REDUCE_H

#include <stddef.h>

#include "ufuncs/pages.h"

/* Does add or multiply, whatever NumPy means by the call: elementwise, a step of a
 * reduction, or an accumulation. `partials` is NULL if the call is not a reduction, although
 * it may overwrite its first operand. Returns -1 if memory is short, else 0. */
int tf_reduce(int format, enum tf_reduction op, struct tf_partials *partials,
              char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n);

/* Sums over the middle axis of a C-contiguous array of three axes, with the bits of
 * tf_reduce row after row, but rounded once. Adds raised flags to *flags. Returns 0 if
 * tf_reduce must do it, since infinities may have made NaN. */
int tf_sum_rows(int format, const char *in, char *out, ptrdiff_t outer, ptrdiff_t rows,
                ptrdiff_t columns, unsigned *flags);

#endif
