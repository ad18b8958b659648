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

/* Returns whether numbers are outside the range. NaN is not, nor an Inf that the format has.
 * Not inlined: one function serves all formats. */
static __attribute__((noinline)) int have_outside(struct tf_format f, const float *in,
                                                  size_t n)
{
    const uint32_t beyond = tf_beyond(f);
    if (f.specials == TF_EXPONENT_ONLY) {
        const float first = tf_float_of(beyond);
        int32_t low = 0, high = 0; /* zero and negative numbers are outside */
        for (size_t i = 0; i < n; i++) {
            low |= -(in[i] <= 0);
            high |= -(in[i] >= first);
        }
        return (low | high) != 0;
    }
    /* With `first` subtracted, magnitudes below it are larger than the others. */
    const uint32_t first = TF_INF_BITS + (f.specials != TF_IEEE);
    uint32_t greatest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t below = (tf_bits_of(in[i]) & TF_MAGNITUDE_BITS) - first;
        greatest = below > greatest ? below : greatest;
    }
    return greatest >= beyond - first;
}

/* Returns the hints of numbers with these bounds. `in` may be NULL. */
TF_INLINE struct tf_flag_hints hints_of(struct tf_format f, struct bounds bounds,
                                        const float *in, size_t n)
{
    const uint32_t power = f.specials == TF_EXPONENT_ONLY;
    const int beyond = bounds.greatest >= tf_beyond(f) - power;
    const int not_finite = bounds.greatest >= TF_INF_BITS - power;
    const int nan = bounds.greatest > TF_INF_BITS;
    const int outside = not_finite && in ? have_outside(f, in, n) : beyond;
    const int no_nan = f.specials == TF_FINITE && nan;
    const struct tf_flag_hints hints = {
        .beyond = not_finite ? TF_NOT_FINITE : (unsigned)beyond,
        .tiny = bounds.min_minus_1 < tf_least_normal(f) - 1,
        .nan = (unsigned)nan,
        .raised = (outside ? power ? TF_INVALID : TF_OVER : 0) | (no_nan ? TF_INVALID : 0),
    };
    return hints;
}

TF_INLINE struct bounds bounds_of(struct tf_format f, const float *in, size_t n)
{
    struct bounds bounds = no_bounds();
    for (size_t i = 0; i < n; i++) {
        bounds = widen_bounds(f, bounds, tf_bits_of(in[i]));
    }
    return bounds;
}

TF_INLINE struct tf_flag_hints suspect(struct tf_format f, const float *in, size_t n)
{
    return hints_of(f, bounds_of(f, in, n), in, n);
}

/* Replaces the codes of NaN in a chunk that was rounded as if all were numbers. */
static __attribute__((noinline)) void mend_nan(struct tf_format f, const float *in,
                                               void *items, size_t n)
{
    if (f.itemsize == 1) {
        /* The signs are right, and the magnitudes those of numbers above the range. */
        const int has_nan = f.specials != TF_FINITE;
        const uint8_t set = (uint8_t)(has_nan ? tf_nan_code(f) : 0);
        const uint8_t kept = (uint8_t)(has_nan ? UINT8_MAX : tf_sign_mask(f));
        uint8_t *out = items;
        size_t i = 0;
        for (; i + LANE_BYTES <= n; i += LANE_BYTES) {
            const bytes nan = are_nan(in + i);
            bytes codes;
            memcpy(&codes, out + i, sizeof codes);
            codes = (codes | (set & nan)) & (kept | ~nan);
            memcpy(out + i, &codes, sizeof codes);
        }
        for (; i < n; i++) {
            const int nan = tf_single_is_nan(tf_bits_of(in[i]));
            out[i] = nan ? (out[i] | set) & kept : out[i];
        }
    } else if (f.itemsize == 2) {
        const uint16_t nan = (uint16_t)tf_nan_code(f);
        uint16_t *out = items;
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = tf_bits_of(in[i]);
            const uint16_t code = nan | (uint16_t)(bits >> 16 & TF_BF16_SIGN_BIT);
            out[i] = tf_single_is_nan(bits) ? code : out[i];
        }
    } else {
        uint32_t *out = items;
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = tf_bits_of(in[i]);
            const uint32_t nan = TF_QUIET_NAN_BITS | (bits & TF_SIGN_BIT);
            out[i] = tf_single_is_nan(bits) ? nan : out[i];
        }
    }
}

/* Returns float32 bits of in[i], or of wide[i] if `in` is NULL. The latter is rounded to
 * odd, which is exact below float32's normal range for multiples of 2^-149. */
TF_INLINE uint32_t single_at(const float *in, const double *wide, size_t i)
{
    return in ? tf_bits_of(in[i]) : tf_odd_single(wide[i]);
}

/* Rounds to signed items of one byte. The codes show which results may have underflowed,
 * with two exceptions, for which the numbers are examined. A zero that is not from +0 has
 * mostly vanished, and the code of the smallest normal number may come from a smaller
 * number. */
TF_INLINE struct tf_flag_hints bytes_from_float32(struct tf_format f, const float *in,
                                        uint8_t *items, size_t n)
{
    struct code_bounds codes = {.least = bytes_of(UINT8_MAX),
                                .min_minus_1 = bytes_of(UINT8_MAX)};
    size_t i = 0;
    for (; i + LANE_BYTES <= n; i += LANE_BYTES) {
        const bytes found = narrow_to_bytes(f, in + i, &codes);
        memcpy(items + i, &found, sizeof found);
    }
    if (i < n) {
        float rest[LANE_BYTES];
        for (size_t j = 0; j < LANE_BYTES; j++) {
            rest[j] = in[i];
        }
        memcpy(rest, in + i, (n - i) * sizeof(float));
        const bytes found = narrow_to_bytes(f, rest, &codes);
        memcpy(items + i, &found, n - i);
    }
    struct bounds bounds = no_bounds();
    for (int lane = 0; lane < LANES; lane++) {
        const uint32_t magnitude = codes.greatest[lane];
        bounds.greatest = magnitude > bounds.greatest ? magnitude : bounds.greatest;
    }
    const uint8_t subnormal = (uint8_t)((1 << f.mantissa_bits) - 1); /* code - 1 */
    const bytes unknown = (bytes)(codes.least == 0) |
                          (bytes)(codes.min_minus_1 == subnormal);
    if (any((words)(codes.min_minus_1 < subnormal))) {
        bounds.min_minus_1 = 0;
    } else if (any((words)unknown)) {
        bounds.min_minus_1 = bounds_of(f, in, n).min_minus_1;
    }
    if (bounds.greatest > TF_INF_BITS && tf_mends_nan(f)) {
        mend_nan(f, in, items, n);
    }
    return hints_of(f, bounds, in, n);
}

#if defined(__AVX512BF16__)
/* Rounds to bfloat16 by an instruction that rounds to nearest, ties to even. It takes
 * subnormal numbers for zero, so that chunks with some are rounded again, and keeps the
 * payload of NaN. */
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
    const struct tf_flag_hints hints = hints_of(f, bounds, in, n);
    for (i = 0; hints.tiny && i < n; i++) {
        out[i] = (uint16_t)tf_code_of_number(f, tf_bits_of(in[i]));
    }
    if (hints.nan) {
        mend_nan(f, in, out, n);
    }
    return hints;
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
    if (in && bounds.greatest > TF_INF_BITS && tf_mends_nan(f)) {
        mend_nan(f, in, items, n);
    }
    return hints_of(f, bounds, in, n);
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
#elif (defined(__AVX2__) && defined(__F16C__) && !defined(__AVX512F__)) || \
    defined(__aarch64__)
enum { AT_ONCE = 2 * LANES }; /* a vector of items of two bytes */

TF_INLINE shorts widened(const uint8_t in[AT_ONCE])
{
#if defined(__AVX2__)
    return (shorts)_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)in));
#else
    return (shorts)vmovl_u8(vld1_u8(in));
#endif
}

/* Returns `value` in lanes where all bits of `is` are set, and x in the others. */
TF_INLINE shorts replaced(shorts x, shorts is, int16_t value)
{
#if defined(__AVX2__)
    return (shorts)_mm256_blendv_epi8((__m256i)x, _mm256_set1_epi16(value), (__m256i)is);
#else
    return (x & ~is) | (value & is);
#endif
}

/* Converts one half of a vector of float16 numbers. */
TF_INLINE floats half_to_floats(shorts x, int upper)
{
#if defined(__AVX2__)
    return (floats)_mm256_cvtph_ps(upper ? _mm256_extracti128_si256((__m256i)x, 1)
                                         : _mm256_castsi256_si128((__m256i)x));
#else
    const float16x8_t halves = (float16x8_t)x;
    return (floats)(upper ? vcvt_high_f32_f16(halves)
                          : vcvt_f32_f16(vget_low_f16(halves)));
#endif
}

/* Each item is shifted to the fields of float16, whose exponent is at least as wide. That
 * number times 2^(15 - bias) is the item's, also if it is subnormal. */
TF_INLINE void through_float16(struct tf_format f, const uint8_t *in, float *out)
{
    enum { INF = 0x7C00, QUIET_NAN = 0x7E00, BIAS = 15, FRACTION_BITS = 10 };
    const shorts mask = shorts_of((int16_t)tf_magnitude_mask(f));
    const shorts infinity = shorts_of((int16_t)tf_infinity_magnitude(f));
    const shorts only_sign = shorts_of((int16_t)tf_sign_mask(f));
    const floats scale = floats_of(ldexpf(1, BIAS - f.bias));
    const shorts item = widened(in), magnitude = item & mask;
    shorts half = magnitude << (FRACTION_BITS - f.mantissa_bits);
    if (f.specials == TF_IEEE) {
        half = replaced(half, (shorts)(magnitude > infinity), QUIET_NAN);
        half = replaced(half, (shorts)(magnitude == infinity), INF);
    } else if (f.specials == TF_FN) {
        half = replaced(half, (shorts)(magnitude == mask), QUIET_NAN);
    }
    half |= item << (16 - f.width) & INT16_MIN;
    if (f.specials == TF_FNUZ) {
        half = replaced(half, (shorts)(item == only_sign), QUIET_NAN);
    }
    const floats low = half_to_floats(half, 0) * scale;
    const floats high = half_to_floats(half, 1) * scale;
    memcpy(out, &low, sizeof low);
    memcpy(out + LANES, &high, sizeof high);
}

TF_INLINE void bytes_to_float32(struct tf_format f, int index, const uint8_t *in,
                                float *out, size_t n)
{
    enum { EXPONENT_BITS = 5 };
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

TF_INLINE void to_float32(struct tf_format f, int index, const void *items, float *out,
                      size_t n)
{
    TF_ASSERT((uintptr_t)items % (unsigned)f.itemsize == 0);
    if (f.itemsize == 4) {
        /* tf32 items are float32 numbers, but for the payload of NaN, which is dropped. */
        const uint32_t *in = items;
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = in[i] & tf_used_bits(f);
            const uint32_t nan = (bits & TF_SIGN_BIT) | TF_QUIET_NAN_BITS;
            out[i] = tf_float_of(tf_single_is_nan(bits) ? nan : bits);
        }
    } else if (f.itemsize == 2 && f.bias == 127) {
        /* bfloat16 items are upper halves of float32, but NaN's payload is dropped. */
        const uint16_t *in = items;
        for (size_t i = 0; i < n; i++) {
            const int16_t magnitude = (int16_t)(in[i] & TF_BF16_MAGNITUDE_BITS);
            const uint16_t nan = (in[i] & TF_BF16_SIGN_BIT) | TF_BF16_QUIET_NAN_BITS;
            const uint16_t item = magnitude > TF_BF16_INF_BITS ? nan : in[i];
            out[i] = tf_float_of((uint32_t)item << 16);
        }
    } else if (f.itemsize == 2) {
        const uint16_t *in = items;
        for (size_t i = 0; i < n; i++) {
            out[i] = tf_float_of(tf_single_of_item(f, in[i]));
        }
    } else {
        bytes_to_float32(f, index, items, out, n);
    }
}

/* -- underflow ----------------------------------------------------------------- */

TF_INLINE unsigned underflow(struct tf_format f, int index, const float *in,
                             const void *items, size_t n)
{
    float back[TF_CHUNK];
    TF_ASSERT(n <= TF_CHUNK);
    to_float32(f, index, items, back, n);
    const uint32_t mask = f.specials == TF_EXPONENT_ONLY ? UINT32_MAX : TF_MAGNITUDE_BITS;
    uint32_t under = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t seen = tf_bits_of(in[i]) & mask;
        under |= (seen - 1 < tf_least_normal(f) - 1) & (uint32_t)(in[i] != back[i]);
    }
    return under ? TF_UNDER : 0;
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
    static unsigned underflow_##name(const float *in, const void *items, size_t n) \
    {                                                                          \
        return underflow(format, index, in, items, n);                         \
    }
#define ROW(name, ...) INSTANCE(name, tf_##name, tf_##name##_index)
TF_FORMATS(ROW)
#undef ROW
INSTANCE(float16, tf_float16, TF_FORMAT_COUNT)

const struct tf_conversions TF_NAME(tf_conversions)[TF_FORMAT_COUNT + 1] = {
#define ROW(name, ...)                                                         \
    {to_float32_##name, from_float32_##name, round_##name, suspect_##name,\
     underflow_##name},
    TF_FORMATS(ROW)
#undef ROW
    {to_float32_float16, from_float32_float16, round_float16, suspect_float16,
     underflow_float16},
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
#elif defined(__AVX2__)
    /* As below, eight at a time. Shuffles within halves change the order of the results. */
    enum { UPPER_WORDS = 0xDD, LOWER_WORDS = 0x88, SWAP_MIDDLE = 0xD8 };
    const __m256i one = _mm256_set1_epi32(1);
    for (; i + 8 <= n; i += 8) {
        const __m256d x = _mm256_loadu_pd(in + i), y = _mm256_loadu_pd(in + i + 4);
        const __m128 near_x = _mm256_cvtpd_ps(x), near_y = _mm256_cvtpd_ps(y);
        const __m256i back_x = _mm256_castpd_si256(_mm256_cvtps_pd(near_x));
        const __m256i back_y = _mm256_castpd_si256(_mm256_cvtps_pd(near_y));
        const __m256i rest_x = _mm256_sub_epi64(_mm256_castpd_si256(x), back_x);
        const __m256i rest_y = _mm256_sub_epi64(_mm256_castpd_si256(y), back_y);
        const __m256i exact_x = _mm256_cmpeq_epi64(_mm256_castpd_si256(x), back_x);
        const __m256i exact_y = _mm256_cmpeq_epi64(_mm256_castpd_si256(y), back_y);
        const __m256i rest = _mm256_castps_si256(_mm256_shuffle_ps(
            _mm256_castsi256_ps(rest_x), _mm256_castsi256_ps(rest_y), UPPER_WORDS));
        const __m256i exact = _mm256_castps_si256(_mm256_shuffle_ps(
            _mm256_castsi256_ps(exact_x), _mm256_castsi256_ps(exact_y), LOWER_WORDS));
        const __m256i nearest = _mm256_permute4x64_epi64(
            _mm256_castps_si256(_mm256_set_m128(near_y, near_x)), SWAP_MIDDLE);
        const __m256i away = _mm256_srai_epi32(rest, 31);
        const __m256i stepped = _mm256_or_si256(_mm256_add_epi32(nearest, away), one);
        const __m256i odd = _mm256_blendv_epi8(stepped, nearest, exact);
        _mm256_storeu_si256((__m256i *)(out + i),
                            _mm256_permute4x64_epi64(odd, SWAP_MIDDLE));
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
