/* Unary functions of bfloat16 and tf32 that float32 computes, in one pass: the result in
 * float32, rounded once more. There are three kinds:
 *
 *  exact   float32's result needs no rounding, and nothing is raised.
 *  single  It is the exact one rounded, and rounding it again is as if rounded once:
 *          float32's 24 bits are two more than twice tf32's 11 (Figueroa, "When is
 *          double rounding innocuous?", 1995), as long as the result is normal.
 *  near    It is some units in float32's last place off: see quick_near.c.
 *
 * Of the single results some are left open, which are listed, and which unary.c computes
 * otherwise: NaN and Inf that no NaN or Inf gave, results beyond the range or below the
 * normal numbers.
 */
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

/* What is in the upper bits. */
TF_INLINE void put(struct tf_format f, void *results, size_t i, uint32_t bits)
{
    if (f.itemsize == 4) {
        ((uint32_t *)results)[i] = bits & -(UINT32_C(1) << tf_cut(f));
    } else {
        ((uint16_t *)results)[i] = (uint16_t)(bits >> 16);
    }
}

/* -- exact ------------------------------------------------------------------------- */

TF_INLINE size_t apply_exact(struct tf_format f, float (*of)(float), const void *items,
                             void *results, uint16_t *which, size_t n)
{
    (void)which;
    const uint32_t nan = tf_nan_code(f) << tf_cut(f);
    for (size_t i = 0; i < n; i++) {
        const float r = of(number_at(f, items, i));
        put(f, results, i, r == r ? tf_bits_of(r) : nan);
    }
    return 0;
}

/* -- single ------------------------------------------------------------------------ */

/* What results showed. */
struct seen {
    uint32_t greatest; /* magnitude */
    uint32_t tiny;     /* some came from other numbers than zero, and are not normal */
};

/* The code of r, which x gave, in the upper bits: to nearest, ties to even. */
TF_INLINE uint32_t upper_code(struct tf_format f, float x, float r, struct seen *seen)
{
    const int cut = tf_cut(f);
    const uint32_t bits = tf_bits_of(r), magnitude = bits & TF_MAGNITUDE_BITS;
    seen->greatest = magnitude > seen->greatest ? magnitude : seen->greatest;
    seen->tiny |= magnitude < LEAST_NORMAL ? tf_bits_of(x) << 1 : 0;
    return bits + ((UINT32_C(1) << (cut - 1)) - 1) + (bits >> cut & 1);
}

TF_INLINE int is_outside(struct tf_format f, struct seen seen)
{
    return (seen.greatest >= tf_beyond(f)) | (seen.tiny != 0);
}

/* Does r not tell what x gives? Inf has exact results: Inf and zero. */
TF_INLINE int is_open(struct tf_format f, float x, float r)
{
    struct seen seen = {0, 0};
    upper_code(f, x, r, &seen);
    const int is_exact = ((x == INFINITY) | (x == -INFINITY)) & (r == r);
    return (x == x) & !is_exact & is_outside(f, seen);
}

/* Returns how many results are left open, of which `which` lists the indices. Items of
 * two bytes are taken two to a word: without anything that brings them in order, or
 * back. */
TF_INLINE size_t apply_single(struct tf_format f, float (*of)(float), const void *items,
                              void *results, uint16_t *which, size_t n)
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
    if (!is_outside(f, seen)) {
        return 0;
    }
    const uint32_t nan = tf_nan_code(f) << tf_cut(f);
    uint8_t open[TF_CHUNK + 8];
    for (size_t i = 0; i < n; i++) {
        const float x = number_at(f, items, i), r = of(x);
        struct seen unused = {0, 0};
        const uint32_t code = upper_code(f, x, r, &unused);
        put(f, results, i, x == x ? code : nan);
        open[i] = (uint8_t)is_open(f, x, r);
    }
    return tf_list_marked(open, n, 0, which);
}

/* -- the functions ------------------------------------------------------------------- */

#define FUNCTION(name, apply, expression)                                      \
    TF_INLINE float name(float x) { return expression; }                       \
    static size_t name##_tf32(const void *items, void *results, uint16_t *which, \
                              size_t n, size_t most)                           \
    {                                                                          \
        (void)most;                                                            \
        return apply(tf_tf32, name, items, results, which, n);                 \
    }                                                                          \
    static size_t name##_bfloat16(const void *items, void *results,            \
                                  uint16_t *which, size_t n, size_t most)      \
    {                                                                          \
        (void)most;                                                            \
        return apply(tf_bfloat16, name, items, results, which, n);             \
    }
FUNCTION(square, apply_single, x * x)
FUNCTION(reciprocal, apply_single, 1 / x)
FUNCTION(root, apply_single, sqrtf(x))
FUNCTION(rint_, apply_exact, rintf(x))
FUNCTION(floor_, apply_exact, floorf(x))
FUNCTION(ceil_, apply_exact, ceilf(x))
FUNCTION(trunc_, apply_exact, truncf(x))
FUNCTION(sign, apply_exact, x != x ? x : (float)((x > 0) - (x < 0)))

#define BOTH(name) {name##_tf32, name##_bfloat16}
tf_quick_fn *const TF_NAME(tf_quick)[TF_QUICK_NEAR][2] = {
    [TF_QUICK_SQUARE] = BOTH(square),   [TF_QUICK_RECIPROCAL] = BOTH(reciprocal),
    [TF_QUICK_SQRT] = BOTH(root),       [TF_QUICK_RINT] = BOTH(rint_),
    [TF_QUICK_FLOOR] = BOTH(floor_),    [TF_QUICK_CEIL] = BOTH(ceil_),
    [TF_QUICK_TRUNC] = BOTH(trunc_),    [TF_QUICK_SIGN] = BOTH(sign),
};
