/* Unary functions of bfloat16 and tf32 that float32 computes, in one pass: the result in
 * float32, rounded once more. There are three kinds:
 *
 *  exact   float32's result needs no rounding, and raises nothing.
 *  single  float32's result is the exact one rounded. Rounding again is as if rounded once,
 *          if it is normal: 24 bits are two more than twice tf32's 11 (Figueroa, "When is
 *          double rounding innocuous?", 1995).
 *  near    float32's result is a few ulps off: see quick_near.c.
 *
 * Chunks with NaN, Inf or results below the normal numbers take another pass, which also
 * finds the flags of single results. */
#include <math.h>

#include "formats/fast_codec.h"
#include "ufuncs/kernels/decls.h"

#define LEAST_NORMAL UINT32_C(0x00800000)

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
                               float (*scaled)(float), const void *items,
                               void *results, size_t n)
{
    (void)scaled;
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
    uint32_t tiny;     /* not 0 if the result of a nonzero number is not normal */
};

/* Returns in the upper bits the code of r, the result of x: to nearest, ties to even. */
TF_INLINE uint32_t upper_code(struct tf_format f, float x, float r, struct seen *seen)
{
    const int cut = tf_cut(f);
    const uint32_t bits = tf_bits_of(r), magnitude = bits & TF_MAGNITUDE_BITS;
    seen->greatest = magnitude > seen->greatest ? magnitude : seen->greatest;
    seen->tiny |= magnitude < LEAST_NORMAL ? tf_bits_of(x) << 1 : 0;
    return bits + ((UINT32_C(1) << (cut - 1)) - 1) + (bits >> cut & 1);
}

/* Computes a chunk again in which results are NaN, Inf or not normal, and returns its
 * flags. `scaled` gives 2^128 times a result below the normal numbers, so that nothing is
 * subnormal. An addition rounds that, after which the lower bits are the code. */
TF_INLINE unsigned redo_with_specials(struct tf_format f, float (*of)(float),
                                      float (*scaled)(float), const void *items,
                                      void *results, size_t n)
{
    const int cut = tf_cut(f);
    const uint32_t nan = tf_nan_code(f) << cut;
    const uint32_t exponent = (uint32_t)(tf_least_exponent(f) + 128 + 23 + 127);
    const float magic = tf_float_of(exponent << 23);
    uint32_t invalid = 0, divide = 0, over = 0, under = 0;
    for (size_t i = 0; i < n; i++) {
        struct seen unused = {0, 0};
        const float x = number_at(f, items, i), r = of(x);
        const uint32_t given = tf_bits_of(x) & TF_MAGNITUDE_BITS;
        const uint32_t bits = tf_bits_of(r), magnitude = bits & TF_MAGNITUDE_BITS;
        const uint32_t is_finite = given < TF_INF_BITS, is_nan = magnitude > TF_INF_BITS;
        const uint32_t is_tiny = is_finite & (uint32_t)(magnitude < LEAST_NORMAL);
        const float exact = tf_float_of(tf_bits_of(scaled(x)) & TF_MAGNITUDE_BITS);
        const float shifted = exact + magic;
        const uint32_t small = (tf_bits_of(shifted) - tf_bits_of(magic)) << cut;
        const uint32_t normal = upper_code(f, x, r, &unused) & -(UINT32_C(1) << cut);
        const uint32_t code = is_tiny ? small | (bits ^ magnitude) : normal;
        const uint32_t is_inf =
            is_finite & (uint32_t)((code & TF_MAGNITUDE_BITS) == TF_INF_BITS);
        invalid |= is_nan & (uint32_t)(given <= TF_INF_BITS);
        divide |= is_inf & (uint32_t)(given == 0);
        over |= is_inf & (uint32_t)(given != 0);
        under |= is_tiny & (uint32_t)(shifted - magic != exact);
        put(f, results, i, is_nan ? nan : code);
    }
    return (invalid ? TF_INVALID : 0) | (divide ? TF_DIVIDE : 0) | (over ? TF_OVER : 0) |
           (under ? TF_UNDER : 0);
}

/* Returns the flags raised. Items of two bytes are processed as halves of a word, which
 * avoids instructions that reorder items. */
TF_INLINE unsigned apply_single(struct tf_format f, float (*of)(float),
                                float (*scaled)(float), const void *items,
                                void *results, size_t n)
{
    const uint32_t upper = TF_UPPER_HALF;
    const size_t pairs = f.itemsize == 2 ? n / 2 : 0;
    struct seen seen = {0, 0};
    for (size_t i = 0; i < pairs; i++) {
        uint32_t two;
        memcpy(&two, (const char *)items + i * sizeof two, sizeof two);
        const float x = tf_float_of(two << 16), y = tf_float_of(two & upper);
        const uint32_t first = upper_code(f, x, of(x), &seen);
        const uint32_t second = upper_code(f, y, of(y), &seen);
        two = first >> 16 | (second & upper);
        memcpy((char *)results + i * sizeof two, &two, sizeof two);
    }
    for (size_t i = 2 * pairs; i < n; i++) {
        const float x = number_at(f, items, i);
        put(f, results, i, upper_code(f, x, of(x), &seen));
    }
    const int is_normal = (seen.greatest < tf_beyond(f)) & (seen.tiny == 0);
    return is_normal ? 0 : redo_with_specials(f, of, scaled, items, results, n);
}

/* -- the functions ------------------------------------------------------------------- */

#define INSTANCE(name, format, apply, scaled)                                 \
    static size_t name##_##format(const void *items, void *results,            \
                                  uint16_t *which, size_t n, size_t most,      \
                                  unsigned *flags)                             \
    {                                                                          \
        (void)which, (void)most;                                               \
        *flags |= apply(tf_##format, name, scaled, items, results, n);        \
        return 0;                                                              \
    }
#define FUNCTION(name, apply, scaled, expression)                             \
    TF_INLINE float name(float x) { return expression; }                       \
    INSTANCE(name, tf32, apply, scaled)                                       \
    INSTANCE(name, bfloat16, apply, scaled)
/* The functions `scaled` return 2^128 times results below 2^-126. A square is exact. 1/x is
 * farther from each number halfway between two of tf32's, and from each number of tf32 that
 * it does not equal, than float32's rounding moves it. A root so small is zero. */
TF_INLINE float scaled_square(float x)
{
    /* Squares of numbers below 2^-76 all round to zero. The bound avoids subnormal numbers,
     * with which processors are slow. */
    const uint32_t magnitude = tf_bits_of(x) & TF_MAGNITUDE_BITS;
    const uint32_t least = tf_bits_of(0x1p-76f);
    const uint32_t greater = magnitude > least ? magnitude : least;
    const float y = tf_float_of(magnitude ? greater : 0) * 0x1p64f;
    return y * y;
}
TF_INLINE float scaled_reciprocal(float x) { return 0x1p64f / x * 0x1p64f; }
TF_INLINE float scaled_root(float x) { return x; }

FUNCTION(square, apply_single, scaled_square, x * x)
FUNCTION(reciprocal, apply_single, scaled_reciprocal, 1 / x)
FUNCTION(root, apply_single, scaled_root, sqrtf(x))
FUNCTION(rint_, apply_exact, NULL, rintf(x))
FUNCTION(floor_, apply_exact, NULL, floorf(x))
FUNCTION(ceil_, apply_exact, NULL, ceilf(x))
FUNCTION(trunc_, apply_exact, NULL, truncf(x))
FUNCTION(sign, apply_exact, NULL, x != x ? x : (float)((x > 0) - (x < 0)))

#define BOTH(name) {name##_tf32, name##_bfloat16}
tf_quick_fn *const TF_PLAIN_NAME(tf_quick)[TF_QUICK_NEAR][2] = {
    [TF_QUICK_SQUARE] = BOTH(square),   [TF_QUICK_RECIPROCAL] = BOTH(reciprocal),
    [TF_QUICK_SQRT] = BOTH(root),       [TF_QUICK_RINT] = BOTH(rint_),
    [TF_QUICK_FLOOR] = BOTH(floor_),    [TF_QUICK_CEIL] = BOTH(ceil_),
    [TF_QUICK_TRUNC] = BOTH(trunc_),    [TF_QUICK_SIGN] = BOTH(sign),
};
