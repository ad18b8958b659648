/* Transposes squares of words in registers. */
#ifndef TF32DTYPE_MATMUL_KERNELS_TRANSPOSE_H
#define TF32DTYPE_MATMUL_KERNELS_TRANSPOSE_H

#include "matmul/kernels/micro_tile.h"

#if defined(__AVX512F__)
/* Transposes 16 x 16 words in four rounds, which interleave 32, 64, 128 and 256 bits. */
TF_INLINE void tf_transpose_registers(__m512i x[16])
{
    __m512i y[16];
    UNROLLED for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    UNROLLED for (int i = 0; i < 16; i += 4) {
        x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    /* Lane l of x[4 r + c] holds column 4 l + c of the rows 4 r to 4 r + 3. */
    UNROLLED for (int c = 0; c < 4; c++) {
        const __m512i even_low = _mm512_shuffle_i32x4(x[c], x[4 + c], 0x88);
        const __m512i odd_low = _mm512_shuffle_i32x4(x[c], x[4 + c], 0xDD);
        const __m512i even_high = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0x88);
        const __m512i odd_high = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0xDD);
        x[c] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
        x[4 + c] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
        x[8 + c] = _mm512_shuffle_i32x4(even_low, even_high, 0xDD);
        x[12 + c] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xDD);
    }
}
#elif defined(__AVX2__)
/* Transposes 8 x 8 words in three rounds, which interleave 32, 64 and 128 bits. */
TF_INLINE void tf_transpose_registers(__m256i x[8])
{
    __m256i y[8], z[8];
    UNROLLED for (int i = 0; i < 8; i += 2) {
        y[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
    }
    UNROLLED for (int i = 0; i < 8; i += 4) {
        z[i] = _mm256_unpacklo_epi64(y[i], y[i + 2]);
        z[i + 1] = _mm256_unpackhi_epi64(y[i], y[i + 2]);
        z[i + 2] = _mm256_unpacklo_epi64(y[i + 1], y[i + 3]);
        z[i + 3] = _mm256_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    UNROLLED for (int i = 0; i < 4; i++) {
        x[i] = _mm256_permute2x128_si256(z[i], z[i + 4], 0x20);
        x[i + 4] = _mm256_permute2x128_si256(z[i], z[i + 4], 0x31);
    }
}
#endif

#endif
