/* Panels of operands with their exponents, and groups of products truncated to a unit, with
 * which sums of aligned products begin (see mma.c). */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_PANELS_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_PANELS_H

#include "runtime/kernels/simd.h"
#include "tensor_core/kernels.h"

enum {
    ROWS = 3,                     /* rows of C computed at once */
    SIDE = 2 * LANES,             /* columns whose exponents fill a vector of words */
    ACROSS = LANES == 16 ? 2 : 1, /* sides per panel */
    COLUMNS = SIDE * ACROSS,
    BIAS = 127,
};

/* Rows of A and columns of B that are multiplied, and their exponents. */
struct operands {
    const float *a, *b;
    const uint32_t *a_exponents, *b_exponents;
    size_t lda;
};

/* The k of an MMA group: `count` of them from `first` on. `skips` leaves out two k after
 * each two, or one after each one, or none. */
struct place {
    size_t first, count;
    size_t skips; /* 0, all bits but the lowest, or all bits */
};

TF_INLINE size_t place_of(struct place place, size_t i)
{
    return place.first + i + (i & place.skips);
}

struct accumulators {
    floats c[ROWS][2];
};

/* Sets of rows of C: one set waits for a group's sum while the next begins. */
enum { ROW_SETS = TF_MR / ROWS };

TF_INLINE void load_sums(const float *c, size_t ldc, struct accumulators sums[ROW_SETS])
{
    for (size_t i = 0; i < ROW_SETS * ROWS; i++) {
        memcpy(sums[i / ROWS].c[i % ROWS], c + i * ldc, SIDE * sizeof *c);
    }
}

TF_INLINE void store_sums(const struct accumulators sums[ROW_SETS], float *c, size_t ldc)
{
    for (size_t i = 0; i < ROW_SETS * ROWS; i++) {
        memcpy(c + i * ldc, sums[i / ROWS].c[i % ROWS], SIDE * sizeof *c);
    }
}

/* Finds the largest exponents of products, biased. INT16_MIN means that there are none. */
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

/* Returns the exponents of accumulators, biased, two columns per word. */
TF_INLINE shorts exponents_of(floats left, floats right, int half)
{
    const words upper = (words)left >> 16 | ((words)right & ~0xFFFFu);
    const shorts exponents = (shorts)upper >> 7 & 0xFF;
    if (!half) {
        return exponents;
    }
    /* Raise exponents to float16's smallest one, except those of zero. */
    return greater_of(exponents, (exponents != 0) & (TF_LEAST_HALF + BIAS));
}

/* Adds products `begin` to `end` of a group to the totals, truncated to their unit. */
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

enum {
    LOW = 80,    /* exponent of a factor that brings products into float32's range */
    LOW_BITS = 8 /* lower bits of integers, summed separately */
};

/* Returns x * 2^n for subnormal x, else zero. Converts x as an integer, since products of
 * subnormal numbers take 100 times as long on some CPUs. */
TF_INLINE floats scale_subnormal(floats x, int n)
{
    const words magnitude = (words)x & TF_MAGNITUDE_BITS;
    const words counted = magnitude & (words)((ints)magnitude < 1 << 23);
    const floats units = __builtin_convertvector((ints)counted, floats);
    const floats scaled = units * tf_float_of((uint32_t)(BIAS - 149 + n) << 23);
    return (floats)((words)scaled | ((words)x & TF_SIGN_BIT));
}

/* Returns x with zeros in place of subnormal numbers. */
TF_INLINE floats without_subnormal(floats x)
{
    const words magnitude = (words)x & TF_MAGNITUDE_BITS;
    return (floats)((words)x & ~(words)((ints)magnitude < 1 << 23));
}

/* Return whether x is subnormal, and a subnormal x times 2^n. */
TF_INLINE int is_subnormal(float x)
{
    return (tf_bits_of(x) & TF_MAGNITUDE_BITS) - 1 < (1u << 23) - 1;
}

TF_INLINE float scale_one_subnormal(float x, int n)
{
    const uint32_t bits = tf_bits_of(x);
    const float units = (float)(int32_t)(bits & TF_MAGNITUDE_BITS);
    return (bits >> 31 ? -units : units) * tf_float_of((uint32_t)(BIAS - 149 + n) << 23);
}

/* Adds products as add_products does, also of subnormal numbers. Products of two subnormal
 * numbers are left out: they do not count if the unit is above 2^-150. */
TF_INLINE void add_any_products(struct operands x, struct place place, size_t begin,
                                size_t end, const floats scale[ROWS][2],
                                words total[ROWS][2])
{
    enum { UP = 64 };
    const float down = 0x1p-64f;
    for (size_t i = begin; i < end; i++) {
        const size_t k = place_of(place, i);
        floats normal[2], tiny[2];
        UNROLLED for (int s = 0; s < 2; s++) {
            const floats b = load_floats(x.b + k * COLUMNS + s * LANES);
            normal[s] = without_subnormal(b);
            tiny[s] = scale_subnormal(b, UP);
        }
        for (int r = 0; r < ROWS; r++) {
            const float a = x.a[(size_t)r * x.lda + k];
            for (int s = 0; s < 2; s++) {
                if (is_subnormal(a)) {
                    total[r][s] += integers_of(floats_of(scale_one_subnormal(a, UP)) *
                                               normal[s] * (scale[r][s] * down));
                } else {
                    total[r][s] += integers_of(floats_of(a) * normal[s] * scale[r][s]) +
                                   integers_of(floats_of(a) * tiny[s] * (scale[r][s] * down));
                }
            }
        }
    }
}

/* Sums of products: total[1] * 2^LOW_BITS + total[0]. */
struct low_sums {
    words total[2][ROWS][2];
};

/* Returns the sums of products below 2^-80, in units of 2^unit. `unit` is biased and at
 * most BIAS - 80. If products are larger, the result has no meaning. */
TF_INLINE struct low_sums add_low_products(struct operands x, struct place place,
                                           const shorts unit[ROWS])
{
    const float up = 0x1p80f, most = 0x1p47f;
    struct low_sums sums;
    floats scale[ROWS][2];
    UNROLLED for (int r = 0; r < ROWS; r++) {
        const words fields = (words)((int16_t)(2 * BIAS - 2 * LOW) - unit[r]);
        scale[r][0] = (floats)(fields << 23);
        scale[r][1] = (floats)(fields >> 16 << 23);
        UNROLLED for (int s = 0; s < 2; s++) {
            sums.total[0][r][s] = sums.total[1][r][s] = words_of(0);
        }
    }
    for (size_t i = 0; i < place.count; i++) {
        const size_t k = place_of(place, i);
        floats b[2];
        UNROLLED for (int s = 0; s < 2; s++) {
            const floats given = load_floats(x.b + k * COLUMNS + s * LANES);
            b[s] = (floats)((words)(without_subnormal(given) * up) |
                            (words)scale_subnormal(given, LOW));
        }
        for (int r = 0; r < ROWS; r++) {
            /* Clip large factors, whose other factors are zero or results do not count. */
            const float a = x.a[(size_t)r * x.lda + k];
            const float clipped = a > most ? most : a < -most ? -most : a;
            const float scaled =
                is_subnormal(a) ? scale_one_subnormal(a, LOW) : clipped * up;
            for (int s = 0; a != 0 && s < 2; s++) {
                const words product = integers_of(floats_of(scaled) * b[s] * scale[r][s]);
                sums.total[0][r][s] += product & ((1u << LOW_BITS) - 1);
                sums.total[1][r][s] += (words)((ints)product >> LOW_BITS);
            }
        }
    }
    return sums;
}

/* Returns the left or the right columns of words as signed numbers. */
TF_INLINE words signed_column_of(shorts x, int side)
{
    return (words)((ints)(side ? (words)x : (words)x << 16) >> 16);
}

#endif
