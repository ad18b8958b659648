/* Sums, differences, products and quotients: the operation and its rounding in one pass,
 * and further passes over chunks whose results may raise something.
 *
 * float32 is wide enough if its 24 bits are at least 2 p + 2 for two significands of p bits
 * (Figueroa, "When is double rounding innocuous?", 1995): p is 11 for tf32, 8 for bfloat16,
 * less for a byte. Below float32's normal range, where results of a byte never are, sums
 * are exact. Products and quotients are computed again there, multiplied by 2^128. */
#include <math.h>
#include <string.h>

#include "formats/fast_codec.h"
#include "ufuncs/common_ops.h"
#include "ufuncs/kernels/decls.h"
#include "ufuncs/kernels/tiny_results.h"

/* -- results that raise something --------------------------------------------------- */

/* A result raises invalid if it is NaN and no operand is. With NaN replaced by INF + 2, it is
 * then at least 2 above all of the operands and INF - 1. An Inf from finite operands is 1
 * above them. Whether that is a pole is asked only if there is one. */
unsigned TF_PLAIN_NAME(tf_finish_words)(const uint32_t *restrict a, const uint32_t *restrict b,
                                  uint32_t *restrict out, size_t n)
{
    const int32_t used = 0x7FFFE000, inf = TF_INF_BITS, nan = inf + 2;
    int32_t greatest = 0;
    uint32_t nearest = UINT32_MAX; /* 0 if some excess is 1 */
    for (size_t i = 0; i < n; i++) {
        const int32_t p = (int32_t)a[i] & used, q = (int32_t)b[i] & used;
        const int32_t m = (int32_t)(out[i] & TF_MAGNITUDE_BITS);
        const int32_t greater = p > q ? p : q, least = greater > inf - 1 ? greater : inf - 1;
        const int32_t excess = (m < nan ? m : nan) - least;
        const uint32_t from_one = (uint32_t)excess ^ 1;
        greatest = excess > greatest ? excess : greatest;
        nearest = from_one < nearest ? from_one : nearest;
        out[i] = m > inf ? TF_QUIET_NAN_BITS : out[i];
    }
    uint32_t over = 0, pole = 0;
    for (size_t i = 0; i < n && nearest == 0; i++) {
        const int32_t p = (int32_t)a[i] & used, q = (int32_t)b[i] & used;
        const int32_t m = (int32_t)(out[i] & TF_MAGNITUDE_BITS);
        const uint32_t is_new = (m == inf) & ((p > q ? p : q) < inf);
        over |= is_new & (q != 0);
        pole |= is_new & (q == 0);
    }
    return (greatest > 1 ? TF_INVALID : 0) | (over ? TF_OVER : 0) | (pole ? TF_DIVIDE : 0);
}

unsigned TF_PLAIN_NAME(tf_finish_bf16)(const uint16_t *restrict a, const uint16_t *restrict b,
                                 uint16_t *restrict out, size_t n)
{
    const int16_t used = TF_BF16_MAGNITUDE_BITS, inf = TF_BF16_INF_BITS;
    const int16_t nan = inf + 2, largest = inf - 1;
    const uint16_t quiet = TF_BF16_QUIET_NAN_BITS;
    int16_t greatest = 0;
    uint16_t nearest = UINT16_MAX;
    for (size_t i = 0; i < n; i++) {
        const int16_t p = (int16_t)a[i] & used, q = (int16_t)b[i] & used;
        const int16_t m = (int16_t)out[i] & used;
        const int16_t greater = p > q ? p : q, least = greater > largest ? greater : largest;
        const int16_t excess = (int16_t)((m < nan ? m : nan) - least);
        const uint16_t from_one = (uint16_t)excess ^ 1;
        greatest = excess > greatest ? excess : greatest;
        nearest = from_one < nearest ? from_one : nearest;
        out[i] = m > inf ? quiet : out[i];
    }
    uint16_t over = 0, pole = 0;
    for (size_t i = 0; i < n && nearest == 0; i++) {
        const int16_t p = (int16_t)a[i] & used, q = (int16_t)b[i] & used;
        const int16_t m = (int16_t)out[i] & used;
        const uint16_t is_new = (m == inf) & ((p > q ? p : q) < inf);
        over |= is_new & (q != 0);
        pole |= is_new & (q == 0);
    }
    return (greatest > 1 ? TF_INVALID : 0) | (over ? TF_OVER : 0) | (pole ? TF_DIVIDE : 0);
}

/* -- items that are the upper bits of float32 ------------------------------------- */

/* A summary of a chunk of results: some may have lost digits below the normal range. */
struct seen {
    uint32_t greatest, tiny;
};

/* Returns one item's float32 bits from two others', whose lower `cut` bits do not count. */
TF_INLINE uint32_t upper(enum tf_binary_op op, int cut, uint32_t a, uint32_t b,
                         struct seen *seen)
{
    const uint32_t below = (UINT32_C(1) << cut) - 1;
    const float x = tf_float_of(a & ~below), y = tf_float_of(b & ~below);
    const uint32_t bits = tf_bits_of(tf_common_result(op, x, y));
    const uint32_t magnitude = bits & TF_MAGNITUDE_BITS;
    seen->greatest = magnitude > seen->greatest ? magnitude : seen->greatest;
    const uint32_t is_exact = /* gives 0 */
        op == TF_TRUE_DIVIDE && tf_bits_of(y) << 1 == TF_INF_BITS << 1;
    seen->tiny |=
        (uint32_t)(tf_may_underflow(op) && magnitude < TF_LEAST_NORMAL_BITS) & (x != 0) &
        (y != 0) & !is_exact;
    return (bits + (below >> 1) + (bits >> cut & 1)) & ~below;
}

/* Items are processed as halves of a word, which avoids instructions that reorder them. */
TF_INLINE unsigned fuse_bf16(enum tf_binary_op op, const uint16_t *restrict a,
                             const uint16_t *restrict b, uint16_t *restrict out, size_t n)
{
    struct seen seen = {0, 0};
    unsigned flags = 0;
    for (size_t i = 0; i < n / 2; i++) {
        uint32_t x, y;
        memcpy(&x, a + 2 * i, sizeof x);
        memcpy(&y, b + 2 * i, sizeof y);
        const uint32_t first = upper(op, 16, x << 16, y << 16, &seen);
        const uint32_t both = first >> 16 | upper(op, 16, x, y, &seen);
        memcpy(out + 2 * i, &both, sizeof both);
    }
    for (size_t i = n & ~(size_t)1; i < n; i++) {
        const uint32_t x = (uint32_t)a[i] << 16, y = (uint32_t)b[i] << 16;
        out[i] = (uint16_t)(upper(op, 16, x, y, &seen) >> 16);
    }
    if (seen.tiny) {
        uint32_t under = 0;
        for (size_t i = 0; i < n; i++) {
            const float x = tf_float_of((uint32_t)a[i] << 16);
            const float y = tf_float_of((uint32_t)b[i] << 16);
            const uint32_t bits = (uint32_t)out[i] << 16;
            out[i] = (uint16_t)(tf_round_tiny(tf_bfloat16, op, x, y, bits, &under) >> 16);
        }
        flags |= under ? TF_UNDER : 0;
    }
    if (seen.greatest >= tf_beyond(tf_bfloat16)) {
        flags |= TF_PLAIN_NAME(tf_finish_bf16)(a, b, out, n);
    }
    return flags;
}

TF_INLINE unsigned fuse_words(enum tf_binary_op op, const uint32_t *restrict a,
                              const uint32_t *restrict b, uint32_t *restrict out, size_t n)
{
    const uint32_t used = UINT32_C(0xFFFFE000);
    struct seen seen = {0, 0};
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = upper(op, 13, a[i], b[i], &seen);
    }
    if (seen.tiny) {
        uint32_t under = 0;
        for (size_t i = 0; i < n; i++) {
            const float x = tf_float_of(a[i] & used), y = tf_float_of(b[i] & used);
            out[i] = tf_round_tiny(tf_tf32, op, x, y, out[i], &under);
        }
        flags |= under ? TF_UNDER : 0;
    }
    if (seen.greatest >= tf_beyond(tf_tf32)) {
        flags |= TF_PLAIN_NAME(tf_finish_words)(a, b, out, n);
    }
    return flags;
}

/* -- items of a byte, from their numbers ------------------------------------------ */

/* Numbers of e8m0 are not zero or Inf: a zero result has vanished, or is a difference. */
TF_INLINE unsigned fuse_powers(enum tf_binary_op op, const float *restrict a,
                               const float *restrict b, uint8_t *restrict out, size_t n)
{
    uint32_t under = 0, invalid = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t exact = tf_bits_of(tf_common_result(op, a[i], b[i]));
        const uint32_t bits = tf_may_underflow(op) && exact == 0 ? 1 : exact;
        under |= bits - 1 < tf_least_normal(tf_float8_e8m0fnu) - 1;
        out[i] = (uint8_t)tf_encode_power(bits);
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t p = tf_bits_of(a[i]), q = tf_bits_of(b[i]); /* without sign */
        const uint32_t nan = out[i] == 0xFF;
        invalid |= nan && (p > q ? p : q) < TF_INF_BITS;
    }
    return (under ? TF_UNDER : 0) | (invalid ? TF_INVALID : 0);
}

/* -- one instance per operation --------------------------------------------------- */

#define FUSED(name, op)                                                        \
    static unsigned name##_words(const void *restrict a, const void *restrict b, \
                                 void *restrict out, size_t n)                 \
    {                                                                          \
        return fuse_words(op, a, b, out, n);                                   \
    }                                                                          \
    static unsigned name##_bf16(const void *restrict a, const void *restrict b, \
                                void *restrict out, size_t n)                  \
    {                                                                          \
        return fuse_bf16(op, a, b, out, n);                                    \
    }                                                                          \
    static unsigned name##_powers(const float *restrict a,                     \
                                  const float *restrict b,                     \
                                  uint8_t *restrict out, size_t n)             \
    {                                                                          \
        return fuse_powers(op, a, b, out, n);                                  \
    }
FUSED(add, TF_ADD)
FUSED(subtract, TF_SUBTRACT)
FUSED(multiply, TF_MULTIPLY)
FUSED(divide, TF_TRUE_DIVIDE)

const struct tf_fused TF_PLAIN_NAME(tf_fused)[TF_BINARY_COUNT] = {
    [TF_ADD] = {add_words, add_bf16, add_powers},
    [TF_SUBTRACT] = {subtract_words, subtract_bf16, subtract_powers},
    [TF_MULTIPLY] = {multiply_words, multiply_bf16, multiply_powers},
    [TF_TRUE_DIVIDE] = {divide_words, divide_bf16, divide_powers},
};
