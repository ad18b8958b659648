/* Predicates, NaN and bounds of numbers, and look-ups in tables of 256. */
#include <string.h>

#include "formats/byte_tables.h"
#include "formats/kernels/decls.h"
#include "runtime/kernels/byte_lookup.h"

/* -- predicates --------------------------------------------------------------------- */

/* Defines a predicate of tf32 or bfloat16 items; tf_byte_predicate has the others. It is
 * the sign of `expression`, since a comparison's mask would take more steps to become
 * bytes. */
#define PREDICATE_OF(name, type, used, infinity, expression)                   \
    static void name(const void *items, uint8_t *r, size_t n)                  \
    {                                                                          \
        const type *in = items, inf = (infinity);                              \
        for (size_t i = 0; i < n; i++) {                                       \
            const type item = in[i] & (used);                                  \
            const type magnitude = item & (type)((type)-1 >> 1);               \
            (void)inf, (void)magnitude;                                        \
            r[i] = (uint8_t)((type)(expression) >> (8 * sizeof(type) - 1));    \
        }                                                                      \
    }
#define PREDICATE(name, expression)                                            \
    PREDICATE_OF(name##_words, uint32_t, UINT32_C(0xFFFFE000),                 \
                 TF_INF_BITS, expression)                                      \
    PREDICATE_OF(name##_bf16, uint16_t, 0xFFFF, TF_BF16_INF_BITS, expression)
PREDICATE(is_nan, inf - magnitude)
PREDICATE(is_inf, (magnitude ^ inf) - 1)
PREDICATE(is_finite, magnitude - inf)
PREDICATE(sign_bit, item)
PREDICATE(logical_not, magnitude - 1)

tf_predicate_fn *const TF_NAME(tf_predicate)[TF_PREDICATE_COUNT][2] = {
    [TF_ISNAN] = {is_nan_words, is_nan_bf16},
    [TF_ISINF] = {is_inf_words, is_inf_bf16},
    [TF_ISFINITE] = {is_finite_words, is_finite_bf16},
    [TF_SIGNBIT] = {sign_bit_words, sign_bit_bf16},
    [TF_LOGICAL_NOT] = {logical_not_words, logical_not_bf16},
};

/* -- NaN ---------------------------------------------------------------------------- */

int TF_NAME(tf_canonical_nans)(float *x, size_t n)
{
    const uint32_t infinity = TF_INF_BITS;
    uint32_t greatest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = tf_bits_of(x[i]);
        const uint32_t magnitude = bits & INT32_MAX;
        greatest = magnitude > greatest ? magnitude : greatest;
        x[i] = tf_float_of(magnitude > infinity ? TF_QUIET_NAN_BITS : bits);
    }
    return greatest >= infinity;
}

/* -- bounds ------------------------------------------------------------------------- */

/* Without the sign, bits in tf_total_order() have the order of integers. With the sign,
 * they have the opposite order, and are the largest as unsigned integers. So three bounds
 * of integers suffice, which takes half the time of computing the order of each number. */
static void all_bounds(const float *in, size_t n, int32_t *least, int32_t *greatest)
{
    uint32_t low = UINT32_MAX, high = 0;
    int32_t high_signed = INT32_MIN;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = tf_bits_of(in[i]);
        low = bits < low ? bits : low;
        high = bits > high ? bits : high;
        high_signed = (int32_t)bits > high_signed ? (int32_t)bits : high_signed;
    }
    *least = tf_total_order((int32_t)high < 0 ? high : low);
    *greatest = tf_total_order(high_signed < 0 ? low : (uint32_t)high_signed);
}

/* Finds the bounds of numbers other than NaN. NaN is at both ends of tf_total_order(),
 * `nans` integers each. Shifted by `nans`, one end's NaN wrap to the other end, away from
 * the bound. */
static void bounds_without_nans(const float *in, size_t n, uint32_t nans, int32_t *least,
                                int32_t *greatest)
{
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (size_t i = 0; i < n; i++) {
        const uint32_t order = (uint32_t)tf_total_order(tf_bits_of(in[i]));
        const int32_t down = (int32_t)(order - nans), up = (int32_t)(order + nans);
        low = down < low ? down : low;
        high = up > high ? up : high;
    }
    *least = (int32_t)((uint32_t)low + nans);
    *greatest = (int32_t)((uint32_t)high - nans);
}

void TF_NAME(tf_bounds)(const float *in, size_t n, int32_t last, int32_t *least,
                        int32_t *greatest)
{
    all_bounds(in, n, least, greatest);
    if (*greatest > last || *least < ~last) {
        bounds_without_nans(in, n, (uint32_t)(INT32_MAX - last), least, greatest);
    }
}

/* -- ranks -------------------------------------------------------------------------- */

void TF_NAME(tf_rank_bytes)(struct tf_byte_order order, const uint8_t *items,
                            uint8_t *restrict ranks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ranks[i] = tf_rank_of_byte(order, items[i]);
    }
}

void TF_NAME(tf_bytes_of_ranks)(struct tf_byte_order order, const uint8_t *ranks,
                                uint8_t *restrict items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        items[i] = tf_byte_of_rank(order, ranks[i]);
    }
}

/* Predicates of items of a byte. All but the sign are one of three ranks, or none of them.
 * A format without a sign, float8_e8m0fnu, has no zero. */
void TF_NAME(tf_byte_predicate)(enum tf_predicate_op op, struct tf_byte_order order,
                                const uint8_t *items, uint8_t *restrict r, size_t n)
{
    if (op == TF_SIGNBIT) {
        for (size_t i = 0; i < n; i++) {
            const uint8_t is_nan = (items[i] == order.sign) & order.sign_is_nan;
            r[i] = ((items[i] & order.sign) != 0) & (is_nan ^ 1);
        }
        return;
    }
    const int has_infinity = order.first_special < order.first_nan;
    const int is_zero = op == TF_LOGICAL_NOT, is_finite = op == TF_ISFINITE;
    if ((op == TF_ISINF && !has_infinity) || (is_zero && !order.sign)) {
        memset(r, 0, n);
        return;
    }
    const uint8_t infinity = (uint8_t)(order.zero + order.first_special);
    uint8_t ranks[3] = {TF_RANK_OF_NAN, TF_RANK_OF_NAN, TF_RANK_OF_NAN};
    if (is_zero) {
        ranks[0] = ranks[1] = order.zero;
        ranks[2] = order.sign_is_nan ? order.zero : order.negative_zero;
    } else if (has_infinity && op != TF_ISNAN) {
        ranks[0] = 0; /* of -Inf */
        ranks[1] = infinity;
        ranks[2] = is_finite ? TF_RANK_OF_NAN : infinity;
    }
    const uint8_t first = ranks[0], second = ranks[1], third = ranks[2];
    TF_NAME(tf_rank_bytes)(order, items, r, n);
    for (size_t i = 0; i < n; i++) {
        r[i] = ((r[i] == first) | (r[i] == second) | (r[i] == third)) ^ (uint8_t)is_finite;
    }
}

/* -- bytes -------------------------------------------------------------------------- */

#if defined(__aarch64__)
/* Looks up vectors of bytes, stores the results if `out` is given, and returns the or of all
 * results. An index out of a quarter's range keeps what another quarter gave. The quarters
 * are variables, as gcc keeps no struct of them in registers. */
TF_INLINE unsigned look_up_vectors(const uint8_t table[256], const uint8_t *in, uint8_t *out,
                                   size_t n)
{
    const uint8x16x4_t first = vld1q_u8_x4(table), second = vld1q_u8_x4(table + 64);
    const uint8x16x4_t third = vld1q_u8_x4(table + 128), last = vld1q_u8_x4(table + 192);
    uint8x16_t any = vdupq_n_u8(0);
    for (size_t i = 0; i + 16 <= n; i += 16) {
        const uint8x16_t index = vld1q_u8(in + i);
        uint8x16_t found = vqtbl4q_u8(first, index);
        found = vqtbx4q_u8(found, second, index - 64);
        found = vqtbx4q_u8(found, third, index - 128);
        found = vqtbx4q_u8(found, last, index - 192);
        any |= found;
        if (out) {
            vst1q_u8(out + i, found);
        }
    }
    const uint64x2_t halves = vreinterpretq_u64_u8(any);
    uint64_t each = halves[0] | halves[1];
    each |= each >> 32;
    each |= each >> 16;
    return (unsigned)(each | each >> 8) & UINT8_MAX;
}
#endif

void TF_NAME(tf_lookup)(const uint8_t table[256], const uint8_t *in, uint8_t *out,
                        size_t n)
{
    size_t i = 0;
#if defined(__AVX512VBMI__)
    const struct tf_byte_registers loaded = tf_load_bytes(table);
    for (; i + 64 <= n; i += 64) {
        const __m512i index = _mm512_loadu_si512(in + i);
        _mm512_storeu_si512(out + i, tf_permute_bytes(loaded, index));
    }
#elif defined(__AVX2__)
    for (; i + 32 <= n; i += 32) {
        const __m256i index = _mm256_loadu_si256((const __m256i *)(in + i));
        _mm256_storeu_si256((__m256i *)(out + i), tf_shuffle_bytes(table, index));
    }
#elif defined(__aarch64__)
    look_up_vectors(table, in, out, n);
    i = n & ~(size_t)15;
#endif
    for (; i < n; i++) {
        out[i] = table[in[i]];
    }
}

#if !defined(__AVX512VBMI__) && defined(__AVX2__)
/* Returns whether some of 32-byte vectors of bytes have a `wanted` bit in a table. Bits 0 to
 * 3 of a byte choose one of 16 sets of rows; bits 4 to 6 are its row, and bit 7 its half of
 * the table. */
static int any_has(const uint8_t table[256], unsigned wanted, const uint8_t *in, size_t n)
{
    const __m128i mask = _mm_set1_epi8((char)wanted), none = _mm_setzero_si128();
    __m128i sets[2] = {_mm_set1_epi8(-1), _mm_set1_epi8(-1)};
    for (int row = 0; row < 16; row++) {
        const __m128i entries = _mm_loadu_si128((const __m128i *)(table + 16 * row));
        const __m128i lacks = _mm_cmpeq_epi8(_mm_and_si128(entries, mask), none);
        const __m128i bit = _mm_set1_epi8((char)(1 << (row & 7)));
        sets[row >> 3] = _mm_andnot_si128(_mm_and_si128(lacks, bit), sets[row >> 3]);
    }
    const __m256i first = _mm256_broadcastsi128_si256(sets[0]);
    const __m256i second = _mm256_broadcastsi128_si256(sets[1]);
    const __m256i bits = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i half = _mm256_set1_epi8(INT8_MIN), rows = _mm256_set1_epi8(7);
    __m256i found = _mm256_setzero_si256();
    for (size_t i = 0; i + 32 <= n; i += 32) {
        const __m256i index = _mm256_loadu_si256((const __m256i *)(in + i));
        const __m256i set =
            _mm256_or_si256(_mm256_shuffle_epi8(first, index),
                            _mm256_shuffle_epi8(second, _mm256_xor_si256(index, half)));
        const __m256i row = _mm256_and_si256(_mm256_srli_epi16(index, 4), rows);
        const __m256i bit = _mm256_shuffle_epi8(bits, row);
        found = _mm256_or_si256(found, _mm256_and_si256(set, bit));
    }
    return !_mm256_testz_si256(found, found);
}
#endif

unsigned TF_NAME(tf_lookup_any)(const uint8_t table[256], unsigned wanted,
                                const uint8_t *in, size_t n)
{
    unsigned any = 0;
    size_t i = 0;
#if defined(__AVX512VBMI__)
    const struct tf_byte_registers loaded = tf_load_bytes(table);
    __m512i found = _mm512_setzero_si512();
    for (; i + 64 <= n; i += 64) {
        const __m512i index = _mm512_loadu_si512(in + i);
        found = _mm512_or_si512(found, tf_permute_bytes(loaded, index));
    }
    any = (unsigned)_mm512_reduce_or_epi32(found);
    any |= any >> 16;
    any |= any >> 8;
#elif defined(__AVX2__)
    i = any_has(table, wanted, in, n) ? 0 : n & ~(size_t)31;
#elif defined(__aarch64__)
    any = look_up_vectors(table, in, NULL, n);
    i = n & ~(size_t)15;
#endif
    for (; i < n; i++) {
        any |= table[in[i]];
    }
    return any & wanted;
}

#if defined(__AVX512VBMI__)
void TF_NAME(tf_bf16_of_bytes)(const struct tf_byte_table *table, const uint8_t *in,
                               uint16_t *out, size_t n)
{
    size_t i = 0;
    /* Interleaving works within lanes of 16 bytes. Each lane takes eight bytes from
     * either half, so that the elements come out in order. */
    const __m512i halves = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const struct tf_byte_registers highs = tf_load_bytes(table->high);
    const struct tf_byte_registers lows = tf_load_bytes(table->low);
    for (; i + 64 <= n; i += 64) {
        const __m512i index =
            _mm512_permutexvar_epi64(halves, _mm512_loadu_si512(in + i));
        const struct tf_looked_up found = tf_look_up_uint16(highs, lows, index);
        _mm512_storeu_si512(out + i, found.lower);
        _mm512_storeu_si512(out + i + 32, found.upper);
    }
    for (; i < n; i++) {
        out[i] = (uint16_t)(table->bits[in[i]] >> 16);
    }
}
#endif
