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
/* Looks up 32 bytes with a shuffle for each 16 bytes of the table. The saturating addition
 * sets the highest bit of indices into other 16 bytes, for which a shuffle gives 0. */
TF_INLINE __m256i tf_shuffle_bytes(const uint8_t table[256], __m256i index)
{
    const __m256i limit = _mm256_set1_epi8(0x70);
    __m256i found = _mm256_setzero_si256();
    for (int i = 0; i < 16; i++) {
        const __m128i *part = (const __m128i *)(table + 16 * i);
        const __m256i entries = _mm256_broadcastsi128_si256(_mm_loadu_si128(part));
        const __m256i place = _mm256_xor_si256(index, _mm256_set1_epi8((char)(16 * i)));
        const __m256i one =
            _mm256_shuffle_epi8(entries, _mm256_adds_epu8(place, limit));
        found = _mm256_or_si256(found, one);
    }
    return found;
}
#endif

#endif
