/* Vectors of bfloat16 numbers, for instruction sets that multiply pairs of them. */
#ifndef TF32DTYPE_MATMUL_KERNELS_SIMD_BF16_H
#define TF32DTYPE_MATMUL_KERNELS_SIMD_BF16_H

#include "matmul/kernels.h"
#include "runtime/kernels/common.h"
#include "runtime/kernels/intrinsics.h"

#if defined(__AVX512BF16__)

/* Returns sums + the products of the upper halves + those of the lower halves. Products are
 * exact and each sum is rounded once, as by two fused multiply-adds, except that subnormal
 * operands and results count as zero. */
TF_INLINE __m512 tf_dot(__m512 x, __m512 y, __m512 sums)
{
    return _mm512_dpbf16_ps(sums, (__m512bh)x, (__m512bh)y);
}

/* Returns the smaller of `least` and the magnitudes minus 1 of some numbers. */
TF_INLINE __m512i tf_lesser(__m512i least, __m512i bf16)
{
    const __m512i mask = _mm512_set1_epi16(TF_BF16_MAGNITUDE_BITS);
    const __m512i magnitudes = _mm512_and_si512(bf16, mask);
    return _mm512_min_epu16(least, _mm512_sub_epi16(magnitudes, _mm512_set1_epi16(1)));
}

#endif
#endif
