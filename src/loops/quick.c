/* Unary functions of bfloat16 and tf32 that float32 computes, in one pass: the result
 * in float32, rounded once more. That is as if rounded once: float32's 24 bits are two
 * more than twice tf32's 11 (Figueroa, "When is double rounding innocuous?", 1995), as
 * long as the result is normal. Functions that are `exact` need no rounding at all.
 *
 * What that does not settle is reported, and unary.c computes the block otherwise: NaN,
 * Inf, results beyond the range or below the normal numbers.
 */
#include <math.h>

#include "../convert.h"
#include "blocks.h"

#define QUICK(name, exact, expression)                                         \
    TF_INLINE int name(struct tf_format f, const void *items, void *results,   \
                       size_t n)                                               \
    {                                                                          \
        const uint32_t unit = UINT32_C(1) << tf_cut(f);                        \
        uint32_t greatest = 0, tiny = 0;                                       \
        for (size_t i = 0; i < n; i++) {                                       \
            const uint32_t item = f.itemsize == 4                              \
                                      ? ((const uint32_t *)items)[i] & -unit   \
                                      : (uint32_t)((const uint16_t *)items)[i] << 16; \
            const float x = tf_float_of(item);                                 \
            const uint32_t bits = tf_bits_of(expression);                      \
            const uint32_t code = tf_encode_upper_bits(f, bits);               \
            const uint32_t magnitude = bits & UINT32_C(0x7FFFFFFF);            \
            greatest = magnitude > greatest ? magnitude : greatest;            \
            tiny |= (uint32_t)(magnitude < UINT32_C(0x00800000)) & (x != 0) & !(exact); \
            if (f.itemsize == 4) {                                             \
                ((uint32_t *)results)[i] = code << f.shift;                    \
            } else {                                                           \
                ((uint16_t *)results)[i] = (uint16_t)code;                     \
            }                                                                  \
        }                                                                      \
        return greatest >= tf_beyond(f) || tiny;                               \
    }                                                                          \
    static int name##_tf32(const void *items, void *results, size_t n)         \
    {                                                                          \
        return name(tf_tf32, items, results, n);                               \
    }                                                                          \
    static int name##_bfloat16(const void *items, void *results, size_t n)     \
    {                                                                          \
        return name(tf_bfloat16, items, results, n);                           \
    }
QUICK(square, 0, x * x)
QUICK(reciprocal, 0, 1 / x)
QUICK(root, 0, sqrtf(x))
QUICK(rint_, 1, rintf(x))
QUICK(floor_, 1, floorf(x))
QUICK(ceil_, 1, ceilf(x))
QUICK(trunc_, 1, truncf(x))
QUICK(sign, 1, x != x ? x : (float)((x > 0) - (x < 0)))

#define BOTH(name) {name##_tf32, name##_bfloat16}
tf_quick_fn *const TF_NAME(tf_quick)[TF_QUICK_COUNT][2] = {
    [TF_QUICK_SQUARE] = BOTH(square), [TF_QUICK_RECIPROCAL] = BOTH(reciprocal),
    [TF_QUICK_SQRT] = BOTH(root),     [TF_QUICK_RINT] = BOTH(rint_),
    [TF_QUICK_FLOOR] = BOTH(floor_),  [TF_QUICK_CEIL] = BOTH(ceil_),
    [TF_QUICK_TRUNC] = BOTH(trunc_),  [TF_QUICK_SIGN] = BOTH(sign),
};
