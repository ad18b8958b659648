/* Binary operations on elements that an array of indices names: ufunc.at. */
#ifndef TF32DTYPE_UFUNCS_INDEXED_H
#define TF32DTYPE_UFUNCS_INDEXED_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* Does x[i] = op(x[i], y) for each index i and item y in turn. data and strides are those
 * of x (`size` items), of the indices (intptr_t, negative ones from the end) and of y. */
void tf_binary_at(int format, enum tf_binary_op op, char *const data[3],
                  const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n);

#endif
