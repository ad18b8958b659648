/* Functions in float32, near enough for most results of tf32 and bfloat16, by vectors.
 *
 * A result is less than 3 ulps of float32 from the exact one, as measured over all
 * arguments of the domain that quick_near.c gives. Each expression is a few roundings and a
 * polynomial whose error is less than one of them. For tf32, quick_near.c allows for this
 * error and finds the results whose rounding is in doubt, which are computed again;
 * bfloat16 has none. No bit therefore depends on how these functions compute, and a
 * multiplication and an addition may be one operation or two. A result is zero only if the
 * exact one is. The tests compare all arguments.
 *
 * Arguments are numbers of a format, of 11 significant bits: the comments use this.
 *
 * Polynomials have the smallest maximum error, found by Lawson's iteration. */
#ifndef TF32DTYPE_UFUNCS_KERNELS_FUNCTIONS_H
#define TF32DTYPE_UFUNCS_KERNELS_FUNCTIONS_H

#include <math.h>

#include "formats/float_bits.h"

TF_INLINE float multiply_add(float a, float b, float c)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* Returns a magnitude, which must not have a sign, with the sign of x. */
TF_INLINE float with_sign_of(float magnitude, float x)
{
    return tf_float_of(tf_bits_of(magnitude) | (tf_bits_of(x) & TF_SIGN_BIT));
}

TF_INLINE float magnitude_of(float x)
{
    return tf_float_of(tf_bits_of(x) & TF_MAGNITUDE_BITS);
}

/* Compare magnitudes as integers: on arm64, gcc takes five steps for the opposite of a
 * comparison of floats, which is true for NaN. */
TF_INLINE int exceeds(float magnitude, float bound)
{
    return (int32_t)tf_bits_of(magnitude) > (int32_t)tf_bits_of(bound);
}

TF_INLINE float at_most(float magnitude, float bound)
{
    const int32_t bits = (int32_t)tf_bits_of(magnitude);
    const int32_t most = (int32_t)tf_bits_of(bound);
    return tf_float_of((uint32_t)(bits < most ? bits : most));
}

/* Returns the nearest integer k to |t| < 2^22, and writes k to the lower bits of *bits. */
TF_INLINE float nearest(float t, uint32_t *bits)
{
    const float to_integer = 0x1.8p+23f;
    const float shifted = t + to_integer;
    *bits = tf_bits_of(shifted);
    return shifted - to_integer;
}

/* -- exponentials ------------------------------------------------------------------ */

/* Returns e^r - 1 for x = k log 2 + r, and writes 2^k in the exponent's position. The
 * product of k with the upper 9 bits of log 2 is exact, and so is the difference. */
TF_INLINE float reduced_expm1(float x, uint32_t *power)
{
    const float k = nearest(x * 0x1.715476p+0f, power);
    *power <<= 23;
    float r = multiply_add(k, -0x1.63p-1f, x);
    r = multiply_add(k, 0x1.bd0106p-13f, r);
    float sum = 0x1.6dbc64p-10f;
    sum = multiply_add(sum, r, 0x1.124148p-7f);
    sum = multiply_add(sum, r, 0x1.555454p-5f);
    sum = multiply_add(sum, r, 0x1.555486p-3f);
    sum = multiply_add(sum, r, 0.5f);
    return multiply_add(sum * r, r, r);
}

/* Returns e^x for |x| < 88. */
TF_INLINE float exp_near(float x)
{
    uint32_t power;
    const float e = 1 + reduced_expm1(x, &power);
    return tf_float_of(tf_bits_of(e) + power);
}

/* Returns e^x - 1 for -30 < x < 88: 2^k (e^r - 1) + (2^k - 1), where the first term is
 * never near minus the second. */
TF_INLINE float expm1_within(float x)
{
    uint32_t power;
    const float e = reduced_expm1(x, &power);
    const float scale = tf_float_of(UINT32_C(0x3F800000) + power);
    return multiply_add(scale, e, scale - 1);
}

/* Returns 2^x for |x| < 126. */
TF_INLINE float exp2_near(float x)
{
    uint32_t power;
    const float r = x - nearest(x, &power);
    float sum = 0x1.448d96p-13f;
    sum = multiply_add(sum, r, 0x1.5f47c8p-10f);
    sum = multiply_add(sum, r, 0x1.3b29aep-7f);
    sum = multiply_add(sum, r, 0x1.c6aed0p-5f);
    sum = multiply_add(sum, r, 0x1.ebfbe0p-3f);
    sum = multiply_add(sum, r, 0x1.62e430p-1f);
    const float e = multiply_add(sum, r, 1.0f);
    return tf_float_of(tf_bits_of(e) + (power << 23));
}

TF_INLINE float expm1_near(float x)
{
    const float e = expm1_within(x > -30 ? x : -30); /* -1 in 11 bits, below -30 */
    return with_sign_of(e, x);
}

/* Returns sinh x for |x| < 88. */
TF_INLINE float sinh_near(float x)
{
    const float e = expm1_within(magnitude_of(x));
    const float sum = e + e / (e + 1);
    return with_sign_of(0.5f * sum, x);
}

/* Returns cosh x for |x| < 86, where 0.5/e is normal. */
TF_INLINE float cosh_near(float x)
{
    const float e = exp_near(magnitude_of(x));
    return multiply_add(0.5f, e, 0.5f / e);
}

TF_INLINE float tanh_near(float x)
{
    const float a = magnitude_of(x);
    const float e = expm1_within(at_most(2 * a, 20)); /* 1 in 11 bits, from 20 on */
    return with_sign_of(e / (e + 2), x);
}

/* -- logarithms -------------------------------------------------------------------- */

/* Returns log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2). */
TF_INLINE float log1p_within(float f)
{
    float sum = 0x1.6d45bap-4f;
    sum = multiply_add(sum, f, -0x1.25e450p-3f);
    sum = multiply_add(sum, f, 0x1.30ae3cp-3f);
    sum = multiply_add(sum, f, -0x1.5343a4p-3f);
    sum = multiply_add(sum, f, 0x1.98e42ep-3f);
    sum = multiply_add(sum, f, -0x1.000494p-2f);
    sum = multiply_add(sum, f, 0x1.5556b6p-2f);
    sum = multiply_add(sum, f, -0.5f);
    return multiply_add(sum * f, f, f);
}

/* Returns k and writes f, which is exact, for a normal number x = (1 + f) 2^k. */
TF_INLINE float split(float x, float *f)
{
    const uint32_t root = UINT32_C(0x3F3504F3); /* sqrt(1/2) */
    const uint32_t shifted = tf_bits_of(x) - root;
    *f = tf_float_of((shifted & TF_FRACTION_BITS) + root) - 1;
    return (float)((int32_t)shifted >> 23);
}

/* Returns k log 2 + log(1 + f). The first term is 0 or at least twice the other. */
TF_INLINE float log_of_parts(float k, float f)
{
    const float rest = multiply_add(k, -0x1.bd0106p-13f, log1p_within(f));
    return multiply_add(k, 0x1.63p-1f, rest);
}

TF_INLINE float log_near(float x)
{
    float f;
    const float k = split(x, &f);
    return log_of_parts(k, f);
}

TF_INLINE float log2_near(float x)
{
    float f;
    const float k = split(x, &f);
    return multiply_add(log1p_within(f), 0x1.715476p+0f, k);
}

TF_INLINE float log10_near(float x)
{
    float f;
    const float k = split(x, &f);
    const float rest = log1p_within(f) * 0x1.bcb7b2p-2f;
    return multiply_add(k, 0x1.344136p-2f, rest);
}

/* Returns log(1 + x). 1 + x is exact for a format's numbers unless near 1 or far above. */
TF_INLINE float log1p_near(float x)
{
    const float y = 1 + x;
    float f;
    const float k = split(y, &f);
    return with_sign_of(log_of_parts(k, k == 0 ? x : f), x);
}

/* Returns log(1 + t) with t = x + x^2/(1 + sqrt(1 + x^2)), or log(2 x) if x^2 hides 1. */
TF_INLINE float arcsinh_near(float x)
{
    const float a = magnitude_of(x), square = a * a;
    const float t = a + square / (1 + sqrtf(1 + square));
    return with_sign_of(log1p_near(exceeds(4096, a) ? t : 2 * a - 1), x);
}

/* Returns log(1 + t + sqrt(t (t + 2))) with t = x - 1, or log(2 x) if x^2 hides 1. */
TF_INLINE float arccosh_near(float x)
{
    const float t = x - 1;
    return log1p_near(exceeds(4096, x) ? t + sqrtf(t * (t + 2)) : 2 * x - 1);
}

TF_INLINE float arctanh_near(float x)
{
    const float a = magnitude_of(x);
    return with_sign_of(0.5f * log1p_near(2 * a / (1 - a)), x);
}

/* -- circles ----------------------------------------------------------------------- */

/* Returns x - k pi/2 for |x| < 8192, where k has 13 bits: its products with three
 * components of pi/2, of 11 bits each, are exact. No number of a format is so near a
 * multiple of pi/2 that the end of the fourth component matters. */
TF_INLINE float reduced_angle(float x, uint32_t *quarters)
{
    const float k = nearest(x * 0x1.45f306p-1f, quarters);
    float r = multiply_add(k, -0x1.92p+0f, x);
    r = multiply_add(k, -0x1.fb4p-12f, r);
    r = multiply_add(k, -0x1.444p-24f, r);
    return multiply_add(k, -0x1.68c234p-39f, r);
}

/* Returns sin(x + quarters pi/2). */
TF_INLINE float sine_near(float x, uint32_t quarters)
{
    uint32_t k;
    const float r = reduced_angle(x, &k), square = r * r;
    float sine = -0x1.993d4cp-13f;
    sine = multiply_add(sine, square, 0x1.11072ep-7f);
    sine = multiply_add(sine, square, -0x1.555546p-3f);
    sine = with_sign_of(multiply_add(sine * square, r, r), r);
    float cosine = 0x1.99f2bcp-16f;
    cosine = multiply_add(cosine, square, -0x1.6c0c56p-10f);
    cosine = multiply_add(cosine, square, 0x1.55554ap-5f);
    cosine = multiply_add(cosine, square, -0.5f);
    cosine = multiply_add(cosine, square, 1.0f);
    k += quarters;
    return tf_float_of(tf_bits_of(k & 1 ? cosine : sine) ^ (k & 2) << 30);
}

TF_INLINE float tan_near(float x)
{
    uint32_t k;
    const float r = reduced_angle(x, &k), square = r * r;
    float sum = 0x1.399c82p-7f;
    sum = multiply_add(sum, square, 0x1.6ea590p-9f);
    sum = multiply_add(sum, square, 0x1.93adcap-6f);
    sum = multiply_add(sum, square, 0x1.b50bbap-5f);
    sum = multiply_add(sum, square, 0x1.1131cap-3f);
    sum = multiply_add(sum, square, 0x1.5554cap-2f);
    const float tangent = with_sign_of(multiply_add(sum * square, r, r), r);
    return k & 1 ? -1 / tangent : tangent;
}

/* Returns arcsin x for |x| <= 1/2. */
TF_INLINE float arcsin_within(float x)
{
    const float square = x * x;
    float sum = 0x1.59dab6p-5f;
    sum = multiply_add(sum, square, 0x1.8ba26cp-6f);
    sum = multiply_add(sum, square, 0x1.748c62p-5f);
    sum = multiply_add(sum, square, 0x1.33014ep-4f);
    sum = multiply_add(sum, square, 0x1.5555cap-3f);
    return multiply_add(sum * square, x, x);
}

/* Returns arcsin x, from 1/2 on pi/2 - 2 arcsin sqrt((1 - x)/2), where 1 - x is exact. */
TF_INLINE float arcsin_near(float x)
{
    const float a = magnitude_of(x);
    const int is_great = exceeds(a, 0.5f);
    const float y = arcsin_within(is_great ? sqrtf(0.5f - 0.5f * a) : a);
    return with_sign_of(is_great ? multiply_add(-2, y, 0x1.921fb6p+0f) : y, x);
}

TF_INLINE float arccos_near(float x)
{
    const float a = magnitude_of(x);
    const int is_great = exceeds(a, 0.5f);
    const float y = arcsin_within(is_great ? sqrtf(0.5f - 0.5f * a) : x);
    const float great = x < 0 ? multiply_add(-2, y, 0x1.921fb6p+1f) : 2 * y;
    return is_great ? great : 0x1.921fb6p+0f - y;
}

/* Returns arctan x, from tan(pi/8) on pi/4 + arctan((x - 1)/(x + 1)), and from tan(3 pi/8)
 * on pi/2 - arctan(1/x). */
TF_INLINE float arctan_near(float x)
{
    const float a = at_most(magnitude_of(x), 0x1p40f); /* pi/2 in 11 bits, from this on */
    const int is_great = exceeds(a, 0x1.3504f4p+1f);
    const int is_middle = exceeds(a, 0x1.a8279ap-2f);
    const float above = is_great ? -1 : is_middle ? a - 1 : a;
    const float below = is_great ? a : is_middle ? a + 1 : 1;
    const float base = is_great ? 0x1.921fb6p+0f : is_middle ? 0x1.921fb6p-1f : 0;
    const float z = above / below, square = z * z;
    float sum = 0x1.4923d6p-4f;
    sum = multiply_add(sum, square, -0x1.1c1d16p-3f);
    sum = multiply_add(sum, square, 0x1.9922b2p-3f);
    sum = multiply_add(sum, square, -0x1.55544ep-2f);
    return with_sign_of(base + multiply_add(sum * square, z, z), x);
}

/* -- others ------------------------------------------------------------------------ */

/* Returns the cube root of a normal number x = m 2^(3 q + s), 1 <= m < 2. A polynomial
 * gives the inverse y of m's root, off by 2^-14 of itself, and m y^2 the root. A step of
 * Newton's method follows, without a division. */
TF_INLINE float cbrt_near(float x)
{
    const float a = magnitude_of(x);
    const uint32_t bits = tf_bits_of(a);
    const uint32_t exponent = (bits >> 23) + 2; /* 129 = 3 * 43 too large */
    const uint32_t q = exponent * 171 >> 9, s = exponent - 3 * q;
    const float m = tf_float_of((bits & TF_FRACTION_BITS) | UINT32_C(0x3F800000));
    float y = 0x1.d46f6ep-6f;
    y = multiply_add(y, m, -0x1.c51856p-3f);
    y = multiply_add(y, m, 0x1.64164ap-1f);
    y = multiply_add(y, m, -0x1.2c41e0p+0f);
    y = multiply_add(y, m, 0x1.ab8590p+0f);
    float root = m * (y * y);
    root = multiply_add(root * multiply_add(-root, y, 1.0f), 0x1.555556p-1f, root);
    /* The bits of 2^(s/3 - 43). q is added in the exponent's position. */
    const uint32_t part = s > 1   ? UINT32_C(0x2A4B2FF5)
                          : s > 0 ? UINT32_C(0x2A214518)
                                  : UINT32_C(0x2A000000);
    const float scale = tf_float_of(part + (q << 23));
    return with_sign_of(a == 0 ? a : root * scale, x);
}

#endif
