/* Rounds float32 numbers to items of one byte, to nearest, ties to even: four vectors of
 * numbers become one vector of items.
 *
 * This takes fewer steps than fast_codec.h, and the same ones for normal and subnormal
 * results:
 *
 *     power = the power of two at or below |x|, at least the smallest normal number
 *     sum   = |x| + power * 2^(23 - mantissa bits)
 *
 * The sum's ulp in float32 is the ulp of the format at x, so that the addition rounds
 * there. The lower bits of the sum are x in these ulps: from 0 on below the normal range,
 * else from 2^(mantissa bits) on. A carry goes into the exponent, which comes from
 * `power`. A fused multiply-add would save one step, but some processors take twenty
 * times as long for it if x is subnormal in float32.
 */
#ifndef TF32DTYPE_FORMATS_KERNELS_NARROW_BYTES_H
#define TF32DTYPE_FORMATS_KERNELS_NARROW_BYTES_H

#include "formats/fast_codec.h"
#include "runtime/kernels/simd.h"

enum { LANE_BYTES = 4 * LANES };

typedef uint8_t bytes __attribute__((vector_size(LANE_BYTES)));

TF_INLINE bytes bytes_of(uint8_t x) { return (bytes){0} + x; }

#if defined(__aarch64__)
TF_INLINE bytes lesser_byte(bytes x, bytes y)
{
    return (bytes)vminq_u8((uint8x16_t)x, (uint8x16_t)y);
}

#else
CHOICE(lesser_byte, bytes, <, wide_ints, min_epu8)
#endif

/* Returns 1 where x is zero, else 0. */
TF_INLINE bytes is_zero_byte(bytes x)
{
    const bytes one = bytes_of(1);
#if defined(__SSE2__)
    return (bytes)WIDE(subs_epu8)((wide_ints)one, (wide_ints)x);
#elif defined(__aarch64__)
    return (bytes)vqsubq_u8((uint8x16_t)one, (uint8x16_t)x);
#else
    return (bytes)(x == 0) & one;
#endif
}

/* Subtracts `offset` from four vectors of words below 2^15, and packs the results, limited
 * to 255, into one vector of bytes. in_order() puts the bytes in the order of the words. */
TF_INLINE bytes join_bytes(const words x[4], uint16_t offset)
{
#if defined(__SSE2__) || defined(__aarch64__)
    const uint16s less = (uint16s){0} + offset;
#endif
#if defined(__SSE2__)
    const uint16s low = (uint16s)WIDE(packs_epi32)((wide_ints)x[0], (wide_ints)x[1]);
    const uint16s high = (uint16s)WIDE(packs_epi32)((wide_ints)x[2], (wide_ints)x[3]);
    return (bytes)WIDE(packus_epi16)((wide_ints)(low - less), (wide_ints)(high - less));
#elif defined(__aarch64__)
    const uint16s low = (uint16s)vuzp1q_u16((uint16x8_t)x[0], (uint16x8_t)x[1]);
    const uint16s high = (uint16s)vuzp1q_u16((uint16x8_t)x[2], (uint16x8_t)x[3]);
    return (bytes)vqmovn_high_u16(vqmovn_u16((uint16x8_t)(low - less)),
                                  (uint16x8_t)(high - less));
#else
    words joined = words_of(0);
    for (int i = 0; i < 4; i++) {
        const words value = x[i] - offset, fits = (words)(value < UINT8_MAX);
        joined |= ((value & fits) | (UINT8_MAX & ~fits)) << (8 * i);
    }
    return (bytes)joined;
#endif
}

/* Packs the sign bits of four vectors into the highest bits of bytes, in the order of
 * join_bytes(). Only the bytes of +0 are zero. */
TF_INLINE bytes join_signs(const words x[4])
{
#if defined(__SSE2__)
    return (bytes)WIDE(packs_epi16)(WIDE(packs_epi32)((wide_ints)x[0], (wide_ints)x[1]),
                                    WIDE(packs_epi32)((wide_ints)x[2], (wide_ints)x[3]));
#elif defined(__aarch64__)
    const int16x8_t low = vqmovn_high_s32(vqmovn_s32((int32x4_t)x[0]), (int32x4_t)x[1]);
    const int16x8_t high = vqmovn_high_s32(vqmovn_s32((int32x4_t)x[2]), (int32x4_t)x[3]);
    return (bytes)vqmovn_high_s16(vqmovn_s16(low), high);
#else
    words upper[4];
    for (int i = 0; i < 4; i++) {
        upper[i] = x[i] >> 24 | ((words)(x[i] != 0) & 1);
    }
    return join_bytes(upper, 0);
#endif
}

TF_INLINE bytes in_order(bytes x)
{
#if defined(__AVX512BW__)
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return (bytes)_mm512_permutexvar_epi32(order, (__m512i)x);
#elif defined(__AVX2__)
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return (bytes)_mm256_permutevar8x32_epi32((__m256i)x, order);
#elif defined(__SSE2__) || defined(__aarch64__)
    return x;
#else
    /* Each word has one byte per vector, the first vector's at the lowest address. */
    return __builtin_shufflevector(x, x, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11,
                                   15);
#endif
}

/* Returns codes without their signs, plus tf_least_normal(f) >> tf_cut(f). A number above
 * the range, or NaN, gives any value above that of the largest finite number. */
TF_INLINE words magnitude_codes(struct tf_format f, words x)
{
    const int cut = tf_cut(f);
    const uint32_t units = UINT32_C(0xFF) >> (6 - f.mantissa_bits); /* a carry too */
    const floats magnitude = (floats)(x & TF_MAGNITUDE_BITS);
    const floats least = floats_of(tf_float_of(tf_least_normal(f)));
    const words power = (words)greater_floats(least, magnitude) & TF_INF_BITS;
    const words sum = (words)(magnitude + (floats)(power + ((uint32_t)cut << 23)));
    return (sum & units) + (power >> cut);
}

/* Bounds of a chunk: the largest magnitude as float32's bits, and of the codes without
 * signs the smallest, if +0 counts as 1, and the smallest less one, where zero wraps to
 * 255. */
struct code_bounds {
    words greatest;
    bytes least, min_minus_1;
};

TF_INLINE bytes narrow_to_bytes(struct tf_format f, const float *in,
                                struct code_bounds *bounds)
{
    words x[4], codes[4];
    for (int i = 0; i < 4; i++) {
        x[i] = (words)load_floats(in + i * LANES);
        bounds->greatest = greater_words(bounds->greatest, x[i] & TF_MAGNITUDE_BITS);
        codes[i] = magnitude_codes(f, x[i]);
    }
    const bytes code = join_bytes(codes, (uint16_t)(tf_least_normal(f) >> tf_cut(f)));
    const bytes signs = join_signs(x);
    bounds->least = lesser_byte(bounds->least, code | is_zero_byte(signs));
    bounds->min_minus_1 = lesser_byte(bounds->min_minus_1, code - 1);
    const bytes item = lesser_byte(code, bytes_of((uint8_t)tf_overflow_code(f)));
    bytes sign = signs >> (8 - f.width) & (uint8_t)tf_sign_mask(f);
    if (f.specials == TF_FNUZ) {
        sign &= (bytes)(item != 0);
    }
    return in_order(item | sign);
}

/* Returns all bits set where a number is NaN, else 0. */
TF_INLINE bytes are_nan(const float *in)
{
    words nan[4];
    for (int i = 0; i < 4; i++) {
        const words magnitude = (words)load_floats(in + i * LANES) & TF_MAGNITUDE_BITS;
        nan[i] = (words)((ints)magnitude > (int32_t)TF_INF_BITS);
    }
    return in_order(join_signs(nan));
}

#endif
