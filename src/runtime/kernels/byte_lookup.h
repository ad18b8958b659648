/* Lookups of many bytes at once in a table of 256. */
#ifndef TF32DTYPE_RUNTIME_KERNELS_BYTE_LOOKUP_H
#define TF32DTYPE_RUNTIME_KERNELS_BYTE_LOOKUP_H

#include <stdint.h>

#include "runtime/inline.h"
#include "runtime/kernels/intrinsics.h"

#if defined(__AVX512VBMI__)
/* A table of 256 bytes in registers, loaded before the loop that looks up. Results are
 * stored as bytes, which may alias the table, so the compiler would otherwise load it in
 * each step. */
struct tf_byte_registers {
    __m512i first, second, third, fourth;
};

TF_INLINE struct tf_byte_registers tf_load_bytes(const uint8_t table[256])
{
    const struct tf_byte_registers loaded = {
        .first = _mm512_loadu_si512(table),
        .second = _mm512_loadu_si512(table + 64),
        .third = _mm512_loadu_si512(table + 128),
        .fourth = _mm512_loadu_si512(table + 192),
    };
    return loaded;
}

/* Looks up 64 bytes: two permutations of 128 bytes each; the index's top bit chooses. */
TF_INLINE __m512i tf_permute_bytes(struct tf_byte_registers table, __m512i index)
{
    const __m512i low = _mm512_permutex2var_epi8(table.first, index, table.second);
    const __m512i high = _mm512_permutex2var_epi8(table.third, index, table.fourth);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

/* 64 results of two bytes: `lower` has those of the lower eight of each 16 indices. */
struct tf_looked_up {
    __m512i lower, upper;
};

TF_INLINE struct tf_looked_up tf_look_up_uint16(struct tf_byte_registers highs,
                                                struct tf_byte_registers lows,
                                                __m512i index)
{
    const __m512i high = tf_permute_bytes(highs, index);
    const __m512i low = tf_permute_bytes(lows, index);
    return (struct tf_looked_up){_mm512_unpacklo_epi8(low, high),
                                 _mm512_unpackhi_epi8(low, high)};
}
#elif defined(__AVX2__)
/* Looks up the low four bits of each index in 16 bytes of a table. The result is 0 if the
 * highest bit of the index is set. */
TF_INLINE __m256i tf_shuffle_in(const uint8_t entries[16], __m256i index)
{
    const __m128i loaded = _mm_loadu_si128((const __m128i *)entries);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(loaded), index);
}

/* Looks up indices below 128; the result of other indices is 0. Bits 4 to 6 of an index,
 * shifted to the highest bit of the byte, choose among the results of eight shuffles. */
TF_INLINE __m256i tf_shuffle_half(const uint8_t table[128], __m256i index)
{
    __m256i found[8];
    for (int i = 0; i < 8; i++) {
        found[i] = tf_shuffle_in(table + 16 * i, index);
    }
    for (int count = 4, bit = 4; count > 0; count /= 2, bit++) {
        const __m256i is_second = _mm256_slli_epi16(index, 7 - bit);
        for (int i = 0; i < count; i++) {
            found[i] = _mm256_blendv_epi8(found[2 * i], found[2 * i + 1], is_second);
        }
    }
    return found[0];
}

/* Looks up 32 bytes in a table of 256. */
TF_INLINE __m256i tf_shuffle_bytes(const uint8_t table[256], __m256i index)
{
    const __m256i other = _mm256_xor_si256(index, _mm256_set1_epi8(INT8_MIN));
    return _mm256_or_si256(tf_shuffle_half(table, index),
                           tf_shuffle_half(table + 128, other));
}
#endif

#endif
