/* Unary functions of bfloat16 and tf32 that float32 computes, in one pass: the result in
 * float32, rounded once more. There are three kinds:
 *
 *  exact   float32's result needs no rounding, and raises nothing.
 *  single  float32's result is the exact one rounded. Rounding again is as if rounded once,
 *          if it is normal: 24 bits are two more than twice tf32's 11 (Figueroa, "When is
 *          double rounding innocuous?", 1995).
 *  near    float32's result is a few ulps off: see quick_near.c.
 *
 * Single results that are NaN, Inf or below the normal numbers take another pass, which also
 * finds their flags. */
#include <math.h>

#include "formats/fast_codec.h"
#include "ufuncs/kernels/decls.h"
#include "ufuncs/kernels/tiny_results.h"

TF_INLINE float number_at(struct tf_format f, const void *items, size_t i)
{
    if (f.itemsize == 4) {
        return tf_float_of(((const uint32_t *)items)[i] & -(UINT32_C(1) << tf_cut(f)));
    }
    return tf_float_of((uint32_t)((const uint16_t *)items)[i] << 16);
}

/* Stores the item that is in the upper bits. */
TF_INLINE void put(struct tf_format f, void *results, size_t i, uint32_t bits)
{
    if (f.itemsize == 4) {
        ((uint32_t *)results)[i] = bits & -(UINT32_C(1) << tf_cut(f));
    } else {
        ((uint16_t *)results)[i] = (uint16_t)(bits >> 16);
    }
}

/* -- exact ------------------------------------------------------------------------- */

TF_INLINE unsigned apply_exact(struct tf_format f, float (*of)(float),
                               enum tf_binary_op op, const void *items, void *results,
                               size_t n)
{
    (void)op;
    const uint32_t nan = tf_nan_code(f) << tf_cut(f);
    for (size_t i = 0; i < n; i++) {
        const float r = of(number_at(f, items, i));
        put(f, results, i, r == r ? tf_bits_of(r) : nan);
    }
    return 0;
}

/* -- single ------------------------------------------------------------------------ */

/* A summary of a chunk of results. */
struct seen {
    uint32_t greatest; /* largest magnitude */
    uint32_t tiny;     /* not 0 if a result is below the normal numbers, but not exact */
};

/* Returns in the upper bits the code of r, the result of x: to nearest, ties to even. The
 * result 0 is exact if x is Inf, of which a quotient is taken, or 0. */
TF_INLINE uint32_t upper_code(struct tf_format f, enum tf_binary_op op, float x, float r,
                              struct seen *seen)
{
    const uint32_t exact = op == TF_TRUE_DIVIDE ? TF_INF_BITS << 1 : 0;
    const int cut = tf_cut(f);
    const uint32_t bits = tf_bits_of(r), magnitude = bits & TF_MAGNITUDE_BITS;
    seen->greatest = magnitude > seen->greatest ? magnitude : seen->greatest;
    seen->tiny |= magnitude < TF_LEAST_NORMAL_BITS ? tf_bits_of(x) << 1 ^ exact : 0;
    return bits + ((UINT32_C(1) << (cut - 1)) - 1) + (bits >> cut & 1);
}

/* Rounds the results below the normal numbers, and returns the flag that they raise. They
 * are those of `op` and operands 1 and x, or x and x. */
TF_INLINE unsigned round_tiny_results(struct tf_format f, enum tf_binary_op op,
                                      const void *items, void *results, size_t n)
{
    uint32_t under = 0;
    for (size_t i = 0; i < n; i++) {
        const float y = number_at(f, items, i), x = op == TF_TRUE_DIVIDE ? 1 : y;
        const uint32_t bits = tf_bits_of(number_at(f, results, i));
        put(f, results, i, tf_round_tiny(f, op, x, y, bits, &under));
    }
    return under ? TF_UNDER : 0;
}

/* Returns the flags raised. Items of two bytes are processed as halves of a word, which
 * avoids instructions that reorder items. */
TF_INLINE unsigned apply_single(struct tf_format f, float (*of)(float),
                                enum tf_binary_op op, const void *items, void *results,
                                size_t n)
{
    const uint32_t upper = TF_UPPER_HALF;
    const size_t pairs = f.itemsize == 2 ? n / 2 : 0;
    struct seen seen = {0, 0};
    for (size_t i = 0; i < pairs; i++) {
        uint32_t two;
        memcpy(&two, (const char *)items + i * sizeof two, sizeof two);
        const float x = tf_float_of(two << 16), y = tf_float_of(two & upper);
        const uint32_t first = upper_code(f, op, x, of(x), &seen);
        const uint32_t second = upper_code(f, op, y, of(y), &seen);
        two = first >> 16 | (second & upper);
        memcpy((char *)results + i * sizeof two, &two, sizeof two);
    }
    for (size_t i = 2 * pairs; i < n; i++) {
        const float x = number_at(f, items, i);
        put(f, results, i, upper_code(f, op, x, of(x), &seen));
    }
    unsigned flags = seen.tiny ? round_tiny_results(f, op, items, results, n) : 0;
    if (seen.greatest >= tf_beyond(f)) {
        flags |= f.itemsize == 2 ? TF_PLAIN_NAME(tf_finish_bf16)(items, items, results, n)
                                 : TF_PLAIN_NAME(tf_finish_words)(items, items, results, n);
    }
    return flags;
}

/* -- the functions ------------------------------------------------------------------- */

#define INSTANCE(name, format, apply, op)                                     \
    static size_t name##_##format(const void *items, void *results,            \
                                  uint16_t *which, size_t n, size_t most,      \
                                  unsigned *flags)                             \
    {                                                                          \
        (void)which, (void)most;                                               \
        *flags |= apply(tf_##format, name, op, items, results, n);            \
        return 0;                                                              \
    }
#define FUNCTION(name, apply, op, expression)                                 \
    TF_INLINE float name(float x) { return expression; }                       \
    INSTANCE(name, tf32, apply, op)                                           \
    INSTANCE(name, bfloat16, apply, op)
/* `op` computes results below 2^-126. No root is so small. */
FUNCTION(square, apply_single, TF_MULTIPLY, x * x)
FUNCTION(reciprocal, apply_single, TF_TRUE_DIVIDE, 1 / x)
FUNCTION(root, apply_single, TF_MULTIPLY, sqrtf(x))
FUNCTION(rint_, apply_exact, TF_MULTIPLY, rintf(x))
FUNCTION(floor_, apply_exact, TF_MULTIPLY, floorf(x))
FUNCTION(ceil_, apply_exact, TF_MULTIPLY, ceilf(x))
FUNCTION(trunc_, apply_exact, TF_MULTIPLY, truncf(x))
FUNCTION(sign, apply_exact, TF_MULTIPLY, x != x ? x : (float)((x > 0) - (x < 0)))

#define BOTH(name) {name##_tf32, name##_bfloat16}
tf_quick_fn *const TF_PLAIN_NAME(tf_quick)[TF_QUICK_NEAR][2] = {
    [TF_QUICK_SQUARE] = BOTH(square),   [TF_QUICK_RECIPROCAL] = BOTH(reciprocal),
    [TF_QUICK_SQRT] = BOTH(root),       [TF_QUICK_RINT] = BOTH(rint_),
    [TF_QUICK_FLOOR] = BOTH(floor_),    [TF_QUICK_CEIL] = BOTH(ceil_),
    [TF_QUICK_TRUNC] = BOTH(trunc_),    [TF_QUICK_SIGN] = BOTH(sign),
};
