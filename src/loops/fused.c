/* bfloat16 at memory speed: the commonest operations in one pass instead of five.
 *
 * What that pass cannot settle is reported, and the block then takes the general
 * path: Inf, NaN, results beyond the range, and those below the normal numbers,
 * unless an operand is zero or the operation is exact there, as sums are.
 */
#include "blocks.h"

/* float32 bits of the first number that rounds beyond bfloat16's range. */
#define BEYOND UINT32_C(0x7F7F8000)

#define FUSED(name, expression, tiny_is_exact)                                 \
    static int name(const uint16_t *a, const uint16_t *b, uint16_t *out, size_t n) \
    {                                                                          \
        uint32_t greatest = 0, vanishing = 0;                                  \
        for (size_t i = 0; i < n; i++) {                                       \
            const float x = tf_float_of((uint32_t)a[i] << 16);                 \
            const float y = tf_float_of((uint32_t)b[i] << 16);                 \
            const uint32_t bits = tf_bits_of(expression);                      \
            const uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);         \
            const uint32_t magnitude = bits & UINT32_C(0x7FFFFFFF);            \
            out[i] = (uint16_t)(rounded >> 16);                                \
            greatest = magnitude > greatest ? magnitude : greatest;            \
            vanishing |= (uint32_t)(magnitude < UINT32_C(0x00800000)) &        \
                         (x != 0) & (y != 0) & !(tiny_is_exact);               \
        }                                                                      \
        return greatest >= BEYOND || vanishing;                                \
    }
FUSED(add, x + y, 1)
FUSED(subtract, x - y, 1)
FUSED(multiply, x * y, 0)
FUSED(divide, x / y, 0)

/* Without NaN, in the order of integers, which has -0 below +0. */
#define FUSED_EXTREME(name, expression)                                        \
    static int name(const uint16_t *a, const uint16_t *b, uint16_t *out, size_t n) \
    {                                                                          \
        int16_t greatest = 0;                                                  \
        for (size_t i = 0; i < n; i++) {                                       \
            const int16_t x = tf_half_order((int16_t)a[i]);                    \
            const int16_t y = tf_half_order((int16_t)b[i]);                    \
            const int16_t p = (int16_t)(a[i] & 0x7FFF), q = (int16_t)(b[i] & 0x7FFF); \
            const int16_t magnitude = p > q ? p : q;                           \
            greatest = magnitude > greatest ? magnitude : greatest;            \
            out[i] = (uint16_t)tf_half_order(expression);                      \
        }                                                                      \
        return greatest > 0x7F80;                                              \
    }
FUSED_EXTREME(maximum, x > y ? x : y)
FUSED_EXTREME(minimum, x < y ? x : y)

tf_fused_fn *const TF_NAME(tf_fused)[TF_BINARY_COUNT] = {
    [TF_ADD] = add,          [TF_SUBTRACT] = subtract,
    [TF_MULTIPLY] = multiply, [TF_TRUE_DIVIDE] = divide,
    [TF_MAXIMUM] = maximum,  [TF_MINIMUM] = minimum,
};

#define FUSED_COMPARE(name, expression)                                        \
    static void name(const uint16_t *a, const uint16_t *b, uint8_t *out, size_t n) \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            const float x = tf_float_of((uint32_t)a[i] << 16);                 \
            const float y = tf_float_of((uint32_t)b[i] << 16);                 \
            out[i] = (expression);                                             \
        }                                                                      \
    }
FUSED_COMPARE(equal, x == y)
FUSED_COMPARE(not_equal, x != y)
FUSED_COMPARE(less, x < y)
FUSED_COMPARE(less_equal, x <= y)
FUSED_COMPARE(greater, x > y)
FUSED_COMPARE(greater_equal, x >= y)

tf_fused_compare_fn *const TF_NAME(tf_fused_compare)[TF_COMPARE_COUNT] = {
    [TF_EQUAL] = equal,
    [TF_NOT_EQUAL] = not_equal,
    [TF_LESS] = less,
    [TF_LESS_EQUAL] = less_equal,
    [TF_GREATER] = greater,
    [TF_GREATER_EQUAL] = greater_equal,
};
