/* float32 <-> every format, one chunk at a time: loops over fast_codec.h. */
#include <math.h>
#include <string.h>

#include "formats/byte_tables.h"
#include "formats/fast_codec.h"
#include "formats/scalar_ops.h"
#include "formats/kernels/narrow_bytes.h"
#include "runtime/asserts.h"
#include "runtime/kernels/byte_lookup.h"

/* -- float32 -> items ------------------------------------------------------- */

/* Bounds of a chunk's magnitudes, for suspects_of(). For e8m0, `greatest` is that of all
 * bits less one, so that zero and negative numbers are the largest. */
struct bounds {
    uint32_t greatest, min_minus_1;
};

TF_INLINE struct bounds no_bounds(void)
{
    const struct bounds none = {0, UINT32_MAX};
    return none;
}

TF_INLINE struct bounds widen_bounds(struct tf_format f, struct bounds bounds,
                                     uint32_t bits)
{
    const int power = f.specials == TF_EXPONENT_ONLY;
    const uint32_t magnitude = bits & (power ? UINT32_MAX : TF_MAGNITUDE_BITS);
    const uint32_t less_one = magnitude - 1; /* zero becomes the largest integer */
    const uint32_t above = power ? less_one : magnitude;
    bounds.greatest = above > bounds.greatest ? above : bounds.greatest;
    bounds.min_minus_1 =
        less_one < bounds.min_minus_1 ? less_one : bounds.min_minus_1;
    return bounds;
}

TF_INLINE struct tf_flag_hints suspects_of(struct tf_format f, struct bounds bounds)
{
    const uint32_t power = f.specials == TF_EXPONENT_ONLY;
    const unsigned beyond = bounds.greatest >= tf_beyond(f) - power;
    const struct tf_flag_hints suspects = {
        bounds.greatest >= TF_INF_BITS - power ? TF_NOT_FINITE : beyond,
        bounds.min_minus_1 < tf_least_normal(f) - 1,
        bounds.greatest > TF_INF_BITS,
    };
    return suspects;
}

TF_INLINE struct tf_flag_hints suspect(struct tf_format f, const float *in, size_t n)
{
    struct bounds bounds = no_bounds();
    for (size_t i = 0; i < n; i++) {
        bounds = widen_bounds(f, bounds, tf_bits_of(in[i]));
    }
    return suspects_of(f, bounds);
}

TF_INLINE uint32_t mended(struct tf_format f, float x, uint32_t item)
{
    const uint32_t bits = tf_bits_of(x);
    return tf_single_is_nan(bits) ? tf_code_of_nan(f, bits) << f.shift : item;
}

/* Replaces the codes of NaN in a chunk that was rounded as if all were numbers. */
TF_INLINE void mend_nan(struct tf_format f, const float *in, void *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tf_item_put(f, items, i, mended(f, in[i], tf_item_at(f, items, i)));
    }
}

/* Returns float32 bits of in[i], or of wide[i] if `in` is NULL. The latter is rounded to
 * odd, which is exact below float32's normal range for multiples of 2^-149. */
TF_INLINE uint32_t single_at(const float *in, const double *wide, size_t i)
{
    return in ? tf_bits_of(in[i]) : tf_odd_single(wide[i]);
}

/* Rounds to signed items of one byte. The codes show what the rounding may raise, with two
 * exceptions, for which the numbers are examined. A zero that is not from +0 has mostly
 * vanished, and the code of the smallest normal number may come from a smaller number. */
TF_INLINE struct tf_flag_hints bytes_from_float32(struct tf_format f, const float *in,
                                        uint8_t *items, size_t n)
{
    struct code_bounds bounds = {.least = bytes_of(UINT8_MAX),
                                 .min_minus_1 = bytes_of(UINT8_MAX)};
    size_t i = 0;
    for (; i + LANE_BYTES <= n; i += LANE_BYTES) {
        const bytes codes = narrow_to_bytes(f, in + i, &bounds);
        memcpy(items + i, &codes, sizeof codes);
    }
    if (i < n) {
        float rest[LANE_BYTES];
        for (size_t j = 0; j < LANE_BYTES; j++) {
            rest[j] = in[i];
        }
        memcpy(rest, in + i, (n - i) * sizeof(float));
        const bytes codes = narrow_to_bytes(f, rest, &bounds);
        memcpy(items + i, &codes, n - i);
    }
    const uint8_t subnormal = (uint8_t)((1 << f.mantissa_bits) - 1); /* code - 1 */
    const bytes unknown = (bytes)(bounds.least == 0) |
                          (bytes)(bounds.min_minus_1 == subnormal);
    struct tf_flag_hints suspects = {0, 0, 0};
    if (any((words)(bounds.greatest > (uint8_t)tf_maximum_magnitude(f)))) {
        suspects = suspect(f, in, n);
        if (suspects.nan && tf_mends_nan(f)) {
            mend_nan(f, in, items, n);
        }
    } else if (any((words)(bounds.min_minus_1 < subnormal))) {
        suspects.tiny = 1;
    } else if (any((words)unknown)) {
        suspects = suspect(f, in, n);
    }
    return suspects;
}

#if defined(__AVX512BF16__)
/* Rounds to bfloat16 by an instruction that rounds to nearest, ties to even. It takes
 * subnormal numbers for zero and keeps the payload of NaN, so that chunks with either are
 * rounded again. */
static struct tf_flag_hints bf16_from_float32(const float *in, uint16_t *out, size_t n)
{
    const struct tf_format f = tf_bfloat16;
    const __m512i magnitudes = _mm512_set1_epi32(INT32_MAX), one = _mm512_set1_epi32(1);
    __m512i greatest = _mm512_setzero_si512(), min_minus_1 = _mm512_set1_epi32(-1);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m512 x = _mm512_loadu_ps(in + i), y = _mm512_loadu_ps(in + i + 16);
        const __m512i p = _mm512_and_si512(_mm512_castps_si512(x), magnitudes);
        const __m512i q = _mm512_and_si512(_mm512_castps_si512(y), magnitudes);
        greatest = _mm512_max_epu32(greatest, _mm512_max_epu32(p, q));
        min_minus_1 = _mm512_min_epu32(
            min_minus_1,
            _mm512_min_epu32(_mm512_sub_epi32(p, one), _mm512_sub_epi32(q, one)));
        _mm512_storeu_si512(out + i, (__m512i)_mm512_cvtne2ps_pbh(y, x));
    }
    struct bounds bounds = {_mm512_reduce_max_epu32(greatest),
                            _mm512_reduce_min_epu32(min_minus_1)};
    for (; i < n; i++) {
        const uint32_t bits = tf_bits_of(in[i]);
        bounds = widen_bounds(f, bounds, bits);
        out[i] = (uint16_t)tf_code_of_single(f, bits);
    }
    const struct tf_flag_hints suspects = suspects_of(f, bounds);
    for (i = 0; (suspects.tiny || suspects.nan) && i < n; i++) {
        out[i] = (uint16_t)tf_code_of_single(f, tf_bits_of(in[i]));
    }
    return suspects;
}
#endif

/* Rounds n numbers of `in`, or of `wide` if `in` is NULL, to items. The result of NaN in
 * `wide` is arbitrary. */
TF_INLINE struct tf_flag_hints from_float32(struct tf_format f, const float *in,
                                  const double *wide, void *items, size_t n)
{
    struct bounds bounds = no_bounds();
    TF_ASSERT((in == NULL) != (wide == NULL));
    TF_ASSERT((uintptr_t)items % (unsigned)f.itemsize == 0);
    if (in && f.itemsize == 1 && f.specials != TF_EXPONENT_ONLY) {
        return bytes_from_float32(f, in, items, n);
    }
#if defined(__AVX512BF16__)
    if (in && f.itemsize == 2 && f.bias == 127) {
        return bf16_from_float32(in, items, n);
    }
#endif
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = single_at(in, wide, i);
        bounds = widen_bounds(f, bounds, bits);
        tf_item_put(f, items, i, tf_code_of_number(f, bits) << f.shift);
    }
    if (in && tf_mends_nan(f) && bounds.greatest > TF_INF_BITS) {
        mend_nan(f, in, items, n);
    }
    return suspects_of(f, bounds);
}

/* -- item -> float32 --------------------------------------------------------- */

#if !defined(__AVX512VBMI__)
TF_INLINE void each_to_float32(struct tf_format f, const uint8_t *in, float *out,
                               size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = tf_float_of(tf_single_of_item(f, in[i]));
    }
}
#endif

/* Converts one-byte items to float32. The 256 numbers have only zeros below their upper
 * 16 bits, so that two tables of bytes hold them for the byte permutations. */
#if defined(__AVX512VBMI__)
TF_INLINE void bytes_to_float32(struct tf_format f, int index, const uint8_t *in,
                                float *out, size_t n)
{
    (void)f;
    const struct tf_byte_table *table = &tf_byte_tables[index];
    size_t i = 0;
    /* Interleaving works within lanes of 16 bytes. Each lane takes four bytes from every
     * quarter, so that the elements come out in order. */
    const __m512i quarters =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i zero = _mm512_setzero_si512();
    const struct tf_byte_registers highs = tf_load_bytes(table->high);
    const struct tf_byte_registers lows = tf_load_bytes(table->low);
    for (; i + 64 <= n; i += 64) {
        const __m512i index =
            _mm512_permutexvar_epi32(quarters, _mm512_loadu_si512(in + i));
        const struct tf_looked_up found = tf_look_up_uint16(highs, lows, index);
        _mm512_storeu_si512(out + i, _mm512_unpacklo_epi16(zero, found.lower));
        _mm512_storeu_si512(out + i + 16, _mm512_unpackhi_epi16(zero, found.lower));
        _mm512_storeu_si512(out + i + 32, _mm512_unpacklo_epi16(zero, found.upper));
        _mm512_storeu_si512(out + i + 48, _mm512_unpackhi_epi16(zero, found.upper));
    }
    for (; i < n; i++) {
        out[i] = tf_float_of(table->bits[in[i]]);
    }
}
#elif defined(__AVX2__) && defined(__F16C__) && !defined(__AVX512F__)
/* Converts 16 items. Each is shifted to the fields of float16, whose exponent is at least as
 * wide. That number times 2^(15 - bias) is the item's, also if it is subnormal. */
TF_INLINE void through_float16(struct tf_format f, const uint8_t *in, float *out)
{
    enum { INF = 0x7C00, QUIET_NAN = 0x7E00, BIAS = 15, FRACTION_BITS = 10 };
    const __m256i mask = _mm256_set1_epi16((short)tf_magnitude_mask(f));
    const __m256i sign_bit = _mm256_set1_epi16(INT16_MIN);
    const __m256i only_sign = _mm256_set1_epi16((short)tf_sign_mask(f));
    const __m256i infinity = _mm256_set1_epi16((short)tf_infinity_magnitude(f));
    const __m256i nan = _mm256_set1_epi16(QUIET_NAN);
    const __m256 scale = _mm256_set1_ps(ldexpf(1, BIAS - f.bias));
    const __m256i item = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)in));
    const __m256i magnitude = _mm256_and_si256(item, mask);
    const __m256i sign = _mm256_and_si256(_mm256_slli_epi16(item, 16 - f.width), sign_bit);
    __m256i half = _mm256_slli_epi16(magnitude, FRACTION_BITS - f.mantissa_bits);
    if (f.specials == TF_IEEE) {
        const __m256i is_nan = _mm256_cmpgt_epi16(magnitude, infinity);
        const __m256i is_infinite = _mm256_cmpeq_epi16(magnitude, infinity);
        half = _mm256_blendv_epi8(half, nan, is_nan);
        half = _mm256_blendv_epi8(half, _mm256_set1_epi16(INF), is_infinite);
    } else if (f.specials == TF_FN) {
        half = _mm256_blendv_epi8(half, nan, _mm256_cmpeq_epi16(magnitude, mask));
    }
    half = _mm256_or_si256(half, sign);
    if (f.specials == TF_FNUZ) {
        half = _mm256_blendv_epi8(half, nan, _mm256_cmpeq_epi16(item, only_sign));
    }
    const __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
    const __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
    _mm256_storeu_ps(out, _mm256_mul_ps(low, scale));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(high, scale));
}

TF_INLINE void bytes_to_float32(struct tf_format f, int index, const uint8_t *in,
                                float *out, size_t n)
{
    enum { AT_ONCE = 16, EXPONENT_BITS = 5 };
    const int is_ieee = f.specials == TF_IEEE;
    (void)index;
    /* The exponent of float8_e5m2fnuz is as wide as float16's, but has no Inf and NaN. */
    if (f.specials == TF_EXPONENT_ONLY || (f.exponent_bits == EXPONENT_BITS && !is_ieee)) {
        each_to_float32(f, in, out, n);
        return;
    }
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        through_float16(f, in + i, out + i);
    }
    if (i < n) {
        uint8_t items[AT_ONCE] = {0};
        float numbers[AT_ONCE];
        memcpy(items, in + i, n - i);
        through_float16(f, items, numbers);
        memcpy(out + i, numbers, (n - i) * sizeof(float));
    }
}
#else
TF_INLINE void bytes_to_float32(struct tf_format f, int index, const uint8_t *in,
                                float *out, size_t n)
{
    (void)index;
    each_to_float32(f, in, out, n);
}
#endif

/* Replaces every NaN by the canonical one with its sign. */
TF_INLINE void quieten_nan(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = tf_bits_of(x[i]), sign = bits & TF_SIGN_BIT;
        x[i] = tf_float_of(tf_single_is_nan(bits) ? sign | TF_QUIET_NAN_BITS : bits);
    }
}

TF_INLINE void to_float32(struct tf_format f, int index, const void *items, float *out,
                      size_t n)
{
    TF_ASSERT((uintptr_t)items % (unsigned)f.itemsize == 0);
    if (f.itemsize == 4) {
        /* tf32 items are float32 numbers, but for the payload of NaN, which is dropped. */
        const uint32_t *in = items;
        uint32_t greatest = 0;
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = in[i] & tf_used_bits(f);
            greatest = bits << 1 > greatest ? bits << 1 : greatest;
            out[i] = tf_float_of(bits);
        }
        if (greatest > UINT32_C(0xFF000000)) {
            quieten_nan(out, n);
        }
    } else if (f.itemsize == 2) {
        const uint16_t *in = items;
        if (f.bias == 127) {
            /* bfloat16 items are upper halves of float32, but NaN's payload is dropped. */
            uint16_t greatest = 0;
            for (size_t i = 0; i < n; i++) {
                const uint16_t magnitude = in[i] & INT16_MAX;
                greatest = magnitude > greatest ? magnitude : greatest;
                out[i] = tf_float_of((uint32_t)in[i] << 16);
            }
            if (greatest > tf_infinity_magnitude(f)) {
                quieten_nan(out, n);
            }
            return;
        }
        for (size_t i = 0; i < n; i++) {
            out[i] = tf_float_of(tf_single_of_item(f, in[i]));
        }
    } else {
        bytes_to_float32(f, index, items, out, n);
    }
}

/* -- exceptions --------------------------------------------------------------- */

TF_INLINE unsigned raised(struct tf_format f, int index, const float *in,
                          const void *items, size_t n)
{
    float back[TF_CHUNK];
    TF_ASSERT(n <= TF_CHUNK);
    to_float32(f, index, items, back, n);
    uint32_t over = 0, under = 0, invalid = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = tf_bits_of(in[i]);
        const uint32_t magnitude = bits & TF_MAGNITUDE_BITS;
        const uint32_t nan = magnitude > TF_INF_BITS;
        const uint32_t infinite = magnitude == TF_INF_BITS;
        const uint32_t exceeds = magnitude >= tf_beyond(f) && !nan &&
                                 !(f.specials == TF_IEEE && infinite);
        if (f.specials == TF_EXPONENT_ONLY) {
            invalid |= exceeds | (!nan && bits - 1 >= TF_MAGNITUDE_BITS);
        } else {
            over |= exceeds;
            invalid |= f.specials == TF_FINITE && nan;
        }
        const uint32_t seen = f.specials == TF_EXPONENT_ONLY ? bits : magnitude;
        under |= (seen - 1 < tf_least_normal(f) - 1) & (uint32_t)(in[i] != back[i]);
    }
    return (over ? TF_OVER : 0) | (under ? TF_UNDER : 0) | (invalid ? TF_INVALID : 0);
}

/* -- one instance per format ------------------------------------------------------ */

#define INSTANCE(name, format, index)                                          \
    static void to_float32_##name(const void *items, float *out, size_t n)         \
    {                                                                          \
        to_float32(format, index, items, out, n);                                  \
    }                                                                          \
    static struct tf_flag_hints from_float32_##name(const float *in, void *items, size_t n) \
    {                                                                          \
        return from_float32(format, in, NULL, items, n);                               \
    }                                                                          \
    static struct tf_flag_hints round_##name(const double *in, void *items, size_t n) \
    {                                                                          \
        return from_float32(format, NULL, in, items, n);                               \
    }                                                                          \
    static struct tf_flag_hints suspect_##name(const float *in, size_t n)        \
    {                                                                          \
        return suspect(format, in, n);                                         \
    }                                                                          \
    static unsigned raised_##name(const float *in, const void *items, size_t n) \
    {                                                                          \
        return raised(format, index, in, items, n);                            \
    }
#define ROW(name, ...) INSTANCE(name, tf_##name, tf_##name##_index)
TF_FORMATS(ROW)
#undef ROW
INSTANCE(float16, tf_float16, TF_FORMAT_COUNT)

const struct tf_conversions TF_NAME(tf_conversions)[TF_FORMAT_COUNT + 1] = {
#define ROW(name, ...)                                                         \
    {to_float32_##name, from_float32_##name, round_##name, suspect_##name, raised_##name},
    TF_FORMATS(ROW)
#undef ROW
    {to_float32_float16, from_float32_float16, round_float16, suspect_float16,
     raised_float16},
};

/* -- double -> float32, to odd ----------------------------------------------------- */

/* Rounds float64 to float32, to odd. Boldo and Melquiond, "Emulation of FMA and correctly
 * rounded sums: proved algorithms using rounding to odd" (2008): rounding to odd with two
 * more bits than the final format loses nothing that the final rounding needs. */
void TF_NAME(tf_narrow)(const double *in, float *out, size_t n)
{
    size_t i = 0;
#if defined(__AVX512F__)
    /* Truncate toward zero, then set the last bit of inexact results. */
    const __m256i one = _mm256_set1_epi32(1);
    for (; i + 8 <= n; i += 8) {
        const __m512d x = _mm512_loadu_pd(in + i);
        const __m256 cut =
            _mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        const __mmask8 inexact =
            _mm512_cmp_pd_mask(_mm512_cvtps_pd(cut), x, _CMP_NEQ_UQ);
        const __m256i bits = _mm256_castps_si256(cut);
        _mm256_storeu_si256((__m256i *)(out + i),
                            _mm256_mask_or_epi32(bits, inexact, bits, one));
    }
#endif
    for (; i < n; i++) {
        const float nearest = (float)in[i];
        const double back = (double)nearest;
        uint64_t wide, wide_back;
        memcpy(&wide, &in[i], sizeof wide);
        memcpy(&wide_back, &back, sizeof wide_back);
        /* Step toward zero if rounding went away from it, then set the last bit. */
        const uint32_t away = (wide_back & INT64_MAX) > (wide & INT64_MAX);
        const uint32_t inexact = back != in[i];
        const uint32_t stepped = (tf_bits_of(nearest) - away) | 1;
        out[i] = tf_float_of(inexact ? stepped : tf_bits_of(nearest));
    }
}

void TF_NAME(tf_widen)(const float *in, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = in[i];
    }
}
