/* Binary operations on elements that an array of indices names: ufunc.at. */
#ifndef TF32DTYPE_UFUNCS_INDEXED_H
#define TF32DTYPE_UFUNCS_INDEXED_H

#include <stddef.h>
#include <string.h>

#include "ufuncs/kernels.h"

/* Items that indices name are fetched so many steps before they are needed: they may lie
 * anywhere, and what goes on meanwhile does not reach so far. */
enum { TF_INDICES_AHEAD = 16 };

/* The i-th index into `size` items, counted from the first of them. */
TF_INLINE ptrdiff_t tf_index_at(const char *indices, ptrdiff_t stride, ptrdiff_t size,
                                ptrdiff_t i)
{
    ptrdiff_t index;
    memcpy(&index, indices + i * stride, sizeof index);
    return index < 0 ? index + size : index;
}

/* x[i] = op(x[i], y), for each index i and item y in turn: data and strides are those
 * of x, which has `size` items, of the indices (intptr_t, negative ones from the end)
 * and of y. */
void tf_binary_at(int format, enum tf_binary_op op, char *const data[3],
                  const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n);

#endif
