/* Binary functions in float64 that are near enough for most results, by vectors.
 *
 * A result is within 2^-28 of itself from the exact one, or NaN if that is not known.
 * Results of hypot round as the exact ones. Rounding to 11 bits or fewer gives the exact
 * result's rounding, unless a number halfway between two is that near: TF_PLAIN_NAME(tf_doubtful)
 * finds such results, and binary_chunk.c computes them again. No bit therefore depends on
 * how these functions compute, and a multiplication and an addition may be one operation or
 * two.
 *
 * Operands are numbers of a format: 11 significant bits, 2^-136 <= |x| < 2^128. */
#include <math.h>
#include <string.h>

#include "formats/float_bits.h"
#include "ufuncs/kernels/decls.h"
#include "ufuncs/surely.h"

TF_INLINE double multiply_add(double a, double b, double c)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

TF_INLINE uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TF_INLINE double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns 1/1 + s/3 + s^2/5 + ... + s^10/21: artanh(z)/z for s = z^2, arctan(z)/z for
 * s = -z^2 (Abramowitz and Stegun 4.6.33, 4.4.42). Even and odd terms are apart: one chain
 * of operations would be twice as long, and a reduction waits for it at each step. */
TF_INLINE double odd_series(double s)
{
    const double square = s * s;
    double even = 1.0 / 21, odd = 1.0 / 19;
    even = multiply_add(even, square, 1.0 / 17);
    odd = multiply_add(odd, square, 1.0 / 15);
    even = multiply_add(even, square, 1.0 / 13);
    odd = multiply_add(odd, square, 1.0 / 11);
    even = multiply_add(even, square, 1.0 / 9);
    odd = multiply_add(odd, square, 1.0 / 7);
    even = multiply_add(even, square, 1.0 / 5);
    odd = multiply_add(odd, square, 1.0 / 3);
    even = multiply_add(even, square, 1.0);
    return multiply_add(odd, s, even);
}

/* Returns log2 x for a positive normal double: x = m 2^k, m from sqrt(1/2) to sqrt(2), and
 * log m = 2 artanh z, z = (m - 1)/(m + 1), |z| < 0.1716. The first term left out is
 * z^22/23 < 2^-60, so that all errors come from rounding: they are below 2^-50 of log2 x,
 * as k is 0 or at least twice log2 m. */
TF_INLINE double log2_of(double x)
{
    const uint64_t root = UINT64_C(0x3FE6A09E667F3BCD); /* sqrt(1/2) */
    const uint64_t shifted = bits_of(x) - root;
    const int64_t k = (int64_t)shifted >> 52;
    const double m = double_of((shifted & ((UINT64_C(1) << 52) - 1)) + root);
    const double z = (m - 1) / (m + 1);
    const double log2_e_twice = 0x1.71547652b82fep+1;
    return multiply_add(z * log2_e_twice, odd_series(z * z), (double)(int32_t)k);
}

/* Returns 2^t for |t| <= 1000: t = k + f, |f| <= 1/2, by the series of e^(f log 2),
 * |f log 2| < 0.3466. The first term left out is below 2^-37, and so are all later ones
 * together. */
TF_INLINE double exp2_of(double t)
{
    const double to_integer = 0x1.8p+52;
    const double shifted = t + to_integer;
    const double x = (t - (shifted - to_integer)) * 0x1.62e42fefa39efp-1;
    const double square = x * x;
    double odd = 1.0 / 362880, even = 1.0 / 40320;
    odd = multiply_add(odd, square, 1.0 / 5040);
    even = multiply_add(even, square, 1.0 / 720);
    odd = multiply_add(odd, square, 1.0 / 120);
    even = multiply_add(even, square, 1.0 / 24);
    odd = multiply_add(odd, square, 1.0 / 6);
    even = multiply_add(even, square, 1.0 / 2);
    odd = multiply_add(odd, square, 1.0);
    even = multiply_add(even, square, 1.0);
    const double sum = multiply_add(odd, x, even);
    return double_of(bits_of(sum) + (bits_of(shifted) << 52));
}

TF_INLINE double within(double t, double bound)
{
    return t > bound ? bound : t < -bound ? -bound : t;
}

/* Returns x^y. y log2 x is off by 2^-50 of itself: for a power within the range, by at most
 * 2^-42, and the power is off by as much. Powers out of range stay out of range. */
TF_INLINE double power_near(double x, double y)
{
    const double power = exp2_of(within(y * log2_of(x), 1000));
    const int known = (x > 0) & (x < INFINITY) & (fabs(y) < INFINITY);
    return known ? power : NAN;
}

/* Returns hypot(x, y), which rounds as the exact result does, whatever the operands. Let
 * the larger one be an integer of 11 bits, and h halfway between two such integers. The
 * root can be near h only if the smaller operand is above 2^-6 of the larger one, since h^2
 * is at least 2^10 away from the larger one's square. Then all squares are multiples of
 * 2^-12: their sum is exact. It equals h^2, whose root is exact too, or is at least 2^-36
 * of h^2 away. If h is between two subnormal numbers, there are only fewer bits. */
TF_INLINE double hypot_near(double x, double y)
{
    const double root = sqrt(x * x + y * y);
    const uint64_t infinity = UINT64_C(0x7FF) << 52; /* see exceeds() in functions.h */
    const int first = bits_of(fabs(x)) == infinity, second = bits_of(fabs(y)) == infinity;
    return first | second ? INFINITY : root;
}

/* Returns atan2(y, x). Let q be the smaller magnitude over the larger one. The angle is
 * arctan q, or from tan(pi/8) on pi/4 + arctan((q - 1)/(q + 1)), so that the argument z is
 * below 0.4143. The first term left out is z^22/23 < 2^-32. Symmetry gives the rest of the
 * circle by subtractions, which leave at least half of the minuend. */
TF_INLINE double arctan2_near(double y, double x)
{
    const double a = fabs(x), b = fabs(y);
    const double greater = a > b ? a : b, lesser = a > b ? b : a;
    /* A factor, not a condition, for which gcc would compute the series twice. */
    const double steep = lesser > greater * 0x1.a827999fcef32p-2 ? 1 : 0; /* tan(pi/8) */
    const double below = greater == 0 ? 1 : greater; /* two zeros have a quotient, too */
    const double z = multiply_add(-steep, greater, lesser) /
                     multiply_add(steep, lesser, below);
    const double quarter = 0x1.921fb54442d18p-1; /* pi/4 */
    double angle = multiply_add(z, odd_series(-(z * z)), steep * quarter);
    angle = b > a ? 2 * quarter - angle : angle;
    angle = bits_of(x) >> 63 ? 4 * quarter - angle : angle;
    const int known = (a < INFINITY) & (b < INFINITY);
    return known ? copysign(angle, y) : NAN;
}

/* Returns the larger operand + log(1 + u), u = 2^-t: log(1 + u) = 2 artanh z, z = u/(2 + u)
 * <= 1/3. The first term left out is z^22/23 < 2^-39. u is off by 2^-36.5 of itself, and so
 * the logarithm, to either base, by less than 2^-36.6. If the sum cancels more than three
 * bits, and is below 2^-8, it is not known. */
TF_INLINE double log_add(double x, double y, double log2_of_base, double log_of_2)
{
    const double greater = x > y ? x : y, lesser = x > y ? y : x;
    const double u = exp2_of(within((lesser - greater) * log2_of_base, 1000));
    const double z = u / (2 + u);
    const double term = 2 * log_of_2 * z * odd_series(z * z);
    const double sum = greater + term;
    const double eighth = fabs(greater) * 0.125;
    const double least = eighth < 0x1p-8 ? eighth : 0x1p-8;
    const int known = (fabs(sum) >= least) & (x == x) & (y == y) & (greater < INFINITY) &
                      (lesser > -INFINITY);
    return known ? sum : NAN;
}

/* Returns fmod(x, y), exact for a quotient below 2^40. Such a quotient is an integer or at
 * least 2^-51 of itself away from each, so it truncates to the right one. That times y has
 * 51 bits; the rest is a multiple of both operands' units, and smaller than y. */
TF_INLINE double fmod_near(double x, double y)
{
    const double quotient = x / y;
    const double rest = x - trunc(quotient) * y;
    return fabs(quotient) < 0x1p40 ? copysign(rest, x) : NAN;
}

/* Returns the remainder with the divisor's sign, as in Python; a sum may be rounded. One
 * comparison finds a rest of the other sign: a loop with more makes no vectors. */
TF_INLINE double remainder_near(double x, double y)
{
    const double rest = fmod_near(x, y);
    return copysign(rest + (rest * y < 0 ? y : 0), y);
}

#define NEAR(name, expression)                                                 \
    static void name(const float *a, const float *b, double *r, size_t n)      \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            const double x = (double)a[i], y = (double)b[i];                   \
            r[i] = (expression);                                               \
        }                                                                      \
    }
NEAR(remainder_, remainder_near(x, y))
NEAR(fmod_, fmod_near(x, y))
NEAR(power, power_near(x, y))
NEAR(hypot_, hypot_near(x, y))
NEAR(arctan2, arctan2_near(x, y))
NEAR(logaddexp, log_add(x, y, 0x1.71547652b82fep+0, 1.0))
NEAR(logaddexp2, log_add(x, y, 1.0, 0x1.71547652b82fep+0))

tf_binary_f64_fn *const TF_PLAIN_NAME(tf_binary_near)[TF_BINARY_COUNT] = {
    [TF_REMAINDER] = remainder_,
    [TF_FMOD] = fmod_,
    [TF_POWER] = power,
    [TF_ARCTAN2] = arctan2,
    [TF_HYPOT] = hypot_,
    [TF_LOGADDEXP] = logaddexp,
    [TF_LOGADDEXP2] = logaddexp2,
};

/* -- results in doubt --------------------------------------------------------------- */

/* Lists the results in doubt and returns how many. A result not in doubt is 16 times the
 * error away from each rounding boundary, or far out of range for float32's exponents, or
 * zero, which no rounding gave. */
size_t TF_PLAIN_NAME(tf_doubtful)(const double *r, size_t n, int mantissa_bits,
                            uint16_t *which)
{
    const uint64_t too_great = (UINT64_C(1023) + 130) << 52;
    const uint64_t too_small = (UINT64_C(1023) - 140) << 52;
    const uint64_t infinity = UINT64_C(0x7FF) << 52;
    uint8_t doubts[TF_CHUNK], some = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t magnitude = bits_of(r[i]) & INT64_MAX;
        const int is_far = (magnitude - too_great < infinity - too_great) |
                           (magnitude < too_small);
        doubts[i] = !(tf_rounds_surely(magnitude, mantissa_bits) | is_far);
        some |= doubts[i];
    }
    size_t count = 0;
    for (size_t i = 0; some && i < n; i++) {
        which[count] = (uint16_t)i;
        count += doubts[i];
    }
    size_t left = 0;
    for (size_t k = 0; k < count; k++) {
        const uint16_t i = which[k];
        const int is_tiny = fabs(r[i]) < 0x1p-126; /* few are: a branch */
        if (!is_tiny || !tf_tiny_rounds_surely(r[i], mantissa_bits)) {
            which[left++] = i;
        }
    }
    return left;
}
