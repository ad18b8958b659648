/* Unary functions of bfloat16 and tf32 that float32 computes, in one pass: the result in
 * float32, rounded once more. There are three kinds:
 *
 *  exact   float32's result needs no rounding.
 *  single  It is the exact one rounded, and rounding it again is as if rounded once:
 *          float32's 24 bits are two more than twice tf32's 11 (Figueroa, "When is
 *          double rounding innocuous?", 1995), as long as the result is normal.
 *  near    It is some units in float32's last place off, and rounds to what the exact
 *          result would, unless a number halfway between two of the format lies as near.
 *
 * The results that this leaves open are listed, and unary.c computes them otherwise: NaN
 * and Inf that no NaN or Inf gave, results beyond the range or below the normal numbers.
 */
#include <math.h>

#include "../convert.h"
#include "blocks.h"
#include "functions.h"

enum { EXACT, SINGLE, NEAR };
enum { MARGIN = 4 }; /* units in the last place that results may be off */

enum { CHUNK = 256 }; /* near results that are looked at together */

#define LEAST_NORMAL UINT32_C(0x00800000)

TF_INLINE float number_at(struct tf_format f, const void *items, size_t i)
{
    if (f.itemsize == 4) {
        return tf_float_of(((const uint32_t *)items)[i] & -(UINT32_C(1) << tf_cut(f)));
    }
    return tf_float_of((uint32_t)((const uint16_t *)items)[i] << 16);
}

/* What a block of results showed. */
struct seen {
    uint32_t greatest, least_less_one; /* magnitudes; the least one but zero */
    uint32_t tiny;   /* some came from other numbers than zero, and are not normal */
    uint32_t differ; /* codes on both sides of a margin, where they are not the same */
};

static const struct seen nothing = {0, UINT32_MAX, 0, 0};

/* The code of r, which x gave, in the upper bits. */
TF_INLINE uint32_t upper_code(struct tf_format f, int kind, float x, float r,
                              struct seen *seen)
{
    const int cut = tf_cut(f);
    const uint32_t half = UINT32_C(1) << (cut - 1);
    const uint32_t bits = tf_bits_of(r), magnitude = bits & INT32_MAX;
    seen->greatest = magnitude > seen->greatest ? magnitude : seen->greatest;
    if (kind != NEAR) {
        const uint32_t tiny = (uint32_t)(magnitude < LEAST_NORMAL) & (x != 0);
        seen->tiny |= kind == SINGLE ? tiny : 0;
        return bits + (half - 1) + (bits >> cut & 1);
    }
    const uint32_t less_one = magnitude - 1, least = seen->least_less_one;
    seen->least_less_one = less_one < least ? less_one : least;
    const uint32_t above = bits + (half + MARGIN), below = bits + (half - MARGIN);
    seen->differ |= above ^ below;
    return above;
}

TF_INLINE int is_near_half(struct tf_format f, struct seen seen)
{
    return seen.differ >> tf_cut(f) != 0;
}

TF_INLINE int is_outside(struct tf_format f, struct seen seen)
{
    return (seen.greatest >= tf_beyond(f) - MARGIN) | (seen.tiny != 0) |
           (seen.least_less_one < LEAST_NORMAL + MARGIN - 1);
}

/* Does r not tell what x gives? Inf has exact results: Inf and zero. */
TF_INLINE int is_open(struct tf_format f, int kind, float x, float r)
{
    struct seen seen = nothing;
    upper_code(f, kind, x, r, &seen);
    const int is_exact = (kind != NEAR) & (magnitude_of(x) == INFINITY) & (r == r);
    return (x == x) & !is_exact & (is_outside(f, seen) | is_near_half(f, seen));
}

/* Marks results that are left open; NaN gives NaN. */
TF_INLINE void mark_open(struct tf_format f, int kind, struct seen seen,
                         const void *items, const float *made, void *results,
                         uint8_t *open, size_t n)
{
    if (!is_outside(f, seen)) { /* all are normal numbers */
        for (size_t i = 0; i < n; i++) {
            struct seen one = nothing;
            upper_code(f, kind, 0, made[i], &one);
            open[i] = (uint8_t)is_near_half(f, one);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const float x = number_at(f, items, i);
        const uint32_t nan = tf_nan_code(f) << f.shift;
        open[i] = (uint8_t)is_open(f, kind, x, made[i]);
        if (f.itemsize == 4) {
            ((uint32_t *)results)[i] = x == x ? ((uint32_t *)results)[i] : nan;
        } else {
            ((uint16_t *)results)[i] =
                x == x ? ((uint16_t *)results)[i] : (uint16_t)nan;
        }
    }
}

/* Returns how many results are left open, of which `which` lists the indices. */
TF_INLINE size_t apply(struct tf_format f, int kind, float (*of)(float),
                       const void *items, void *results, uint16_t *which, size_t n)
{
    const uint32_t code_bits = -(UINT32_C(1) << tf_cut(f));
    const size_t chunk = kind == NEAR ? CHUNK : TF_BLOCK;
    size_t count = 0;
    for (size_t start = 0; start < n; start += chunk) {
        const size_t size = n - start < chunk ? n - start : chunk;
        const void *in = (const char *)items + start * f.itemsize;
        void *out = (char *)results + start * f.itemsize;
        float made[TF_BLOCK];
        struct seen seen = nothing;
        for (size_t i = 0; i < size; i++) {
            const float x = number_at(f, in, i);
            made[i] = of(x);
            const uint32_t code = upper_code(f, kind, x, made[i], &seen);
            if (f.itemsize == 4) {
                ((uint32_t *)out)[i] = code & code_bits;
            } else {
                ((uint16_t *)out)[i] = (uint16_t)(code >> 16);
            }
        }
        if (is_outside(f, seen) || is_near_half(f, seen)) {
            uint8_t open[TF_BLOCK + 8];
            mark_open(f, kind, seen, in, made, out, open, size);
            count += tf_list_marked(open, size, start, which + count);
        }
    }
    return count;
}

#define FUNCTION(name, kind, expression)                                       \
    TF_INLINE float name(float x) { return expression; }                       \
    static size_t name##_tf32(const void *items, void *results, uint16_t *which, \
                              size_t n)                                        \
    {                                                                          \
        return apply(tf_tf32, kind, name, items, results, which, n);           \
    }                                                                          \
    static size_t name##_bfloat16(const void *items, void *results,            \
                                  uint16_t *which, size_t n)                   \
    {                                                                          \
        return apply(tf_bfloat16, kind, name, items, results, which, n);       \
    }
FUNCTION(square, SINGLE, x * x)
FUNCTION(reciprocal, SINGLE, 1 / x)
FUNCTION(root, SINGLE, sqrtf(x))
FUNCTION(rint_, EXACT, rintf(x))
FUNCTION(floor_, EXACT, floorf(x))
FUNCTION(ceil_, EXACT, ceilf(x))
FUNCTION(trunc_, EXACT, truncf(x))
FUNCTION(sign, EXACT, x != x ? x : (float)((x > 0) - (x < 0)))
FUNCTION(exp_, NEAR, exp_near(not_tiny(x)))
FUNCTION(exp2_, NEAR, exp2_near(x))
FUNCTION(expm1_, NEAR, expm1_near(not_tiny(x)))
FUNCTION(log_, NEAR, log_near(x))
FUNCTION(log2_, NEAR, log2_near(x))
FUNCTION(log10_, NEAR, log10_near(x))
FUNCTION(log1p_, NEAR, log1p_near(not_tiny(x)))
FUNCTION(sin_, NEAR, sine_near(not_tiny(x), 0))
FUNCTION(cos_, NEAR, sine_near(not_tiny(x), 1))
FUNCTION(tan_, NEAR, tan_near(not_tiny(x)))
FUNCTION(arcsin, NEAR, arcsin_near(not_tiny(x)))
FUNCTION(arccos, NEAR, arccos_near(not_tiny(x)))
FUNCTION(arctan, NEAR, arctan_near(not_tiny(x)))
FUNCTION(sinh_, NEAR, sinh_near(not_tiny(x)))
FUNCTION(cosh_, NEAR, cosh_near(not_tiny(x)))
FUNCTION(tanh_, NEAR, tanh_near(not_tiny(x)))
FUNCTION(arcsinh, NEAR, arcsinh_near(not_tiny(x)))
FUNCTION(arccosh, NEAR, arccosh_near(x))
FUNCTION(arctanh, NEAR, arctanh_near(not_tiny(x)))
FUNCTION(cbrt_, NEAR, cbrt_near(x))
FUNCTION(degrees, NEAR, x * 0x1.ca5dc2p+5f)
FUNCTION(radians, NEAR, x * 0x1.1df46ap-6f)

#define BOTH(name) {name##_tf32, name##_bfloat16}
tf_quick_fn *const TF_NAME(tf_quick)[TF_QUICK_COUNT][2] = {
    [TF_QUICK_SQUARE] = BOTH(square),   [TF_QUICK_RECIPROCAL] = BOTH(reciprocal),
    [TF_QUICK_SQRT] = BOTH(root),       [TF_QUICK_RINT] = BOTH(rint_),
    [TF_QUICK_FLOOR] = BOTH(floor_),    [TF_QUICK_CEIL] = BOTH(ceil_),
    [TF_QUICK_TRUNC] = BOTH(trunc_),    [TF_QUICK_SIGN] = BOTH(sign),
    [TF_QUICK_EXP] = BOTH(exp_),        [TF_QUICK_EXP2] = BOTH(exp2_),
    [TF_QUICK_EXPM1] = BOTH(expm1_),    [TF_QUICK_LOG] = BOTH(log_),
    [TF_QUICK_LOG2] = BOTH(log2_),      [TF_QUICK_LOG10] = BOTH(log10_),
    [TF_QUICK_LOG1P] = BOTH(log1p_),    [TF_QUICK_SIN] = BOTH(sin_),
    [TF_QUICK_COS] = BOTH(cos_),        [TF_QUICK_TAN] = BOTH(tan_),
    [TF_QUICK_ARCSIN] = BOTH(arcsin),   [TF_QUICK_ARCCOS] = BOTH(arccos),
    [TF_QUICK_ARCTAN] = BOTH(arctan),   [TF_QUICK_SINH] = BOTH(sinh_),
    [TF_QUICK_COSH] = BOTH(cosh_),      [TF_QUICK_TANH] = BOTH(tanh_),
    [TF_QUICK_ARCSINH] = BOTH(arcsinh), [TF_QUICK_ARCCOSH] = BOTH(arccosh),
    [TF_QUICK_ARCTANH] = BOTH(arctanh), [TF_QUICK_CBRT] = BOTH(cbrt_),
    [TF_QUICK_DEGREES] = BOTH(degrees), [TF_QUICK_RADIANS] = BOTH(radians),
};
