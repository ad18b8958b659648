/* Panels of operands with their exponents beside them, and groups of products that are
 * cut to a unit: what sums of aligned products begin with (see mma.c). */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_PANELS_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_PANELS_H

#include "runtime/kernels/simd.h"
#include "tensor_core/kernels.h"

enum {
    ROWS = 3,                     /* of C that are done at once */
    SIDE = 2 * LANES,             /* columns: the exponents of a vector of words */
    ACROSS = LANES == 16 ? 2 : 1, /* such in a panel */
    COLUMNS = SIDE * ACROSS,
    BIAS = 127,
};

/* Rows of A and columns of B that are multiplied, with their exponents beside them. */
struct operands {
    const float *a, *b;
    const uint32_t *a_exponents, *b_exponents;
    size_t lda;
};

/* k of the numbers in an MMA group: `first`, and so on; leaving out two after each two, or
 * one after each, if it `skips`. */
struct place {
    size_t first, count;
    size_t skips; /* 0; all bits but the lowest; or all */
};

TF_INLINE size_t place_of(struct place place, size_t i)
{
    return place.first + i + (i & place.skips);
}

struct accumulators {
    floats c[ROWS][2];
};

/* The greatest exponents of products, biased, and INT16_MIN of none. */
TF_INLINE void find_greatest(struct operands x, struct place place,
                             shorts greatest[ROWS])
{
    UNROLLED for (int r = 0; r < ROWS; r++) {
        greatest[r] = shorts_of(INT16_MIN);
    }
    _Pragma("GCC unroll 4") for (size_t i = 0; i < place.count; i++) {
        const size_t k = place_of(place, i);
        const shorts b = load_shorts(x.b_exponents + k * (COLUMNS / 2));
        UNROLLED for (int r = 0; r < ROWS; r++) {
            const shorts a = (shorts)words_of(x.a_exponents[(size_t)r * x.lda + k]);
            greatest[r] = greater_of(greatest[r], a + b);
        }
    }
}

/* The exponents of accumulators, biased, two columns to a word. */
TF_INLINE shorts exponents_of(floats left, floats right, int half)
{
    const words upper = (words)left >> 16 | ((words)right & ~0xFFFFu);
    const shorts exponents = (shorts)upper >> 7 & 0xFF;
    if (!half) {
        return exponents;
    }
    /* No less than float16's least one, but for zero. */
    return greater_of(exponents, (exponents != 0) & (TF_LEAST_HALF + BIAS));
}

/* The totals with the products from `begin` to `end` of a group, cut to their unit. */
TF_INLINE void add_products(struct operands x, struct place place, size_t begin, size_t end,
                            const floats scale[ROWS][2], words total[ROWS][2])
{
    for (size_t i = begin; i < end; i++) {
        const size_t k = place_of(place, i);
        const floats b[2] = {load_floats(x.b + k * COLUMNS),
                             load_floats(x.b + k * COLUMNS + LANES)};
        UNROLLED for (int r = 0; r < ROWS; r++) {
            const floats a = floats_of(x.a[(size_t)r * x.lda + k]);
            UNROLLED for (int s = 0; s < 2; s++) {
                total[r][s] += integers_of(a * b[s] * scale[r][s]);
            }
        }
    }
}

#endif
