/* Binary operations on few items, or on items that each need the result before. NumPy calls
 * a loop for each run of a mask, and to prepare a chunk would take longer. */
#ifndef TF32DTYPE_UFUNCS_FEW_H
#define TF32DTYPE_UFUNCS_FEW_H

#include <stddef.h>

#include "ufuncs/kernels.h"

enum { TF_FEW = 8 };

/* As tf_binary and tf_binary_at, one item after the other. Return how many items they did:
 * up to the first result that is in doubt or whose flags take more work to find. Return 0
 * for some operations, and for items of a byte as long as there is no table. */
ptrdiff_t tf_few(int format, enum tf_binary_op op, char *const data[3],
                 const ptrdiff_t strides[3], ptrdiff_t n);
ptrdiff_t tf_few_at(int format, enum tf_binary_op op, char *const data[3],
                    const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n);

#endif
