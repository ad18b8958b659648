/* Lookups of many bytes at once in a table of 256. */
#ifndef TF32DTYPE_RUNTIME_KERNELS_BYTE_LOOKUP_H
#define TF32DTYPE_RUNTIME_KERNELS_BYTE_LOOKUP_H

#include <stdint.h>

#include "runtime/inline.h"
#include "runtime/kernels/intrinsics.h"

#if defined(__AVX512VBMI__)
/* A table of 256 bytes, loaded to registers before the loop that looks up. Results are
 * stored as bytes, which may lie anywhere, in the table too, so that the compiler would
 * load the table again in each step. */
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

/* 64 lookups: two permutations of 128 bytes each, chosen between by the index's
 * top bit. */
TF_INLINE __m512i tf_permute_bytes(struct tf_byte_registers table, __m512i index)
{
    const __m512i low = _mm512_permutex2var_epi8(table.first, index, table.second);
    const __m512i high = _mm512_permutex2var_epi8(table.third, index, table.fourth);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

/* 64 lookups of two bytes: those of the lower eight of each sixteen, and of the others. */
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
/* 32 lookups: a shuffle for each 16 bytes of the table, which gives 0 for an index whose
 * highest bit is set, as the saturating addition sets it for those of other parts. */
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
