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

/* One item, n times. */
static inline void tf_fill(const char *item, size_t itemsize, size_t n, void *out)
{
    if (itemsize == 1) {
        memset(out, *(const unsigned char *)item, n);
    } else if (itemsize == 2) {
        uint16_t x, *items = out;
        memcpy(&x, item, sizeof x);
        for (size_t i = 0; i < n; i++) {
            items[i] = x;
        }
    } else if (itemsize == 4) {
        uint32_t x, *items = out;
        memcpy(&x, item, sizeof x);
        for (size_t i = 0; i < n; i++) {
            items[i] = x;
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            memcpy((char *)out + itemsize * i, item, itemsize);
        }
    }
}

/* Every second item: a compiler's vectors know how, where the distance is written out. */
static inline void tf_gather_seconds(const char *data, size_t itemsize, size_t n,
                                     void *buffer)
{
    if (itemsize == 1) {
        uint8_t *out = buffer;
        for (size_t i = 0; i < n; i++) {
            out[i] = ((const uint8_t *)data)[2 * i];
        }
    } else if (itemsize == 2) {
        uint16_t *out = buffer;
        for (size_t i = 0; i < n; i++) {
            out[i] = ((const uint16_t *)data)[2 * i];
        }
    } else {
        uint32_t *out = buffer;
        for (size_t i = 0; i < n; i++) {
            out[i] = ((const uint32_t *)data)[2 * i];
        }
    }
}

/* Items between places of any distance, four at a time: all loads before the stores,
 * twice as fast. Where itemsize is a constant, so are the copies' sizes. */
static inline __attribute__((always_inline)) void tf_copy_each(
    const char *in, ptrdiff_t in_stride, char *out, ptrdiff_t out_stride,
    size_t itemsize, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4, in += 4 * in_stride, out += 4 * out_stride) {
        char a[16], b[16], c[16], d[16];
        memcpy(a, in, itemsize);
        memcpy(b, in + in_stride, itemsize);
        memcpy(c, in + 2 * in_stride, itemsize);
        memcpy(d, in + 3 * in_stride, itemsize);
        memcpy(out, a, itemsize);
        memcpy(out + out_stride, b, itemsize);
        memcpy(out + 2 * out_stride, c, itemsize);
        memcpy(out + 3 * out_stride, d, itemsize);
    }
    for (; i < n; i++, in += in_stride, out += out_stride) {
        memcpy(out, in, itemsize);
    }
}

static inline void tf_copy_items(const char *in, ptrdiff_t in_stride, char *out,
                                 ptrdiff_t out_stride, size_t itemsize, size_t n)
{
    switch (itemsize) {
    case 1: tf_copy_each(in, in_stride, out, out_stride, 1, n); break;
    case 2: tf_copy_each(in, in_stride, out, out_stride, 2, n); break;
    case 4: tf_copy_each(in, in_stride, out, out_stride, 4, n); break;
    default:
        for (size_t i = 0; i < n; i++) {
            memcpy(out + (ptrdiff_t)i * out_stride, in + (ptrdiff_t)i * in_stride,
                   itemsize);
        }
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
    if (stride == 0) {
        tf_fill(data, itemsize, n, out);
        return buffer;
    }
    if (tf_is_reversed(stride, itemsize)) {
        tf_reverse(data, itemsize, n, out);
        return buffer;
    }
    const int is_small = itemsize == 1 || itemsize == 2 || itemsize == 4;
    if (stride == (ptrdiff_t)itemsize) { /* unaligned */
        return memcpy(buffer, data, n * itemsize);
    }
    if (is_small && stride == 2 * (ptrdiff_t)itemsize &&
        (uintptr_t)data % itemsize == 0) {
        tf_gather_seconds(data, itemsize, n, buffer);
        return buffer;
    }
    tf_copy_items(data, stride, out, (ptrdiff_t)itemsize, itemsize, n);
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
    if (stride == (ptrdiff_t)itemsize) {
        memcpy(data, items, n * itemsize);
        return;
    }
    const char *in = items;
    if (tf_is_reversed(stride, itemsize) && n > 0) {
        const size_t before = (n - 1) * itemsize;
        tf_reverse(in + before, itemsize, n, data - before);
        return;
    }
    tf_copy_items(in, (ptrdiff_t)itemsize, data, stride, itemsize, n);
}

#endif
