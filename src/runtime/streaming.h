/* Walking arrays that no cache holds: chunks that end with cache lines, read
 * ahead, and written past the caches. */
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
    /* Bytes from which on reading ahead pays: much more than a second-level cache. */
    TF_READ_AHEAD = 1 << 22,
    /* Bytes of a result that is out of the caches before anybody reads it. */
    TF_STREAMED = 1 << 24,
};

/* Items of the next chunk, of `left`. The first of many ends where a
 * cache line of `data` does. */
static inline size_t tf_next_chunk(const void *data, size_t itemsize, ptrdiff_t left)
{
    if (left > 4 * TF_CHUNK) {
        return TF_CHUNK - (uintptr_t)data % TF_LINE / itemsize;
    }
    TF_ASSERT(left > 0);
    return tf_min_size(left, TF_CHUNK);
}

/* The chunk after this one, of n items in all, into the second cache: Intel drops what
 * is read for the first one alone from all the others, and fetches it anew. */
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

/* Whether a chunk of a result of n items goes past the caches. */
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

/* tf_target and tf_scatter for such chunks too. */
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

/* After the last chunk: other threads see them all from here on. */
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
