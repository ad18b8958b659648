/* Strided operands, a chunk at a time. Loops see contiguous, aligned items:
 * those of the array itself where it has them, else a copy. */
#ifndef TF32DTYPE_RUNTIME_STRIDED_H
#define TF32DTYPE_RUNTIME_STRIDED_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/copies.h"

/* Room for a chunk of the widest items (long double) with their alignment. */
#define TF_BUFFER(name) _Alignas(64) unsigned char name[TF_CHUNK * 16]

static inline int tf_is_contiguous(const void *data, ptrdiff_t stride, size_t itemsize)
{
    return stride == (ptrdiff_t)itemsize && (uintptr_t)data % itemsize == 0;
}

/* Whether a result is an operand of the one after it: a reduction's or an
 * accumulation's step needs the one before it. */
static inline int tf_is_serial(char *const data[3], const ptrdiff_t strides[3])
{
    const int reduces = data[0] == data[2] && strides[0] == 0 && strides[2] == 0;
    return reduces || (data[2] == data[0] + strides[0] && strides[0] == strides[2]);
}

/* n items from `data` on: in place where contiguous, else gathered in buffer. */
static inline const void *tf_gather(const char *data, ptrdiff_t stride,
                                    size_t itemsize, size_t n, void *buffer)
{
    if (tf_is_contiguous(data, stride, itemsize)) {
        return data;
    }
    tf_copy(itemsize, buffer, (ptrdiff_t)itemsize, data, stride, n);
    return buffer;
}

/* Whether two times `size` bytes overlap. NumPy hands over results that lie a few items
 * before the operand, too: what has been written must not be read again. */
static inline int tf_overlap(const void *a, const void *b, size_t size)
{
    return (uintptr_t)a < (uintptr_t)b + size && (uintptr_t)b < (uintptr_t)a + size;
}

/* Where a loop writes n items that tf_scatter then brings to `data`. */
static inline void *tf_target(char *data, ptrdiff_t stride, size_t itemsize,
                              void *buffer)
{
    return tf_is_contiguous(data, stride, itemsize) ? data : buffer;
}

static inline void tf_scatter(const void *items, char *data, ptrdiff_t stride,
                              size_t itemsize, size_t n)
{
    if (items != data) {
        tf_copy(itemsize, data, stride, items, (ptrdiff_t)itemsize, n);
    }
}

#endif
