/* Converts vectors of words, which hold items as they are in memory, to float32. */
#ifndef TF32DTYPE_MATMUL_KERNELS_WORDS_H
#define TF32DTYPE_MATMUL_KERNELS_WORDS_H

#include <math.h>

#include "formats/byte_tables.h"
#include "matmul/kernels/micro_tile.h"
#include "runtime/kernels/byte_lookup.h"

#if (defined(__AVX2__) && defined(__FMA__)) || defined(__aarch64__)

/* The items of a word. BYTES are looked up in whole tables. HALVED are bytes that are looked
 * up in half a table and then get their sign. FINITE are bytes that are converted by
 * constants, as if none were Inf or NaN; WITH_INF are such bytes of a format that has both,
 * converted in more operations. */
enum width { BYTES, HALVED, FINITE, WITH_INF, BF16, SINGLES };
enum { MOST = 4 }; /* items of a word */

TF_INLINE int size_of(enum width width)
{
    return width == SINGLES ? 4 : width == BF16 ? 2 : 1;
}

typedef uint32_t words __attribute__((vector_size(4 * WIDTH)));
typedef long long items /* as intrinsics have */
    __attribute__((vector_size(4 * WIDTH), may_alias));

TF_INLINE vector lower_half(items x) { return (vector)((words)x << 16); }
TF_INLINE vector upper_half(items x) { return (vector)((words)x & TF_UPPER_HALF); }

#endif

#if defined(__AVX512F__) && defined(__AVX512BW__)

/* Tables and masks that convert items, loaded once before a loop. */
struct reading {
#if defined(__AVX512VBMI__)
    struct tf_byte_registers high, low;
    __m512i sign;
#endif
    __m512i used;
};

/* Precondition: `table` is that of the format if items have one byte; else it is not
 * read. */
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

/* Writes the numbers of 16 words: the first of each word to out[0], the second to out[1]
 * and so on. */
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

#elif defined(__AVX2__) && defined(__FMA__)

/* Constants that convert words. The constants for bytes follow struct tf_byte_as_bf16. */
struct reading {
    const uint32_t *table;
    int has_infinity;
    __m256i used;
    __m128i up;
    __m256i magnitude, even, odd, offset, special, nan;
    __m256 least, scale;
    /* For products of bytes as integers. */
    __m256i codes, one, exponent, upper;
    __m128i left, right;
    __m256 product;
};

/* The largest magnitude and the smallest signed code of the bytes so far. */
struct seen {
    __m256i greatest, least;
};

TF_INLINE struct reading begin_reading(enum width width,
                                       const struct tf_byte_table *table, uint32_t used)
{
    struct reading reading = {.used = _mm256_set1_epi32((int32_t)used)};
    if (width == BYTES) {
        reading.table = table->bits;
    } else if (size_of(width) == 1) {
        const struct tf_byte_as_bf16 facts = table->as_bf16[width == WITH_INF];
        reading.has_infinity = facts.has_infinity;
        reading.up = _mm_cvtsi32_si128(facts.up);
        reading.magnitude = _mm256_set1_epi8((char)facts.magnitude);
        reading.even = _mm256_set1_epi16(facts.factor);
        reading.odd = _mm256_set1_epi16((short)(facts.factor << 8));
        reading.offset = _mm256_set1_epi16((short)facts.offset);
        reading.special = _mm256_set1_epi8((char)facts.special);
        reading.nan = _mm256_set1_epi8((char)(facts.sign_is_nan ? -128 : 127));
        reading.least = _mm256_set1_ps(facts.least);
        reading.scale = _mm256_set1_ps(facts.scale);
        const int magnitude = facts.magnitude >> facts.up, bits = facts.mantissa_bits;
        reading.codes = _mm256_set1_epi8((char)magnitude);
        reading.one = _mm256_set1_epi8((char)(1 << bits));
        reading.exponent = _mm256_set1_epi8((char)(magnitude >> bits << bits));
        reading.left = _mm_cvtsi32_si128(7 - bits);
        reading.right = _mm_cvtsi32_si128(1 + bits);
        reading.upper = _mm256_set1_epi16((short)(0xFF80 >> bits));
        reading.product = _mm256_set1_ps(facts.product);
    }
    return reading;
}

TF_INLINE struct seen seen_nothing(void)
{
    return (struct seen){_mm256_setzero_si256(), _mm256_setzero_si256()};
}

/* Returns bytes whose bits are all set where Inf or NaN was seen, else 0. A sum with NaN is
 * NaN, whatever its other terms are. Only a format with Inf needs the terms again. */
TF_INLINE __m256i seen_specials(const struct reading *reading, struct seen seen)
{
    const __m256i most = _mm256_max_epu8(seen.greatest, reading->special);
    return _mm256_or_si256(_mm256_cmpeq_epi8(most, seen.greatest),
                           _mm256_cmpeq_epi8(seen.least, reading->nan));
}

/* Returns numbers from x (see struct tf_byte_as_bf16) and the highest bits of `sign`. */
TF_INLINE __m256 with_sign(enum width width, const struct reading *reading, __m256 x,
                           __m256i sign)
{
    const __m256 first = _mm256_set1_ps(-0.0f);
    const __m256 cured = _mm256_fmsub_ps(x, _mm256_set1_ps(2), reading->least);
    const __m256 magnitude = _mm256_min_ps(x, cured);
    return _mm256_or_ps(
        width == WITH_INF ? _mm256_mul_ps(magnitude, reading->scale) : magnitude,
        _mm256_and_ps(_mm256_castsi256_ps(sign), first));
}

/* Writes the numbers of 8 words: the first of each word to out[0], the second to out[1] and
 * so on. The results for Inf and NaN of FINITE items are wrong: `seen_specials` finds them. */
TF_INLINE void numbers_of_words(enum width width, const struct reading *reading,
                                __m256i x, struct seen *seen, __m256 out[MOST])
{
    if (width == BYTES) {
        const float *bits = (const float *)(const void *)reading->table;
        UNROLLED for (int i = 0; i < MOST; i++) {
            const __m256i item =
                _mm256_and_si256(_mm256_srli_epi32(x, 8 * i), _mm256_set1_epi32(0xFF));
            out[i] = _mm256_i32gather_ps(bits, item, 4);
        }
    } else if (size_of(width) == 1) {
        const __m256i codes = _mm256_sll_epi32(x, reading->up);
        const __m256i magnitudes = _mm256_and_si256(codes, reading->magnitude);
        const __m256i even = _mm256_add_epi16(
            _mm256_maddubs_epi16(magnitudes, reading->even), reading->offset);
        const __m256i odd = _mm256_add_epi16(
            _mm256_maddubs_epi16(magnitudes, reading->odd), reading->offset);
        seen->greatest = _mm256_max_epu8(seen->greatest, magnitudes);
        seen->least = _mm256_min_epi8(seen->least, codes);
        out[0] = with_sign(width, reading, lower_half(even), _mm256_slli_epi32(codes, 24));
        out[1] = with_sign(width, reading, lower_half(odd), _mm256_slli_epi32(codes, 16));
        out[2] = with_sign(width, reading, upper_half(even), _mm256_slli_epi32(codes, 8));
        out[3] = with_sign(width, reading, upper_half(odd), codes);
    } else if (width == BF16) {
        out[0] = lower_half(x);
        out[1] = upper_half(x);
    } else {
        out[0] = _mm256_castsi256_ps(_mm256_and_si256(x, reading->used));
    }
}

/* Adds the products of the FINITE items of 8 words to sums, which are in units of
 * reading->product. Significands are multiplied as integers, and exponents are added: this
 * takes two thirds of the operations of a conversion to float32. Sums do not begin with -0,
 * so that a product of -0 may be +0. */
TF_INLINE __m256 add_products_of_words(const struct reading *reading, __m256i a, __m256i b,
                                       struct seen *seen, __m256 sums)
{
    const __m256i p = _mm256_and_si256(a, reading->codes), one = reading->one;
    const __m256i q = _mm256_and_si256(b, reading->codes);
    seen->greatest = _mm256_max_epu8(seen->greatest, _mm256_max_epu8(p, q));
    seen->least = _mm256_min_epi8(seen->least, _mm256_min_epi8(a, b));
    /* A subnormal number has the exponent of the smallest normal one, but not its bit. */
    const __m256i e = _mm256_and_si256(_mm256_max_epu8(p, one), reading->exponent);
    const __m256i f = _mm256_and_si256(_mm256_max_epu8(q, one), reading->exponent);
    const __m256i s = _mm256_xor_si256(_mm256_xor_si256(p, one), e);
    const __m256i t = _mm256_xor_si256(_mm256_xor_si256(q, one), f);
    const __m256i sign = _mm256_sll_epi32(_mm256_xor_si256(a, b), reading->up);
    const __m256i signed_t =
        _mm256_sign_epi8(t, _mm256_or_si256(sign, _mm256_set1_epi8(1)));
    const __m256i low = _mm256_set1_epi16(0xFF), exponents = _mm256_add_epi8(e, f);
    const __m256i even = _mm256_maddubs_epi16(_mm256_and_si256(low, s), signed_t);
    const __m256i odd = _mm256_maddubs_epi16(_mm256_andnot_si256(low, s), signed_t);
    const __m256i even_scale =
        _mm256_sll_epi16(_mm256_and_si256(exponents, low), reading->left);
    const __m256i odd_scale =
        _mm256_and_si256(_mm256_srl_epi16(exponents, reading->right), reading->upper);
    /* The 16 upper bits of a word are a product, whose unit is thus 2^16. */
    const __m256i upper = _mm256_set1_epi32((int32_t)TF_UPPER_HALF);
    const __m256i products[MOST] = {
        _mm256_slli_epi32(even, 16), _mm256_slli_epi32(odd, 16),
        _mm256_and_si256(even, upper), _mm256_and_si256(odd, upper)};
    const __m256 scales[MOST] = {lower_half(even_scale), lower_half(odd_scale),
                                 upper_half(even_scale), upper_half(odd_scale)};
    UNROLLED for (int i = 0; i < MOST; i++) {
        sums = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products[i]), scales[i], sums);
    }
    return sums;
}

#elif defined(__aarch64__)

/* Only for items of two and four bytes: lines of bytes are converted to numbers first. */
struct reading {
    words used;
};

/* Nothing: NaN and Inf are converted like other numbers. */
struct seen {
    int nothing;
};

TF_INLINE struct reading begin_reading(enum width width, const struct tf_byte_table *table,
                                       uint32_t used)
{
    (void)width, (void)table;
    return (struct reading){(words){0} + used};
}

TF_INLINE struct seen seen_nothing(void) { return (struct seen){0}; }

/* Writes the numbers of 4 words: the first of each word to out[0], and the second of BF16 to
 * out[1]. */
TF_INLINE void numbers_of_words(enum width width, const struct reading *reading, items x,
                                struct seen *seen, vector out[MOST])
{
    (void)seen;
    out[0] = width == BF16 ? lower_half(x) : (vector)((words)x & reading->used);
    out[1] = upper_half(x);
}

#endif
#endif
