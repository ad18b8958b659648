/* Strided operands, a block at a time. Loops see contiguous, aligned items:
 * those of the array itself where it has them, else a copy. */
#ifndef TF32DTYPE_STRIDED_H
#define TF32DTYPE_STRIDED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Room for a block of the widest items (long double) with their alignment. */
#define TF_BUFFER(name) _Alignas(64) unsigned char name[TF_BLOCK * 16]

static inline int tf_is_contiguous(const void *data, ptrdiff_t stride, size_t itemsize)
{
    return stride == (ptrdiff_t)itemsize && (uintptr_t)data % itemsize == 0;
}

/* Whether items lie one after the other, backwards, and fill words of eight bytes. */
static inline int tf_is_reversed(ptrdiff_t stride, size_t itemsize)
{
    return stride == -(ptrdiff_t)itemsize &&
           (itemsize == 1 || itemsize == 2 || itemsize == 4);
}

/* n items, from the one at `last` back, in the order of memory. */
static inline void tf_reverse(const char *last, size_t itemsize, size_t n, char *out)
{
    const size_t size = n * itemsize, whole = size / 8 * 8;
    const char *end = last + itemsize;
    for (size_t done = 0; done < whole; done += 8) {
        uint64_t x;
        memcpy(&x, end - done - 8, 8);
        if (itemsize == 4) {
            x = x >> 32 | x << 32;
        } else {
            x = __builtin_bswap64(x);
            const uint64_t low = UINT64_C(0x00FF00FF00FF00FF);
            x = itemsize == 1 ? x : (x >> 8 & low) | (x & low) << 8;
        }
        memcpy(out + done, &x, 8);
    }
    for (size_t done = whole; done < size; done += itemsize) {
        memcpy(out + done, end - done - itemsize, itemsize);
    }
}

/* n items from `data` on: in place where contiguous, else gathered in buffer. */
static inline const void *tf_gather(const char *data, ptrdiff_t stride,
                                    size_t itemsize, size_t n, void *buffer)
{
    if (tf_is_contiguous(data, stride, itemsize)) {
        return data;
    }
    char *out = buffer;
    if (tf_is_reversed(stride, itemsize)) {
        tf_reverse(data, itemsize, n, out);
        return buffer;
    }
    switch (itemsize) {
    case 1:
        for (size_t i = 0; i < n; i++) {
            out[i] = data[(ptrdiff_t)i * stride];
        }
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            memcpy(out + 2 * i, data + (ptrdiff_t)i * stride, 2);
        }
        break;
    case 4:
        for (size_t i = 0; i < n; i++) {
            memcpy(out + 4 * i, data + (ptrdiff_t)i * stride, 4);
        }
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            memcpy(out + itemsize * i, data + (ptrdiff_t)i * stride, itemsize);
        }
    }
    return buffer;
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
    if (items == data) {
        return;
    }
    const char *in = items;
    if (tf_is_reversed(stride, itemsize) && n > 0) {
        const size_t before = (n - 1) * itemsize;
        tf_reverse(in + before, itemsize, n, data - before);
        return;
    }
    switch (itemsize) {
    case 1:
        for (size_t i = 0; i < n; i++) {
            data[(ptrdiff_t)i * stride] = in[i];
        }
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            memcpy(data + (ptrdiff_t)i * stride, in + 2 * i, 2);
        }
        break;
    case 4:
        for (size_t i = 0; i < n; i++) {
            memcpy(data + (ptrdiff_t)i * stride, in + 4 * i, 4);
        }
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            memcpy(data + (ptrdiff_t)i * stride, in + itemsize * i, itemsize);
        }
    }
}

#endif
