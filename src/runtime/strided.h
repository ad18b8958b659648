/* Strided operands, one chunk at a time. Loops get contiguous, aligned items: the array's
 * own items if they are so, else a copy. */
#ifndef TF32DTYPE_RUNTIME_STRIDED_H
#define TF32DTYPE_RUNTIME_STRIDED_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/copies.h"

/* Declares a buffer for a chunk of the widest items (long double), aligned. */
#define TF_BUFFER(name) _Alignas(64) unsigned char name[TF_CHUNK * 16]

static inline int tf_is_contiguous(const void *data, ptrdiff_t stride, size_t itemsize)
{
    return stride == (ptrdiff_t)itemsize && (uintptr_t)data % itemsize == 0;
}

/* Returns whether each result is an operand of the next one: a step of a reduction or of an
 * accumulation needs the step before. */
static inline int tf_is_serial(char *const data[3], const ptrdiff_t strides[3])
{
    const int reduces = data[0] == data[2] && strides[0] == 0 && strides[2] == 0;
    return reduces || (data[2] == data[0] + strides[0] && strides[0] == strides[2]);
}

/* Returns n items from `data` on: in place if contiguous, else copied to `buffer`. */
static inline const void *tf_gather(const char *data, ptrdiff_t stride,
                                    size_t itemsize, size_t n, void *buffer)
{
    if (tf_is_contiguous(data, stride, itemsize)) {
        return data;
    }
    tf_copy(itemsize, buffer, (ptrdiff_t)itemsize, data, stride, n);
    return buffer;
}

/* Returns whether two areas of `size` bytes overlap. NumPy passes results a few items
 * before the operand, too: a loop must not read items that it has written over. */
static inline int tf_overlap(const void *a, const void *b, size_t size)
{
    return (uintptr_t)a < (uintptr_t)b + size && (uintptr_t)b < (uintptr_t)a + size;
}

/* Returns where a loop writes n items that tf_scatter then moves to `data`. */
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
