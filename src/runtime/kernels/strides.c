/* Copies of items with others between them. Constant sizes and strides let the compiler
 * make vectors. */
#include <string.h>

#include "runtime/kernels/common.h"

TF_INLINE void copy_seconds_of(size_t itemsize, const char *in, char *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(out + i * itemsize, in + 2 * i * itemsize, itemsize);
    }
}

static void copy_seconds(size_t itemsize, const char *in, char *out, size_t n)
{
    switch (itemsize) {
    case 1: copy_seconds_of(1, in, out, n); break;
    case 2: copy_seconds_of(2, in, out, n); break;
    case 4: copy_seconds_of(4, in, out, n); break;
    case 8: copy_seconds_of(8, in, out, n); break;
    default: copy_seconds_of(16, in, out, n);
    }
}

/* Words at any address, which may alias objects of any type. */
typedef uint32_t word __attribute__((aligned(1), may_alias));
typedef uint64_t long_word __attribute__((aligned(1), may_alias));

static void pair_with_zeros(size_t itemsize, const char *restrict in,
                            char *restrict out, size_t n)
{
    if (itemsize == 4) {
        word *restrict pairs = (word *)out;
        for (size_t i = 0; i < n; i++) {
            pairs[2 * i] = ((const word *)in)[i];
            pairs[2 * i + 1] = 0;
        }
    } else {
        long_word *restrict pairs = (long_word *)out;
        for (size_t i = 0; i < n; i++) {
            pairs[2 * i] = ((const long_word *)in)[i];
            pairs[2 * i + 1] = 0;
        }
    }
}

const struct tf_copy_kernels TF_NAME(tf_copy_kernels) = {
    .copy_seconds = copy_seconds,
    .pair_with_zeros = pair_with_zeros,
};
