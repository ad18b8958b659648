/* Sums of float32 numbers with other roundings than float32's own: flushed, rounded to odd,
 * or one rounding for three numbers. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_SUMS_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_SUMS_H

#include "runtime/kernels/simd.h"

enum { LEAST_NORMAL = 1 << 23 };

TF_INLINE words magnitudes_of(floats x) { return (words)x & TF_MAGNITUDE_BITS; }

TF_INLINE words are_less(words x, int32_t limit) { return (words)((ints)x < limit); }

/* Returns x with zeros of the same sign in place of subnormal numbers. */
TF_INLINE floats flush(floats x)
{
    const words small = are_less(magnitudes_of(x), LEAST_NORMAL);
    return (floats)((words)x & ~(small & TF_MAGNITUDE_BITS));
}

/* Returns x with the unit's NaN for each NaN. */
TF_INLINE floats canonical(floats x)
{
    const words nan = (words)(x != x);
    return (floats)(((words)x & ~nan) | (TF_MAGNITUDE_BITS & nan));
}

TF_INLINE floats negative(floats x) { return (floats)((words)x ^ TF_SIGN_BIT); }

/* The exact sum of two numbers: the rounded sum and its error. */
struct pair {
    floats sum, error;
};

#if defined(__AVX512BW__)

enum {
    DOWNWARD = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC,
    UPWARD = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC
};

TF_INLINE __mmask16 are_even(__m512 x)
{
    return _mm512_testn_epi32_mask((__m512i)x, _mm512_set1_epi32(1));
}

/* Returns x + y rounded to odd, in any rounding mode. */
TF_INLINE floats odd_sum(floats x, floats y)
{
    const __m512 a = (__m512)x, b = (__m512)y;
    const __m512 below = _mm512_add_round_ps(a, b, DOWNWARD);
    return (floats)_mm512_mask_add_round_ps(below, are_even(below), a, b, UPWARD);
}

/* Returns x * y + z rounded to odd. The product must be exact. */
TF_INLINE floats odd_product_sum(floats x, floats y, floats z) { return odd_sum(x * y, z); }

/* Returns -(x + y) rounded to odd, from x and -y. Zero is -0. */
TF_INLINE floats minus_odd_sum(floats x, floats minus_y)
{
    const __m512 a = (__m512)minus_y, b = (__m512)x;
    const __m512 above = _mm512_sub_round_ps(a, b, UPWARD);
    return (floats)_mm512_mask_sub_round_ps(above, are_even(above), a, b, DOWNWARD);
}

/* Returns the exact sum, with the larger magnitude first (Fast2Sum: Dekker). */
TF_INLINE struct pair two_sum(floats x, floats y)
{
    enum { LESSER = 6, GREATER = 7 }; /* VRANGEPS by magnitude, with signs */
    const floats greater = (floats)_mm512_range_ps((__m512)x, (__m512)y, GREATER);
    const floats lesser = (floats)_mm512_range_ps((__m512)x, (__m512)y, LESSER);
    const floats sum = x + y; /* keeps NaN, unlike VRANGEPS */
    return (struct pair){sum, lesser - (sum - greater)};
}

#else

/* Returns `yes` for elements whose last bit in x is one, else `no`. */
TF_INLINE floats where_odd(floats x, floats yes, floats no)
{
#if defined(__AVX2__)
    return (floats)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)((words)x << 31));
#else
    const words odd = 0 - ((words)x & 1);
    return (floats)(((words)yes & odd) | ((words)no & ~odd));
#endif
}

/* Returns x * y + z to odd, while float32 rounds downward. The product must be exact. */
TF_INLINE floats odd_product_sum(floats x, floats y, floats z)
{
#if defined(__AVX2__) && defined(__FMA__)
    const floats minus_above = (floats)_mm256_fnmsub_ps((__m256)x, (__m256)y, (__m256)z);
#else
    const floats minus_above = add_exact_product(-x, y, -z);
#endif
    const floats below = add_exact_product(x, y, z);
    return where_odd(below, below, negative(minus_above));
}

/* Returns -(x + y) to odd, from x and -y, while float32 rounds downward. Zero is -0. */
TF_INLINE floats minus_odd_sum(floats x, floats minus_y)
{
    const floats below = x - minus_y, minus_above = minus_y - x;
    return where_odd(below, negative(below), minus_above);
}

/* Returns the exact sum, in any order of the numbers (2Sum: Knuth). */
TF_INLINE struct pair two_sum(floats x, floats y)
{
    const floats sum = x + y, second = sum - x;
    return (struct pair){sum, (x - (sum - second)) + (y - second)};
}

/* Returns x + y rounded to odd, while float32 rounds to nearest: the sum is truncated
 * toward zero, and made odd if this loses a bit. */
TF_INLINE floats odd_sum(floats x, floats y)
{
    const struct pair exact = two_sum(x, y);
    const words inexact = (words)(exact.error != 0);
    const words beyond = (words)((ints)((words)exact.sum ^ (words)exact.error) >> 31);
    return (floats)(((words)exact.sum + (beyond & inexact)) | (inexact & 1));
}

#endif

/* Returns x + y rounded to odd, of any numbers, while float32 rounds to nearest. The sum is
 * Inf above 2^128: half of both numbers decides whether it is. */
TF_INLINE floats any_odd_sum(floats x, floats y)
{
    enum { GREATEST = 0x7F7FFFFF };
    const floats near = x + y, odd = odd_sum(x, y);
    const words far = ~are_less(magnitudes_of(near), GREATEST);
    if (__builtin_expect(!any(far), 1)) {
        return odd;
    }
    const words special = (words)(x - x + (y - y) != 0);
    const floats twice = 2 * odd_sum(x * 0.5f, y * 0.5f);
    const words chosen = ((words)near & special) | ((words)twice & ~special);
    return (floats)((chosen & far) | ((words)odd & ~far));
}

/* Returns x0 y0 + x1 y1 + z, rounded once. Products must be exact and nothing subnormal: S.
 * Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms
 * using rounding to odd", IEEE Trans. Comput. 57 (2008). */
TF_INLINE floats fused_pair(const floats x[2], const floats y[2], floats z)
{
    const struct pair products = two_sum(x[0] * y[0], x[1] * y[1]);
    const struct pair all = two_sum(z, products.sum);
    return all.sum + odd_sum(all.error, products.error);
}

#endif
