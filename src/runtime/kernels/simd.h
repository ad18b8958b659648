/* Vectors of numbers, as wide as this build's instruction set has them.
 *
 * The functions do what C's operators on vectors lack, by an intrinsic if there is one,
 * else by operators. */
#ifndef TF32DTYPE_RUNTIME_KERNELS_SIMD_H
#define TF32DTYPE_RUNTIME_KERNELS_SIMD_H

#include <string.h>

#include "runtime/bit_masks.h"
#include "runtime/kernels/common.h"
#include "runtime/kernels/intrinsics.h"

/* WIDE(add_ps) is the intrinsic for whole vectors, whose types begin with wide_. */
#if defined(__AVX512BW__)
enum { LANES = 16 };
#define WIDE(name) _mm512_##name
typedef __m512 wide_floats;
typedef __m512d wide_doubles;
typedef __m512i wide_ints;
#elif defined(__AVX2__)
enum { LANES = 8 };
#define WIDE(name) _mm256_##name
typedef __m256 wide_floats;
typedef __m256d wide_doubles;
typedef __m256i wide_ints;
#else
enum { LANES = 4 };
#if defined(__SSE2__)
#define WIDE(name) _mm_##name
typedef __m128 wide_floats;
typedef __m128d wide_doubles;
typedef __m128i wide_ints;
#endif
#endif

/* Whether code is to be small rather than fast: on x86-64 without AVX2. */
#if defined(__SSE2__) && !defined(__AVX2__)
enum { SMALL = 1 };
#else
enum { SMALL = 0 };
#endif

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef int16_t shorts __attribute__((vector_size(4 * LANES)));
typedef uint16_t uint16s __attribute__((vector_size(4 * LANES)));

TF_INLINE words words_of(uint32_t x) { return (words){0} + x; }

TF_INLINE shorts shorts_of(int16_t x) { return (shorts){0} + x; }

/* Returns x in all lanes, whatever the rounding mode. */
TF_INLINE floats floats_of(float x)
{
#if defined(__SSE2__)
    return (floats)WIDE(set1_ps)(x);
#else
    return (floats){x, x, x, x};
#endif
}

TF_INLINE floats load_floats(const float *p)
{
    floats x;
    memcpy(&x, p, sizeof x);
    return x;
}

TF_INLINE shorts load_shorts(const void *p)
{
    shorts x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Defines a function of integers that returns x where `x compares y`, else y. */
#define CHOICE_OF_INTEGERS(name, type, compares)                              \
    TF_INLINE type name(type x, type y)                                        \
    {                                                                          \
        const type first = (type)(x compares y);                               \
        return (x & first) | (y & ~first);                                     \
    }
/* Defines such a function of integers or floats, on x86-64 by an intrinsic. */
#if defined(__SSE2__)
#define CHOICE(name, type, compares, wide, intrinsic)                          \
    TF_INLINE type name(type x, type y)                                        \
    {                                                                          \
        return (type)WIDE(intrinsic)((wide)x, (wide)y);                        \
    }
#else
#define CHOICE(name, type, compares, ...)                                      \
    TF_INLINE type name(type x, type y)                                        \
    {                                                                          \
        const words first = (words)(x compares y);                             \
        return (type)(((words)x & first) | ((words)y & ~first));               \
    }
#endif
CHOICE(lesser_of, shorts, <, wide_ints, min_epi16)
CHOICE(greater_of, shorts, >, wide_ints, max_epi16)
CHOICE(lesser_floats, floats, <, wide_floats, min_ps)
#if defined(__aarch64__)
TF_INLINE floats greater_floats(floats x, floats y) /* x must not be NaN */
{
    return (floats)vmaxq_f32((float32x4_t)x, (float32x4_t)y);
}
#else
CHOICE(greater_floats, floats, >, wide_floats, max_ps)
#endif
#if defined(__AVX2__)
CHOICE(lesser_words, words, <, wide_ints, min_epu32)
#else
CHOICE_OF_INTEGERS(lesser_words, words, <)
#endif

TF_INLINE words greater_words(words x, words y)
{
#if defined(__AVX512BW__)
    return (words)_mm512_max_epu32((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
    return (words)_mm256_max_epu32((__m256i)x, (__m256i)y);
#else
    const words first = (words)(x > y);
    return (x & first) | (y & ~first);
#endif
}

/* Returns x * y + z, rounded once. */
TF_INLINE floats fused(floats x, floats y, floats z)
{
#if defined(__AVX2__) && defined(__FMA__)
    return (floats)WIDE(fmadd_ps)((wide_floats)x, (wide_floats)y, (wide_floats)z);
#elif defined(__aarch64__)
    return (floats)vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y);
#else
    for (int i = 0; i < LANES; i++) {
        z[i] = __builtin_fmaf(x[i], y[i], z[i]);
    }
    return z;
#endif
}

/* Returns x * y + z, rounded once, if x * y is exact. */
TF_INLINE floats add_exact_product(floats x, floats y, floats z)
{
#if defined(__FMA__) || defined(__aarch64__)
    return fused(x, y, z);
#else
    return x * y + z;
#endif
}

/* Truncates x to integers. */
TF_INLINE words integers_of(floats x)
{
#if defined(__SSE2__)
    return (words)WIDE(cvttps_epi32)((wide_floats)x);
#else
    return (words)__builtin_convertvector(x, ints);
#endif
}

/* Rounds toward zero; or if `odd` to odd, to allow a later rounding to fewer bits. */
TF_INLINE floats floats_toward_zero(words sum, int odd)
{
#if defined(__AVX512BW__)
    const __m512 x =
        _mm512_cvt_roundepi32_ps((__m512i)sum, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    if (!odd) {
        return (floats)x;
    }
    const __m512i back = _mm512_cvttps_epi32(x);
    const __mmask16 inexact = _mm512_cmpneq_epi32_mask(back, (__m512i)sum);
    const __m512i bits = _mm512_castps_si512(x);
    return (floats)_mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1));
#else
    /* Truncates magnitudes to 24 bits. */
    const words sign = (words)((ints)sum >> 31);
    const words magnitude = (sum ^ sign) - sign;
    words below = magnitude >> 24;
    below |= below >> 1;
    below |= below >> 2;
    below |= below >> 4;
    const words rest = magnitude & below;
    const words last = below + 1; /* 1 where nothing is truncated, and there is no rest */
    words kept = magnitude & ~below;
    kept |= odd ? (words)(rest != 0) & last : words_of(0);
    const floats x = __builtin_convertvector((ints)kept, floats);
    return (floats)((words)x | (sign & TF_SIGN_BIT));
#endif
}

/* Rounds x to the nearest float16, ties to even. */
TF_INLINE floats to_float16(floats x)
{
#if defined(__AVX512BW__)
    return (floats)_mm512_cvtph_ps(
        _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__AVX2__) && defined(__F16C__)
    return (floats)_mm256_cvtph_ps(
        _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#else
    const words bits = (words)x, sign = bits & TF_SIGN_BIT, magnitude = bits ^ sign;
    /* If subnormal in float16, x has the ulp that a sum about one half has in float32. */
    const words small = (words)(((floats)magnitude + 0.5f) - 0.5f);
    const words large = (magnitude + 0xFFF + (magnitude >> 13 & 1)) & ~0x1FFFu;
    const words is_small = (words)(magnitude < 0x38800000u);
    const words beyond = (words)(large >= 0x47800000u); /* 65536 */
    const words nan = (words)(magnitude > TF_INF_BITS);
    words result = (small & is_small) | (large & ~is_small);
    result = (result & ~beyond) | (TF_INF_BITS & beyond);
    result = (result & ~nan) | (0x7FFFE000u & nan);
    return (floats)(result | sign);
#endif
}

TF_INLINE int any(words x)
{
#if defined(__AVX512BW__)
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)x, (__m256i)x);
#else
    uint32_t found = 0;
    for (int i = 0; i < LANES; i++) {
        found |= x[i];
    }
    return found != 0;
#endif
}

#endif
