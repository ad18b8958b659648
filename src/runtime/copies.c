/* Copies strided items, with fast loops for the most frequent sizes and strides. */
#include "runtime/copies.h"

#include <stdint.h>
#include <string.h>

#include "runtime/inline.h"
#include "runtime/kernel_table.h"
#include "runtime/sizes.h"

/* -- backwards ---------------------------------------------------------------- */

/* Returns whether items are contiguous in reverse order, of a size that `reverse` takes. */
static int is_reversed(ptrdiff_t stride, size_t itemsize)
{
    return stride == -(ptrdiff_t)itemsize &&
           (itemsize == 1 || itemsize == 2 || itemsize == 4);
}

#if defined(__SSE2__)
#include <emmintrin.h>

TF_INLINE __m128i reversed(__m128i x, size_t itemsize)
{
    if (itemsize == 1) {
        x = _mm_or_si128(_mm_slli_epi16(x, 8), _mm_srli_epi16(x, 8));
    }
    if (itemsize <= 2) {
        x = _mm_shufflelo_epi16(x, 0xB1);
        x = _mm_shufflehi_epi16(x, 0xB1);
    }
    return _mm_shuffle_epi32(x, 0x1B);
}
#endif

/* Copies n items in reverse order: the item at `last`, the highest address, comes first. */
TF_INLINE void reverse_sized(const char *last, size_t itemsize, size_t n, char *out)
{
    const size_t size = n * itemsize;
    const char *end = last + itemsize;
    size_t done = 0;
#if defined(__SSE2__)
    enum { TOGETHER = 64 }; /* bytes: loads before stores halve the time */
    for (; done + TOGETHER <= size; done += TOGETHER) {
        __m128i x[TOGETHER / 16];
        for (size_t i = 0; i < TOGETHER / 16; i++) {
            const char *in = end - done - 16 * (i + 1);
            x[i] = reversed(_mm_loadu_si128((const __m128i *)in), itemsize);
        }
        for (size_t i = 0; i < TOGETHER / 16; i++) {
            _mm_storeu_si128((__m128i *)(out + done) + i, x[i]);
        }
    }
    for (; done + 16 <= size; done += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(end - done - 16));
        _mm_storeu_si128((__m128i *)(out + done), reversed(x, itemsize));
    }
#endif
    for (; done < size; done += itemsize) {
        memcpy(out + done, end - done - itemsize, itemsize);
    }
}

static void reverse(const char *last, size_t itemsize, size_t n, char *out)
{
    switch (itemsize) {
    case 1: reverse_sized(last, 1, n, out); break;
    case 2: reverse_sized(last, 2, n, out); break;
    default: reverse_sized(last, 4, n, out);
    }
}

/* -- any strides --------------------------------------------------------------- */

/* Copies n items one after the other. With a constant size, the compiler makes each memcpy
 * a load and a store. Calls of memcpy would take ten times as long. */
TF_INLINE void copy_each(size_t itemsize, char *out, ptrdiff_t out_stride,
                         const char *in, ptrdiff_t in_stride, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(out, in, itemsize);
        out += out_stride;
        in += in_stride;
    }
}

/* Copies n items of up to 16 bytes: four loads before their stores halve the time. */
TF_INLINE void copy_fours(size_t itemsize, char *out, ptrdiff_t out_stride,
                          const char *in, ptrdiff_t in_stride, size_t n)
{
    char four[4][16];
    for (; n >= 4; n -= 4) {
        for (int i = 0; i < 4; i++) {
            memcpy(four[i], in + i * in_stride, itemsize);
        }
        for (int i = 0; i < 4; i++) {
            memcpy(out + i * out_stride, four[i], itemsize);
        }
        out += 4 * out_stride;
        in += 4 * in_stride;
    }
    copy_each(itemsize, out, out_stride, in, in_stride, n);
}

/* Writes one item n times: up to FEW times 16 bytes at a time and one by one, then copies of
 * these items. */
TF_INLINE void repeat(size_t itemsize, char *out, const char *item, size_t n)
{
    enum { FEW = 1024, TOGETHER = 16 };
    char copies[TOGETHER];
    if (itemsize == 1) {
        memset(out, *item, n);
        return;
    }
    const size_t few = tf_min_size(n, FEW), size = few * itemsize;
    size_t at = 0;
    copy_each(itemsize, copies, (ptrdiff_t)itemsize, item, 0, TOGETHER / itemsize);
    for (; at + TOGETHER <= size; at += TOGETHER) {
        memcpy(out + at, copies, TOGETHER);
    }
    for (; at < size; at += itemsize) {
        memcpy(out + at, copies, itemsize);
    }
    for (size_t done = few; done < n; done += few) {
        const size_t count = tf_min_size(n - done, few);
        memcpy(out + done * itemsize, out, count * itemsize);
    }
}

/* Copies n items of a constant size. The most frequent copies whose output items do not
 * overlap have loops of their own: one item repeated, and every second item. */
TF_INLINE void copy_sized(size_t itemsize, char *out, ptrdiff_t out_stride,
                          const char *in, ptrdiff_t in_stride, size_t n)
{
    const ptrdiff_t size = (ptrdiff_t)itemsize;
    if (out_stride == size && in_stride == 0) {
        repeat(itemsize, out, in, n);
    } else if (out_stride == size && in_stride == 2 * size) {
        tf_isa->copies->copy_seconds(itemsize, in, out, n);
    } else {
        copy_fours(itemsize, out, out_stride, in, in_stride, n);
    }
}

void tf_copy(size_t itemsize, char *out, ptrdiff_t out_stride, const char *in,
             ptrdiff_t in_stride, size_t n)
{
    const ptrdiff_t size = (ptrdiff_t)itemsize;
    if (n == 0) {
        return;
    }
    if (in_stride == size && out_stride == size) {
        memmove(out, in, itemsize * n);
        return;
    }
    if (out_stride == size && is_reversed(in_stride, itemsize)) {
        reverse(in, itemsize, n, out);
        return;
    }
    if (in_stride == size && is_reversed(out_stride, itemsize)) {
        const size_t before = (n - 1) * itemsize;
        reverse(in + before, itemsize, n, out - before);
        return;
    }
    switch (itemsize) {
    case 1: copy_sized(1, out, out_stride, in, in_stride, n); break;
    case 2: copy_sized(2, out, out_stride, in, in_stride, n); break;
    case 4: copy_sized(4, out, out_stride, in, in_stride, n); break;
    case 8: copy_sized(8, out, out_stride, in, in_stride, n); break;
    case 16: copy_sized(16, out, out_stride, in, in_stride, n); break;
    default: copy_each(itemsize, out, out_stride, in, in_stride, n);
    }
}

/* -- the other byte order -------------------------------------------------------- */

TF_INLINE void swap_each(size_t itemsize, char *items, ptrdiff_t stride, size_t n)
{
    for (size_t i = 0; i < n; i++, items += stride) {
        if (itemsize == 2) {
            uint16_t x;
            memcpy(&x, items, 2);
            x = (uint16_t)(x << 8 | x >> 8);
            memcpy(items, &x, 2);
        } else {
            uint32_t x;
            memcpy(&x, items, 4);
            x = __builtin_bswap32(x);
            memcpy(items, &x, 4);
        }
    }
}

/* A constant stride lets the compiler make vectors; for 4 bytes, only with SSSE3. */
void tf_swap_bytes(size_t itemsize, char *items, ptrdiff_t stride, size_t n)
{
    size_t done = 0;
    if (itemsize == 2 && stride == 2) {
        swap_each(2, items, 2, n);
    } else if (itemsize == 2) {
        swap_each(2, items, stride, n);
    } else if (itemsize == 4) {
#if defined(__SSE2__)
        for (; stride == 4 && done + 4 <= n; done += 4, items += 16) {
            __m128i x = _mm_loadu_si128((const __m128i *)items);
            x = _mm_or_si128(_mm_slli_epi16(x, 8), _mm_srli_epi16(x, 8));
            x = _mm_shufflehi_epi16(_mm_shufflelo_epi16(x, 0xB1), 0xB1);
            _mm_storeu_si128((__m128i *)items, x);
        }
#endif
        swap_each(4, items, stride, n - done);
    }
}
