/* Items that an array of indices names, for example in ufunc.at. */
#ifndef TF32DTYPE_RUNTIME_INDICES_H
#define TF32DTYPE_RUNTIME_INDICES_H

#include <stddef.h>
#include <string.h>

#include "runtime/inline.h"

/* How many steps ahead to prefetch an item that an index names. Such items may be anywhere
 * in memory, and out-of-order execution does not reach them in time. */
enum { TF_INDICES_AHEAD = 16 };

/* Returns the i-th index into `size` items. A negative index counts from the end. */
TF_INLINE ptrdiff_t tf_index_at(const char *indices, ptrdiff_t stride, ptrdiff_t size,
                                ptrdiff_t i)
{
    ptrdiff_t index;
    memcpy(&index, indices + i * stride, sizeof index);
    return index < 0 ? index + size : index;
}

#endif
