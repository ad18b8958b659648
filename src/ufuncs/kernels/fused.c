/* Sums, differences, products and quotients: the operation, its rounding and its flags in
 * one pass.
 *
 * float32 is wide enough if its 24 bits are at least 2 p + 2 for two significands of p bits
 * (Figueroa, "When is double rounding innocuous?", 1995): p is 11 for tf32, 8 for bfloat16,
 * less for a byte. Below float32's normal range, where results of a byte never are, sums
 * are exact. Products of bfloat16 are exact there down to half its smallest number, and its
 * quotients are at least 2^-16 away from each rounding boundary that they do not equal. The
 * general path computes products and quotients of tf32 below the normal range. */
#include <math.h>

#include "formats/fast_codec.h"
#include "ufuncs/kernels/decls.h"
#include "ufuncs/common_ops.h"

#define LEAST_NORMAL UINT32_C(0x00800000)

/* -- items that are the upper bits of float32 ------------------------------------- */

/* A summary of a chunk of results: some may have lost digits below the normal range. */
struct seen {
    uint32_t greatest, tiny;
};

/* Returns one item's float32 bits from two others', whose lower `cut` bits do not count. */
TF_INLINE uint32_t upper(enum tf_binary_op op, int cut, uint32_t a, uint32_t b,
                         float *result, struct seen *seen)
{
    const uint32_t below = (UINT32_C(1) << cut) - 1;
    const float x = tf_float_of(a & ~below), y = tf_float_of(b & ~below);
    *result = tf_common_result(op, x, y);
    const uint32_t bits = tf_bits_of(*result);
    const uint32_t magnitude = bits & TF_MAGNITUDE_BITS;
    seen->greatest = magnitude > seen->greatest ? magnitude : seen->greatest;
    const uint32_t is_exact = op == TF_TRUE_DIVIDE && fabsf(y) == INFINITY; /* gives 0 */
    seen->tiny |= (uint32_t)(tf_may_underflow(op) && magnitude < LEAST_NORMAL) & (x != 0) &
                  (y != 0) & !is_exact;
    return (bits + (below >> 1) + (bits >> cut & 1)) & ~below;
}

/* Returns whether tiny results of bfloat16, exact in float32, are not bfloat16 numbers or
 * became zero, except for zero operands and division by Inf. */
static unsigned bf16_underflows(const float *r, const uint16_t *a, const uint16_t *b,
                                size_t n)
{
    uint32_t under = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = tf_bits_of(r[i]) & TF_MAGNITUDE_BITS;
        const uint32_t p = a[i] & TF_BF16_MAGNITUDE_BITS;
        const uint32_t q = b[i] & TF_BF16_MAGNITUDE_BITS;
        const uint32_t lost = magnitude == 0 && p != 0 && q - 1 < TF_BF16_INF_BITS - 1;
        under |= magnitude < LEAST_NORMAL ? (magnitude & 0xFFFF) | lost : 0;
    }
    return under ? TF_UNDER : 0;
}

TF_INLINE struct tf_outcome fuse_bf16(enum tf_binary_op op, const uint16_t *restrict a,
                                      const uint16_t *restrict b,
                                      uint16_t *restrict out, size_t n)
{
    const uint16_t inf = TF_BF16_INF_BITS, quiet = TF_BF16_QUIET_NAN_BITS;
    float r[TF_CHUNK];
    struct seen seen = {0, 0};
    for (size_t i = 0; i < n; i++) {
        const uint32_t x = (uint32_t)a[i] << 16, y = (uint32_t)b[i] << 16;
        out[i] = (uint16_t)(upper(op, 16, x, y, &r[i], &seen) >> 16);
    }
    struct tf_outcome outcome = {seen.greatest, 0, 0};
    if (seen.tiny) {
        outcome.flags |= bf16_underflows(r, a, b, n);
    }
    if (seen.greatest > TF_INF_BITS) {
        uint16_t invalid = 0;
        for (size_t i = 0; i < n; i++) {
            const uint16_t p = a[i] & TF_BF16_MAGNITUDE_BITS;
            const uint16_t q = b[i] & TF_BF16_MAGNITUDE_BITS;
            const uint16_t m = out[i] & TF_BF16_MAGNITUDE_BITS;
            const uint16_t greater = p > q ? p : q;
            invalid |= m > inf && greater <= inf;
            out[i] = m > inf ? quiet : out[i];
        }
        outcome.flags |= invalid ? TF_INVALID : 0;
        outcome.greatest = TF_INF_BITS; /* NaN hides Inf */
    }
    return outcome;
}

TF_INLINE struct tf_outcome fuse_words(enum tf_binary_op op, const uint32_t *restrict a,
                                       const uint32_t *restrict b,
                                       uint32_t *restrict out, size_t n)
{
    const uint32_t used = UINT32_C(0x7FFFE000);
    struct seen seen = {0, 0};
    for (size_t i = 0; i < n; i++) {
        float r;
        out[i] = upper(op, 13, a[i], b[i], &r, &seen);
    }
    struct tf_outcome outcome = {seen.greatest, 0, seen.tiny};
    if (seen.greatest > TF_INF_BITS) {
        uint32_t invalid = 0;
        for (size_t i = 0; i < n; i++) {
            const uint32_t p = a[i] & used, q = b[i] & used;
            const uint32_t m = out[i] & TF_MAGNITUDE_BITS;
            const uint32_t greater = p > q ? p : q;
            invalid |= m > TF_INF_BITS && greater <= TF_INF_BITS;
            out[i] = m > TF_INF_BITS ? TF_QUIET_NAN_BITS : out[i];
        }
        outcome.flags |= invalid ? TF_INVALID : 0;
        outcome.greatest = TF_INF_BITS; /* NaN hides Inf */
    }
    return outcome;
}

/* -- items of a byte, from their numbers ------------------------------------------ */

/* Numbers of e8m0 are not zero or Inf: a zero result has vanished, or is a difference. */
TF_INLINE struct tf_outcome fuse_powers(enum tf_binary_op op, const float *restrict a,
                                        const float *restrict b, uint8_t *restrict out,
                                        size_t n)
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
    const struct tf_outcome seen = {
        0, (under ? TF_UNDER : 0) | (invalid ? TF_INVALID : 0), 0};
    return seen;
}

/* -- one instance per operation --------------------------------------------------- */

#define FUSED(name, op)                                                        \
    static struct tf_outcome name##_words(const void *restrict a,              \
                                          const void *restrict b,              \
                                          void *restrict out, size_t n)        \
    {                                                                          \
        return fuse_words(op, a, b, out, n);                                   \
    }                                                                          \
    static struct tf_outcome name##_bf16(const void *restrict a,               \
                                         const void *restrict b,               \
                                         void *restrict out, size_t n)         \
    {                                                                          \
        return fuse_bf16(op, a, b, out, n);                                    \
    }                                                                          \
    static struct tf_outcome name##_powers(const float *restrict a,            \
                                           const float *restrict b,            \
                                           uint8_t *restrict out, size_t n)    \
    {                                                                          \
        return fuse_powers(op, a, b, out, n);                                  \
    }
FUSED(add, TF_ADD)
FUSED(subtract, TF_SUBTRACT)
FUSED(multiply, TF_MULTIPLY)
FUSED(divide, TF_TRUE_DIVIDE)

const struct tf_fused TF_NAME(tf_fused)[TF_BINARY_COUNT] = {
    [TF_ADD] = {add_words, add_bf16, add_powers},
    [TF_SUBTRACT] = {subtract_words, subtract_bf16, subtract_powers},
    [TF_MULTIPLY] = {multiply_words, multiply_bf16, multiply_powers},
    [TF_TRUE_DIVIDE] = {divide_words, divide_bf16, divide_powers},
};
