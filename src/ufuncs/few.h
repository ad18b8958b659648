/* Binary operations on few items, or on some of which each needs the one before it: NumPy
 * calls a loop for each run of a mask, and what prepares a chunk would take longer than
 * all of it. */
#ifndef TF32DTYPE_UFUNCS_FEW_H
#define TF32DTYPE_UFUNCS_FEW_H

#include <stddef.h>

#include "ufuncs/kernels.h"

enum { TF_FEW = 8 };

/* As tf_binary and tf_binary_at, one item after the other. How many they did: up to the
 * first result that is in doubt, or of which it takes more to tell what it raises; none
 * of some operations, or of bytes as long as there is no table. */
ptrdiff_t tf_few(int format, enum tf_binary_op op, char *const data[3],
                 const ptrdiff_t strides[3], ptrdiff_t n);
ptrdiff_t tf_few_at(int format, enum tf_binary_op op, char *const data[3],
                    const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n);

#endif
