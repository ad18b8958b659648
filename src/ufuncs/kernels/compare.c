/* Comparisons, the larger or the smaller of two, and signs, on items as they are in memory.
 *
 * Items of two bytes are ordered as integers, items of a byte by their ranks. NaN is at
 * one end of the order: above all numbers if it is to be the maximum or must not be the
 * minimum, else below them. */
#include "formats/byte_tables.h"
#include "runtime/kernels/intrinsics.h"
#include "ufuncs/kernels/decls.h"

/* A tf_items_fn for one operation. */
#define LOOP(name)                                                             \
    static void name(int op, const struct tf_byte_table *table,                \
                     const void *restrict a, const void *restrict b,           \
                     void *restrict out, size_t n)

/* -- the larger or the smaller ---------------------------------------------------- */

TF_INLINE int is_greater(enum tf_binary_op op)
{
    return op == TF_MAXIMUM || op == TF_FMAX;
}

TF_INLINE int has_nan_on_top(enum tf_binary_op op)
{
    return op == TF_MAXIMUM || op == TF_FMIN;
}

/* Compares floats: NaN fails comparisons, and zeros of both signs are equal. */
TF_INLINE void extreme_of_words(enum tf_binary_op op, const uint32_t *restrict a,
                                const uint32_t *restrict b, uint32_t *restrict out,
                                size_t n)
{
    const uint32_t used = UINT32_C(0xFFFFE000), quiet = TF_QUIET_NAN_BITS;
    const int keeps_nan = op == TF_MAXIMUM || op == TF_MINIMUM;
    for (size_t i = 0; i < n; i++) {
        const uint32_t p = a[i] & used, q = b[i] & used;
        const float x = tf_float_of(p), y = tf_float_of(q);
        const uint32_t equal = is_greater(op) ? p & q : p | q;
        const uint32_t second = (is_greater(op) ? x < y : x > y) ? q : equal;
        const uint32_t number = (is_greater(op) ? x > y : x < y) ? p : second;
        const uint32_t if_y = y != y ? quiet : q, if_x = x != x ? quiet : p;
        out[i] = x != x   ? keeps_nan ? quiet : if_y
                 : y != y ? keeps_nan ? quiet : if_x
                          : number;
    }
}

TF_INLINE void extreme_of_bf16(enum tf_binary_op op, const uint16_t *restrict a,
                               const uint16_t *restrict b, uint16_t *restrict out,
                               size_t n)
{
    const int16_t inf = TF_BF16_INF_BITS, quiet = TF_BF16_QUIET_NAN_BITS;
    const int16_t nan = has_nan_on_top(op) ? quiet : (int16_t)(quiet | INT16_MIN);
    for (size_t i = 0; i < n; i++) {
        const int16_t p = (int16_t)a[i], q = (int16_t)b[i];
        const int16_t x = tf_bf16_order((int16_t)(p & INT16_MAX) > inf ? nan : p);
        const int16_t y = tf_bf16_order((int16_t)(q & INT16_MAX) > inf ? nan : q);
        const int16_t chosen = is_greater(op) ? (x > y ? x : y) : (x < y ? x : y);
        const int16_t result = tf_bf16_order(chosen);
        out[i] = (uint16_t)(result == nan ? quiet : result);
    }
}

/* Compares ranks. The rank of NaN is the last one; adding 1 makes it the first one. A minimum
 * is the maximum of the complements. One loop serves all four operations. */
LOOP(extreme_bytes)
{
    uint8_t p[TF_CHUNK], q[TF_CHUNK];
    const uint8_t up = has_nan_on_top(op) ? 0 : 1, flip = is_greater(op) ? 0 : 0xFF;
    TF_NAME(tf_rank_bytes)(table->order, a, p, n);
    TF_NAME(tf_rank_bytes)(table->order, b, q, n);
    for (size_t i = 0; i < n; i++) {
        const uint8_t x = (uint8_t)(p[i] + up) ^ flip, y = (uint8_t)(q[i] + up) ^ flip;
        p[i] = (uint8_t)(((x > y ? x : y) ^ flip) - up);
    }
    TF_NAME(tf_bytes_of_ranks)(table->order, p, out, n);
}

#define EXTREME(name, its_op)                                                  \
    LOOP(name##_words)                                                         \
    {                                                                          \
        (void)op, (void)table;                                                 \
        extreme_of_words(its_op, a, b, out, n);                                \
    }                                                                          \
    LOOP(name##_bf16)                                                          \
    {                                                                          \
        (void)op, (void)table;                                                 \
        extreme_of_bf16(its_op, a, b, out, n);                                 \
    }
EXTREME(maximum, TF_MAXIMUM)
EXTREME(minimum, TF_MINIMUM)
EXTREME(fmax, TF_FMAX)
EXTREME(fmin, TF_FMIN)

const struct tf_by_size TF_NAME(tf_extreme)[TF_BINARY_COUNT] = {
    [TF_MAXIMUM] = {maximum_words, maximum_bf16, extreme_bytes},
    [TF_MINIMUM] = {minimum_words, minimum_bf16, extreme_bytes},
    [TF_FMAX] = {fmax_words, fmax_bf16, extreme_bytes},
    [TF_FMIN] = {fmin_words, fmin_bf16, extreme_bytes},
};

/* -- clip -------------------------------------------------------------------------- */

/* Writes minimum(maximum(x, low), high). A NaN among the three is the result. */
#define CLIP(size, item_type)                                                  \
    static void clip_##size(const struct tf_byte_table *table,                 \
                            const void *restrict items, const void *restrict lower, \
                            const void *restrict upper, void *restrict out, size_t n) \
    {                                                                          \
        const item_type *x = items, *low = lower, *high = upper;               \
        item_type *results = out;                                              \
        (void)table;                                                           \
        for (size_t i = 0; i < n; i++) {                                       \
            results[i] = clipped_##size(x[i], low[i], high[i]);                \
        }                                                                      \
    }
#define LARGER(x, y) ((x) > (y) ? (x) : (y))
#define SMALLER(x, y) ((x) < (y) ? (x) : (y))

TF_INLINE uint32_t clipped_words(uint32_t x, uint32_t low, uint32_t high)
{
    const uint32_t used = UINT32_C(0xFFFFE000);
    const int32_t p = (int32_t)(x & TF_MAGNITUDE_BITS & used);
    const int32_t q = (int32_t)(low & TF_MAGNITUDE_BITS & used);
    const int32_t r = (int32_t)(high & TF_MAGNITUDE_BITS & used);
    const int32_t a = tf_total_order(x & used), b = tf_total_order(low & used);
    const int32_t most = tf_total_order(high & used), raised = LARGER(a, b);
    const int32_t clipped = SMALLER(raised, most), larger = LARGER(p, q);
    const uint32_t number = (uint32_t)tf_total_order((uint32_t)clipped);
    return LARGER(larger, r) > (int32_t)TF_INF_BITS ? TF_QUIET_NAN_BITS : number;
}

TF_INLINE uint16_t clipped_bf16(uint16_t x, uint16_t low, uint16_t high)
{
    const int16_t p = x & INT16_MAX, q = low & INT16_MAX, r = high & INT16_MAX;
    const int16_t a = tf_bf16_order((int16_t)x), b = tf_bf16_order((int16_t)low);
    const int16_t most = tf_bf16_order((int16_t)high), raised = LARGER(a, b);
    const int16_t clipped = SMALLER(raised, most), larger = LARGER(p, q);
    const int16_t largest = LARGER(larger, r), inf = TF_BF16_INF_BITS;
    const int16_t number = tf_bf16_order(clipped), nan = TF_BF16_QUIET_NAN_BITS;
    return (uint16_t)(largest > inf ? nan : number);
}

CLIP(words, uint32_t)
CLIP(bf16, uint16_t)

static void clip_bytes(const struct tf_byte_table *table, const void *restrict items,
                       const void *restrict lower, const void *restrict upper,
                       void *restrict out, size_t n)
{
    uint8_t x[TF_CHUNK], low[TF_CHUNK], high[TF_CHUNK];
    TF_NAME(tf_rank_bytes)(table->order, items, x, n);
    TF_NAME(tf_rank_bytes)(table->order, lower, low, n);
    TF_NAME(tf_rank_bytes)(table->order, upper, high, n);
    for (size_t i = 0; i < n; i++) {
        const uint8_t raised = LARGER(x[i], low[i]), largest = LARGER(raised, high[i]);
        const uint8_t clipped = SMALLER(raised, high[i]), nan = TF_RANK_OF_NAN;
        x[i] = largest == nan ? nan : clipped;
    }
    TF_NAME(tf_bytes_of_ranks)(table->order, x, out, n);
}

const struct tf_clip_by_size TF_NAME(tf_clip_items) = {clip_words, clip_bf16, clip_bytes};

/* -- comparisons ------------------------------------------------------------------ */

/* Compares vectors of 16 numbers to 16 bools, as compilers take a detour from the mask of a
 * comparison. Declares i, the number of comparisons done, of n. */
#if defined(__AVX512BW__)
#define COMPARE_VECTORS(load, a, b, out, n, predicate)                         \
    size_t i = 0;                                                              \
    for (; i + 16 <= (n); i += 16) {                                           \
        const __mmask16 holds =                                                \
            _mm512_cmp_ps_mask(load((a) + i), load((b) + i), predicate);       \
        _mm_storeu_si128((__m128i *)((out) + i), _mm_maskz_set1_epi8(holds, 1)); \
    }

TF_INLINE __m512 load_words(const uint32_t *items)
{
    const __m512i used = _mm512_set1_epi32((int)UINT32_C(0xFFFFE000));
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(items), used));
}

TF_INLINE __m512 load_bf16(const uint16_t *items)
{
    const __m256i bf16 = _mm256_loadu_si256((const __m256i *)items);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
}
#else
#define COMPARE_VECTORS(load, a, b, out, n, predicate) size_t i = 0;
#endif

/* Zeros of both signs have the same order. The last order is NaN's. */
#define COMPARE(name, expression, of_nan, predicate)                           \
    LOOP(name##_words)                                                         \
    {                                                                          \
        (void)op, (void)table;                                                 \
        const uint32_t *first = a, *second = b;                                \
        uint8_t *results = out;                                                \
        COMPARE_VECTORS(load_words, first, second, results, n, predicate)      \
        for (; i < n; i++) {                                                   \
            const float x = tf_float_of(first[i] & UINT32_C(0xFFFFE000));      \
            const float y = tf_float_of(second[i] & UINT32_C(0xFFFFE000));     \
            results[i] = (expression);                                         \
        }                                                                      \
    }                                                                          \
    LOOP(name##_bf16)                                                          \
    {                                                                          \
        (void)op, (void)table;                                                 \
        const uint16_t *first = a, *second = b;                                \
        uint8_t *results = out;                                                \
        COMPARE_VECTORS(load_bf16, first, second, results, n, predicate)       \
        for (; i < n; i++) {                                                   \
            const float x = tf_float_of((uint32_t)first[i] << 16);             \
            const float y = tf_float_of((uint32_t)second[i] << 16);            \
            results[i] = (expression);                                         \
        }                                                                      \
    }                                                                          \
    LOOP(name##_bytes)                                                         \
    {                                                                          \
        (void)op;                                                              \
        const struct tf_byte_order order = tf_order_with_one_zero(table->order); \
        uint8_t first[TF_CHUNK], second[TF_CHUNK], *results = out;             \
        TF_NAME(tf_rank_bytes)(order, a, first, n);                            \
        TF_NAME(tf_rank_bytes)(order, b, second, n);                           \
        for (size_t i = 0; i < n; i++) {                                       \
            const uint8_t x = first[i], y = second[i];                         \
            const uint8_t is_nan = (x == TF_RANK_OF_NAN) | (y == TF_RANK_OF_NAN); \
            results[i] = is_nan ? (of_nan) : (expression);                     \
        }                                                                      \
    }
COMPARE(equal, x == y, 0, _CMP_EQ_OQ)
COMPARE(not_equal, x != y, 1, _CMP_NEQ_UQ)
COMPARE(less, x < y, 0, _CMP_LT_OQ)
COMPARE(less_equal, x <= y, 0, _CMP_LE_OQ)

const struct tf_by_size TF_NAME(tf_compare_items)[TF_COMPARE_KERNELS] = {
    [TF_EQUAL] = {equal_words, equal_bf16, equal_bytes},
    [TF_NOT_EQUAL] = {not_equal_words, not_equal_bf16, not_equal_bytes},
    [TF_LESS] = {less_words, less_bf16, less_bytes},
    [TF_LESS_EQUAL] = {less_equal_words, less_equal_bf16, less_equal_bytes},
};

/* -- signs ------------------------------------------------------------------------ */

/* A result has the `kept` bits of the first operand, some of them `flipped`, and the `taken`
 * bits of the second one. */
struct masks {
    uint32_t kept, flipped, taken;
};

TF_INLINE struct masks masks_of(enum tf_sign_op op, uint32_t magnitude, uint32_t sign)
{
    const int keeps_sign = op == TF_POSITIVE || op == TF_NEGATIVE;
    return (struct masks){magnitude | (keeps_sign ? sign : 0), op == TF_NEGATIVE ? sign : 0,
                          op == TF_COPYSIGN ? sign : 0};
}

/* One loop for all operations: more loops would be larger and no faster. */
#define SIGN_LOOP(size, type, magnitude, sign)                                 \
    LOOP(sign_##size)                                                          \
    {                                                                          \
        (void)table;                                                           \
        const type *first = a, *second = b;                                    \
        type *results = out;                                                   \
        const struct masks masks = masks_of((enum tf_sign_op)op, magnitude, sign); \
        const type kept = (type)masks.kept, flipped = (type)masks.flipped;     \
        const type taken = (type)masks.taken;                                  \
        for (size_t i = 0; i < n; i++) {                                       \
            results[i] = (type)(((first[i] & kept) ^ flipped) | (second[i] & taken)); \
        }                                                                      \
    }
SIGN_LOOP(words, uint32_t, UINT32_C(0x7FFFE000), TF_SIGN_BIT)
SIGN_LOOP(bf16, uint16_t, TF_BF16_MAGNITUDE_BITS, TF_BF16_SIGN_BIT)

/* If the code of -0 is NaN, that NaN gives no sign, and neither it nor zero takes a sign. */
LOOP(sign_bytes)
{
    const struct tf_byte_order order = table->order;
    const uint8_t *first = a, *second = b;
    uint8_t *results = out;
    const struct masks masks =
        masks_of((enum tf_sign_op)op, order.magnitude, order.sign);
    const uint8_t kept = (uint8_t)masks.kept, flipped = (uint8_t)masks.flipped;
    const uint8_t taken = (uint8_t)masks.taken, is_nan = order.sign_is_nan;
    for (size_t i = 0; i < n; i++) {
        const uint8_t x = first[i], y = second[i];
        const uint8_t stays = x & order.magnitude ? 0 : is_nan;
        const uint8_t giver = y & ~(y == order.sign ? is_nan : 0);
        const uint8_t changed = ((x & kept) ^ flipped) | (giver & taken);
        results[i] = (uint8_t)((x & stays) | (changed & ~stays));
    }
}

const struct tf_by_size TF_NAME(tf_sign) = {sign_words, sign_bf16, sign_bytes};
