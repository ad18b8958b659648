/* Loops over arrays that no cache holds: chunks end with cache lines, are read ahead, and
 * are written past the caches. */
#ifndef TF32DTYPE_RUNTIME_STREAMING_H
#define TF32DTYPE_RUNTIME_STREAMING_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/asserts.h"
#include "runtime/kernel_table.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TF_LINE = 64, /* bytes of a cache line */
    /* Bytes from which on reading ahead pays: much more than L2. */
    TF_READ_AHEAD = 1 << 22,
    /* Bytes of a result from which on it leaves the caches before it is read. */
    TF_STREAMED = 1 << 24,
};

/* Returns the number of items in the next chunk, of `left`. The first chunk of many ends at
 * the end of a cache line of `data`. */
static inline size_t tf_next_chunk(const void *data, size_t itemsize, ptrdiff_t left)
{
    if (left > 4 * TF_CHUNK) {
        return TF_CHUNK - (uintptr_t)data % TF_LINE / itemsize;
    }
    TF_ASSERT(left > 0);
    return tf_min_size(left, TF_CHUNK);
}

/* Prefetches the chunk after this one of `count` items into L2, if n is large. Intel CPUs
 * drop a line that is read only for L1 from all other caches, and fetch it again. */
static inline void tf_read_ahead(const char *data, ptrdiff_t stride, size_t itemsize,
                                 size_t count, ptrdiff_t n)
{
    if (n < TF_READ_AHEAD / (ptrdiff_t)itemsize) {
        return;
    }
    const char *next = data + (ptrdiff_t)count * stride;
    for (size_t i = 0; i < count * itemsize; i += TF_LINE) {
        __builtin_prefetch(next + i, 0, 2);
    }
}

/* Returns whether a chunk of a result of n items is written past the caches. */
static inline int tf_streams(const char *data, ptrdiff_t stride, size_t itemsize,
                             size_t count, ptrdiff_t n)
{
#if defined(__SSE2__)
    return n >= TF_STREAMED / (ptrdiff_t)itemsize && stride == (ptrdiff_t)itemsize &&
           (uintptr_t)data % TF_LINE == 0 && count * itemsize % TF_LINE == 0;
#else
    (void)data, (void)stride, (void)itemsize, (void)count, (void)n;
    return 0;
#endif
}

/* As tf_target and tf_scatter, for chunks that may be written past the caches. */
static inline void *tf_large_target(char *data, ptrdiff_t stride, size_t itemsize,
                                    size_t count, ptrdiff_t n, void *buffer)
{
    return tf_streams(data, stride, itemsize, count, n)
               ? buffer
               : tf_target(data, stride, itemsize, buffer);
}

static inline void tf_large_scatter(const void *items, char *data, ptrdiff_t stride,
                                    size_t itemsize, size_t count, ptrdiff_t n)
{
    if (!tf_streams(data, stride, itemsize, count, n)) {
        tf_scatter(items, data, stride, itemsize, count);
        return;
    }
#if defined(__SSE2__)
    const __m128i *in = items;
    __m128i *out = (__m128i *)data;
    for (size_t line = 0; line < count * itemsize / TF_LINE; line++, in += 4, out += 4) {
        _mm_stream_si128(out, _mm_load_si128(in));
        _mm_stream_si128(out + 1, _mm_load_si128(in + 1));
        _mm_stream_si128(out + 2, _mm_load_si128(in + 2));
        _mm_stream_si128(out + 3, _mm_load_si128(in + 3));
    }
#endif
}

/* Call this after the last chunk: other threads then see all chunks. */
static inline void tf_large_end(size_t itemsize, ptrdiff_t n)
{
#if defined(__SSE2__)
    if (n >= TF_STREAMED / (ptrdiff_t)itemsize) {
        _mm_sfence();
    }
#else
    (void)itemsize, (void)n;
#endif
}

#endif
