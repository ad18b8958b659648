/* Numbers of elements: the nearest one, the next one, those of codes, and of each rounding.
 *
 * Freestanding C, so that C and CUDA compile the same source. Compilers turn its loops over
 * 16 lanes into vectors. They must not contract operations: `tf_fma` marks where one
 * rounding is meant.
 */
#ifndef TF32DTYPE_BLOCKS_ELEMENT_ROUNDING_H
#define TF32DTYPE_BLOCKS_ELEMENT_ROUNDING_H

#include "blocks/block_formats.h"

enum { TF_BLOCK_LANES = 16 };

/* Out of line on a CPU, to keep loops small. On a GPU, functions of arrays are inlined:
 * arrays are in registers, which have no address. */
#if defined(__CUDACC__)
#define TF_NOINLINE static __noinline__
#define TF_RARE_OF_ARRAYS TF_INLINE
#else
#define TF_NOINLINE static __attribute__((noinline, unused))
#define TF_RARE_OF_ARRAYS TF_NOINLINE
#endif

/* Use before a loop over lanes. It becomes one vector instead of sixteen single numbers,
 * and sixteen registers on a GPU. */
#if defined(__CUDACC__)
#define TF_VECTOR_LOOP _Pragma("unroll")
#elif defined(__GNUC__) && !defined(__clang__)
#define TF_VECTOR_LOOP _Pragma("GCC unroll 1")
#else
#define TF_VECTOR_LOOP
#endif

TF_INLINE float tf_fma(float x, float y, float z)
{
#if defined(__CUDACC__)
    return __fmaf_rn(x, y, z);
#else
    return __builtin_fmaf(x, y, z);
#endif
}

TF_INLINE double tf_square_root(double x)
{
#if defined(__CUDACC__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

TF_INLINE float tf_magnitude_of(float x)
{
    return tf_float_of(tf_bits_of(x) & TF_MAGNITUDE_BITS);
}

TF_INLINE float tf_with_sign(float magnitude, float sign)
{
    return tf_float_of(tf_bits_of(magnitude) | (tf_bits_of(sign) & TF_SIGN_BIT));
}

TF_INLINE float tf_power_of_two(int exponent) /* from -149 to 127 */
{
    return tf_float_of(exponent < -126 ? UINT32_C(1) << (exponent + 149)
                                       : (uint32_t)(exponent + 127) << 23);
}

/* Products and quotients of smaller numbers may be subnormal in float32. */
#define TF_SMALL 0x1p-100f

/* Returns whether products and quotients with s stay far from float32's limits. */
TF_INLINE int tf_is_moderate(float s)
{
    return s >= TF_SMALL && s <= 1.2676506e+30f; /* 2^100 */
}

/* Returns the largest magnitude of n numbers, as bits. */
TF_INLINE uint32_t tf_greatest_magnitude(const float *x, int n)
{
    uint32_t most = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t magnitude = tf_bits_of(x[i]) & TF_MAGNITUDE_BITS;
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

/* -- elements ---------------------------------------------------------------------- */

TF_INLINE float tf_element_greatest(struct tf_element e)
{
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        return tf_float_of(tf_single_of_item(f, tf_maximum_magnitude(f)));
    }
    return (float)e.greatest * tf_power_of_two(-e.fraction);
}

/* Returns how many fraction bits follow the leading bit. */
TF_INLINE int tf_element_mantissa(struct tf_element e)
{
    return e.format >= 0 ? tf_format_rows[e.format]->mantissa_bits : e.width - 2;
}

/* Returns the nearest number of the element, ties to even. x must be within its range. */
TF_INLINE float tf_nearest_within(struct tf_element e, float x)
{
    /* A sum near 3/2 2^23 units is rounded to units. */
    float magic = 12582912.0f * tf_power_of_two(-e.fraction);
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        const uint32_t exponent = tf_bits_of(x) & TF_INF_BITS;
        const uint32_t normal = tf_least_normal(f);
        const uint32_t unit = exponent > normal ? exponent : normal;
        magic = tf_float_of(unit + ((uint32_t)tf_cut(f) << 23 | UINT32_C(0x00400000)));
    }
    return x + magic - magic;
}

TF_INLINE float tf_between(float least, float x, float greatest)
{
    x = x < greatest ? x : greatest;
    return x > least ? x : least;
}

/* Returns the nearest number. A zero has the sign of x if the element has signed zeros. */
TF_INLINE float tf_nearest_signed(struct tf_element e, float x)
{
    const float nearest = tf_nearest_within(e, x);
    return e.format >= 0 ? tf_with_sign(nearest, x) : nearest;
}

/* Returns the element's next number after q, upward or downward, or q if it is the last. */
TF_INLINE float tf_next_element(struct tf_element e, float greatest, float q, int up)
{
    float next = up ? q + tf_power_of_two(-e.fraction) : q - tf_power_of_two(-e.fraction);
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        const uint32_t sign = tf_bits_of(q) & TF_SIGN_BIT;
        const uint32_t bits = tf_bits_of(q) ^ sign, normal = tf_least_normal(f);
        const uint32_t one = UINT32_C(1) << tf_cut(f);
        const uint32_t inward = (sign >> 31) ^ (uint32_t)!up;
        const float unit = tf_power_of_two(tf_least_exponent(f));
        const float moved = tf_float_of((inward ? bits - one : bits + one) | sign);
        const float stepped = up ? q + unit : q - unit;
        next = bits < normal + inward ? stepped : moved;
    }
    return tf_magnitude_of(next) > greatest ? q : next;
}

/* Returns the code of x or of its nearest number, or the code of NaN if there is one. */
TF_INLINE uint32_t tf_element_code(struct tf_element e, float x)
{
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        return tf_code_of_number(f, tf_bits_of(x));
    }
    const float units = tf_nearest_within(e, x) * (float)(1 << e.fraction);
    return (uint32_t)(int32_t)units & ((UINT32_C(1) << e.width) - 1);
}

/* Returns the code of a number of the grid, in a few operations. A product moves the
 * format's smallest exponent to float32's, so subnormal numbers are in the order of their
 * codes, too. */
TF_INLINE uint32_t tf_code_on_grid(struct tf_element e, float x)
{
    if (e.format < 0) { /* the last bits of a sum near 3/2 2^23 */
        const float sum = x * (float)(1 << e.fraction) + 12582912.0f;
        return tf_bits_of(sum) & ((UINT32_C(1) << e.width) - 1);
    }
    const struct tf_format f = *tf_format_rows[e.format];
    const uint32_t bits = tf_bits_of(x * tf_power_of_two(f.bias - 127));
    const uint32_t sign = bits >> (32 - f.width) & tf_sign_mask(f);
    return sign | (bits & TF_MAGNITUDE_BITS) >> tf_cut(f);
}

/* Returns the code of a number of a block, which may be special. */
TF_INLINE uint32_t tf_code_in_block(struct tf_element e, float x)
{
    if (x != x) {
        return e.format >= 0 ? tf_nan_code(*tf_format_rows[e.format]) : 0;
    }
    return tf_element_code(e, x);
}

/* Returns a 24-bit integer whose first bit is one: |x| is that times 2^*exponent. */
TF_INLINE uint32_t tf_significand(float x, int *exponent)
{
    uint32_t bits = tf_bits_of(x) & TF_MAGNITUDE_BITS;
    *exponent = -150;
    if (bits < UINT32_C(0x00800000)) {
        bits = tf_bits_of(tf_float_of(bits) * 0x1p24f);
        *exponent -= 24;
    }
    *exponent += (int)(bits >> 23);
    return (bits & TF_FRACTION_BITS) | UINT32_C(0x00800000);
}

/* Returns x / s rounded once to the element, by any rounding, and saturated: the reference.
 * s must be positive. `below_zero` is the sign of the number that is quantized. For a
 * residual, x is the rest that the first level leaves, which may have the other sign.
 * "Toward zero" and "away from zero" are directions of the number, so they are exchanged
 * for such an x. */
TF_NOINLINE float tf_round_quotient(struct tf_element e, float lowest, float greatest,
                                float x, float s, enum tf_rounding rounding,
                                uint64_t draw, int below_zero)
{
    const int negative = (int)(tf_bits_of(x) >> 31);
    if (x == 0) {
        return e.format >= 0 ? x : 0;
    }
    int ex, es;
    const uint64_t p = tf_significand(x, &ex), q = tf_significand(s, &es);
    /* 1. Find the result's unit in the last place. */
    const int top = ex - es - (p < q);
    int unit = -e.fraction;
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        const int least = tf_least_exponent(f);
        unit = top - f.mantissa_bits < least ? least : top - f.mantissa_bits;
    }
    const float bound = negative ? -lowest : greatest;
    if (top > 20) {
        return negative ? -bound : bound;
    }
    /* 2. Compute the quotient, 64 bits of its fraction, and whether there are more bits. */
    const int shift = ex - es - unit;
    const uint64_t dividend = shift > 0 ? p << shift : p;
    uint64_t kept = dividend / q, rest = dividend % q, fraction = 0;
    for (int i = 0; i < 2; i++) {
        fraction = fraction << 32 | (rest << 32) / q;
        rest = (rest << 32) % q;
    }
    int more = rest != 0;
    if (shift < -64) {
        kept = fraction = 0;
        more = 1;
    } else if (shift < 0) {
        more |= shift > -64 ? fraction << (64 + shift) != 0 : fraction != 0;
        fraction = kept << (64 + shift) | (shift > -64 ? fraction >> -shift : 0);
        kept = 0;
    }
    /* 3. Round. */
    int up = tf_rounds_up(rounding, negative, kept, fraction, more, draw);
    if (negative != below_zero) { /* toward zero is away from x's zero */
        const uint64_t half = UINT64_C(1) << 63;
        up = rounding == TF_TOWARD_ZERO    ? fraction != 0 || more
             : rounding == TF_TIES_TO_AWAY ? fraction > half || (fraction == half && more)
                                           : up;
    }
    kept += (uint64_t)up;
    float magnitude = (float)kept * tf_power_of_two(unit);
    magnitude = magnitude < bound ? magnitude : bound;
    return negative && (e.format >= 0 || kept) ? -magnitude : magnitude;
}

/* Returns x / s rounded to odd. q must be the exact quotient, or one of the two float32
 * numbers next to it. */
TF_INLINE float tf_to_odd(float q, float x, float s)
{
    const float rest = tf_fma(-q, s, x);
    const uint32_t bits = tf_bits_of(q);
    const uint32_t below = (bits ^ tf_bits_of(rest)) >> 31; /* q is too large */
    return rest == 0 ? q : tf_float_of((bits - below) | 1);
}

/* Returns x / s rounded to odd, which a later rounding to an element treats as the exact
 * quotient. The quotient must be at least 2^-100, and s from 2^-100 to 2^100. */
TF_INLINE float tf_quotient_to_odd(float x, float s)
{
    return tf_to_odd(x / s, x, s);
}

/* Returns x / s rounded to odd, by the inverse of s, which many numbers share. The second
 * quotient is exact, or one of the two float32 numbers next to the exact one. Before it is
 * rounded, its error is less than 2^-22 of a unit in its last place. */
TF_INLINE float tf_quotient_to_odd_by(float x, float s, float inverse)
{
    const float first = x * inverse;
    const float q = tf_fma(tf_fma(-first, s, x), inverse, first); /* +0 for x = -0 */
    return tf_with_sign(tf_magnitude_of(tf_to_odd(q, x, s)), x); /* mutant: a zero's sign */
}

#endif
