/* Items as they lie in memory, in vectors of words: their numbers as float32. */
#ifndef TF32DTYPE_MATMUL_KERNELS_WORDS_H
#define TF32DTYPE_MATMUL_KERNELS_WORDS_H

#include "formats/byte_tables.h"
#include "matmul/kernels/micro_tile.h"
#include "runtime/kernels/byte_lookup.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)

/* What words hold: numbers of a byte, by their tables or, with the sign, by half of
 * these; bfloat16; float32. */
enum width { BYTES, HALVED, BF16, SINGLES };
enum { MOST = 4 }; /* numbers of a word */

TF_INLINE int size_of(enum width width)
{
    return width == SINGLES ? 4 : width == BF16 ? 2 : 1;
}

/* What it takes to read them. */
struct reading {
#if defined(__AVX512VBMI__)
    struct tf_byte_registers high, low;
    __m512i sign;
#endif
    __m512i used;
};

TF_INLINE __m512 upper_half(__m512i x)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(x, _mm512_set1_epi32((int)TF_UPPER_HALF)));
}

TF_INLINE __m512 lower_half(__m512i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}

TF_INLINE struct reading begin_reading(enum width width,
                                       const struct tf_byte_table *table, uint32_t used)
{
    struct reading reading = {.used = _mm512_set1_epi32((int32_t)used)};
#if defined(__AVX512VBMI__)
    if (size_of(width) == 1) {
        reading.high = tf_load_bytes(table->high);
        reading.low = tf_load_bytes(table->low);
        reading.sign = _mm512_set1_epi8((char)table->sign);
    }
#else
    (void)width;
    (void)table;
#endif
    return reading;
}

/* The numbers that words hold: the first of each, the second, ... */
TF_INLINE void numbers_of_words(enum width width, const struct reading *reading,
                                __m512i x, __m512 out[MOST])
{
#if defined(__AVX512VBMI__)
    if (width == BYTES || width == HALVED) {
        __m512i high, low;
        if (width == HALVED) {
            const __m512i magnitude = _mm512_permutex2var_epi8(
                reading->high.first, x, reading->high.second);
            high = _mm512_ternarylogic_epi32(magnitude, x, reading->sign, 0xF8);
            low = _mm512_permutex2var_epi8(reading->low.first, x, reading->low.second);
        } else {
            high = tf_permute_bytes(reading->high, x);
            low = tf_permute_bytes(reading->low, x);
        }
        const __m512i upper = _mm512_set1_epi16((short)0xFF00);
        const __m512i even = _mm512_ternarylogic_epi32(
            upper, _mm512_slli_epi16(high, 8), low, 0xCA);
        const __m512i odd = _mm512_ternarylogic_epi32(
            upper, high, _mm512_srli_epi16(low, 8), 0xCA);
        out[0] = lower_half(even);
        out[1] = lower_half(odd);
        out[2] = upper_half(even);
        out[3] = upper_half(odd);
    }
#endif
    if (width == BF16) {
        out[0] = lower_half(x);
        out[1] = upper_half(x);
    } else if (width == SINGLES) {
        out[0] = _mm512_castsi512_ps(_mm512_and_si512(x, reading->used));
    }
}

#endif
#endif
