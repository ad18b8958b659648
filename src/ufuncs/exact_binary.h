/* The hard cases of binary functions: results rounded to odd at 53 bits.
 *
 * A libm result close to a rounding boundary of a narrow format does not show on which side
 * of it the exact result is. The five tf_odd_ functions return the exact result if it is a
 * double, else the one of its two neighbors among doubles whose last bit is odd. Rounding
 * such a double to a format of at most 51 bits gives the exact result's rounding (Boldo and
 * Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
 * rounding to odd", IEEE Trans. Computers 57(4), 2008). Magnitudes above the largest
 * double, whose last bit is odd, give the largest double, and those below the smallest
 * subnormal give that. No result becomes infinite or zero.
 *
 * Arguments are finite, with at most 11 significant bits and 2^-136 <= |x| < 2^128, or zero
 * unless excluded below. Every finite value of every format is such a number.
 *
 * All work is done in integers of 128 bits: no rounding mode matters, and no floating-point
 * flag is read or raised. A call takes a few microseconds. Freestanding, so that C and CUDA
 * compile it.
 *
 * Each function approximates its result with a relative error below 2^-110 and ends in
 * tf_wide_snap_near_double() and tf_wide_to_odd(). An approximation farther than 2^-106
 * from every double decides. A closer one belongs to an exact result or to one of the few
 * families of the form "double + tiny", whose side is known beforehand; each function says
 * which. Other results are like random numbers. The chance that any of the 2^38 pairs of
 * 19-bit arguments comes so close to a double of 53 bits is below 2^-13. (logaddexp loses c
 * bits where its two terms cancel, but only for one pair in 2^c: the bound stays.) */
#ifndef TF32DTYPE_UFUNCS_EXACT_BINARY_H
#define TF32DTYPE_UFUNCS_EXACT_BINARY_H

#include <stdint.h>
#include <string.h>

#include "runtime/wide_integers.h"

/* Returns whether x has a sign bit, as -0 has. */
static inline int tf_has_sign(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 63);
}

#define TF_U128(high, low) ((tf_u128)UINT64_C(high) << 64 | UINT64_C(low))
#define TF_WIDE_ONE ((tf_u128)1 << 127)

/* The number (-1)^negative * fraction/2^127 * 2^exponent. The top bit of fraction is set,
 * or fraction is 0, which means zero. */
struct tf_wide {
    int negative;
    int exponent;
    tf_u128 fraction;
};

static inline struct tf_wide tf_wide_of(int negative, int exponent, tf_u128 fraction)
{
    const struct tf_wide w = {negative, exponent, fraction};
    return w;
}

static const struct tf_wide tf_wide_zero = {0, 0, 0};
static const struct tf_wide tf_wide_one = {0, 0, TF_WIDE_ONE};
static const struct tf_wide tf_wide_pi = {
    0, 1, TF_U128(0xC90FDAA22168C234, 0xC4C6628B80DC1CD1)};
static const struct tf_wide tf_wide_log2_of_e = {
    0, 0, TF_U128(0xB8AA3B295C17F0BB, 0xBE87FED0691D3E88)};
static const struct tf_wide tf_wide_arctan_of_half = {
    0, -2, TF_U128(0xED63382B0DDA7B45, 0x6FE445ECBC3A8D03)};
/* log 2 times 2^128; sqrt 2 times 2^127, which need not be exact. */
static const tf_u128 tf_wide_log_of_2 = TF_U128(0xB17217F7D1CF79AB, 0xC9E3B39803F2F6AF);
static const tf_u128 tf_wide_root_of_2 = TF_U128(0xB504F333F9DE6484, 0);

/* -- arithmetic ------------------------------------------------------------ */
/* Results that fit in 128 bits are exact. Other products and quotients are off by less than
 * 2^-125 of themselves, other sums by less than 2^-125 of the larger operand. */

/* Returns x / 2^n. Bits that are shifted out set the last bit. */
static inline tf_u128 tf_wide_shift_right(tf_u128 x, int n)
{
    if (n <= 0) {
        return x;
    }
    if (n >= 128) {
        return x != 0;
    }
    return x >> n | (x << (128 - n) != 0);
}

static inline struct tf_wide tf_wide_make(int negative, int exponent, tf_u128 fraction)
{
    if (fraction == 0) {
        return tf_wide_zero;
    }
    const uint64_t high = (uint64_t)(fraction >> 64);
    const int zeros = high ? tf_leading_zeros(high)
                           : 64 + tf_leading_zeros((uint64_t)fraction);
    return tf_wide_of(negative, exponent - zeros, fraction << zeros);
}

/* Returns |x|; x is not subnormal. */
static inline struct tf_wide tf_wide_abs(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT64_MAX >> 1;
    if (bits == 0) {
        return tf_wide_zero;
    }
    const uint64_t significand = (bits & (UINT64_MAX >> 12)) | UINT64_C(1) << 52;
    return tf_wide_of(0, (int)(bits >> 52) - 1023, (tf_u128)significand << 75);
}

static inline struct tf_wide tf_wide_from_double(double x)
{
    struct tf_wide w = tf_wide_abs(x);
    w.negative = x < 0;
    return w;
}

static inline struct tf_wide tf_wide_scaled(struct tf_wide a, int exponent)
{
    a.exponent += exponent;
    return a;
}

static inline struct tf_wide tf_wide_negated(struct tf_wide a)
{
    a.negative = !a.negative;
    return a;
}

/* Returns a + b. The last bit is set if digits of the smaller operand were dropped. */
static inline struct tf_wide tf_wide_add(struct tf_wide a, struct tf_wide b)
{
    if (b.fraction == 0) {
        return a;
    }
    if (a.fraction == 0) {
        return b;
    }
    if (a.exponent < b.exponent ||
        (a.exponent == b.exponent && a.fraction < b.fraction)) {
        const struct tf_wide larger = b;
        b = a;
        a = larger;
    }
    const int gap = a.exponent - b.exponent;
    if (a.negative == b.negative) {
        return tf_wide_make(a.negative, a.exponent + 1,
                            tf_wide_shift_right(a.fraction, 1) +
                                tf_wide_shift_right(b.fraction, gap + 1));
    }
    return tf_wide_make(a.negative, a.exponent,
                        a.fraction - tf_wide_shift_right(b.fraction, gap));
}

/* Returns a * b / 2^128, rounded down. */
static inline tf_u128 tf_wide_high_product(tf_u128 a, tf_u128 b)
{
    const uint64_t a1 = (uint64_t)(a >> 64), a0 = (uint64_t)a;
    const uint64_t b1 = (uint64_t)(b >> 64), b0 = (uint64_t)b;
    const tf_u128 cross = (tf_u128)a1 * b0, other = (tf_u128)a0 * b1;
    const tf_u128 middle = ((tf_u128)a0 * b0 >> 64) + (uint64_t)cross + (uint64_t)other;
    return (tf_u128)a1 * b1 + (cross >> 64) + (other >> 64) + (middle >> 64);
}

static inline struct tf_wide tf_wide_multiply(struct tf_wide a, struct tf_wide b)
{
    return tf_wide_make(a.negative != b.negative, a.exponent + b.exponent + 1,
                        tf_wide_high_product(a.fraction, b.fraction));
}

/* Returns a / b by long division, one bit per step; b is not zero. */
static inline struct tf_wide tf_wide_divide(struct tf_wide a, struct tf_wide b)
{
    const int below = a.fraction < b.fraction;
    tf_u128 rest = a.fraction, quotient = 0;
    int carry = 0;
    for (int bit = -below; bit < 128; bit++) {
        const int fits = carry || rest >= b.fraction;
        rest -= fits ? b.fraction : 0;
        quotient = quotient << 1 | (unsigned)fits;
        carry = rest >> 127 != 0;
        rest <<= 1;
    }
    return tf_wide_make(a.negative != b.negative, a.exponent - b.exponent - below,
                        quotient);
}

/* Returns floor(sqrt(x)), one bit per step. */
static inline uint64_t tf_wide_square_root(tf_u128 x)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 63; bit != 0; bit >>= 1) {
        const uint64_t next = root | bit;
        if ((tf_u128)next * next <= x) {
            root = next;
        }
    }
    return root;
}

/* Returns |a| modulo 1, times 2^128, rounded down. */
static inline tf_u128 tf_wide_fraction(struct tf_wide a)
{
    const int shift = a.exponent + 1;
    if (shift >= 0) {
        return shift < 128 ? a.fraction << shift : 0;
    }
    return shift > -128 ? a.fraction >> -shift : 0;
}

/* -- functions ------------------------------------------------------------- */

/* Returns artanh s = s (1 + s^2/3 + s^4/5 + ...), or with alternating signs arctan s
 * (Abramowitz and Stegun 4.6.33, 4.4.42), for |s| <= 1/3. The first term left out is
 * 9^-41/83 < 2^-136. */
static inline struct tf_wide tf_wide_odd_series(struct tf_wide s, int alternating)
{
    const tf_u128 square = tf_wide_fraction(tf_wide_multiply(s, s));
    tf_u128 sum = 0;
    for (unsigned k = 41; k-- > 0;) {
        const tf_u128 higher = tf_wide_high_product(square, sum);
        sum = TF_WIDE_ONE / (2 * k + 1) + (alternating ? -higher : higher);
    }
    return tf_wide_multiply(s, tf_wide_make(0, 0, sum));
}

/* Returns log2 |x|. With |x| = f 2^k and f within [sqrt(1/2), sqrt(2)], log f is
 * 2 artanh((f - 1)/(f + 1)). Nothing cancels, as f - 1 is exact. */
static inline struct tf_wide tf_wide_log2(double x)
{
    struct tf_wide f = tf_wide_abs(x);
    int k = f.exponent;
    f.exponent = 0;
    if (f.fraction > tf_wide_root_of_2) {
        f.exponent = -1;
        k++;
    }
    const struct tf_wide below = tf_wide_add(f, tf_wide_negated(tf_wide_one));
    const struct tf_wide s = tf_wide_divide(below, tf_wide_add(f, tf_wide_one));
    const struct tf_wide half = tf_wide_multiply(tf_wide_odd_series(s, 0),
                                                 tf_wide_log2_of_e);
    return tf_wide_add(tf_wide_from_double(k), tf_wide_scaled(half, 1));
}

/* Returns 2^z = 2^n e^(r log 2), with n the integer below z, and e^r by its power series
 * (the first term left out is below 2^-139). For |z| >= 2^14 returns 2^+-16384, which acts
 * as infinity or zero but keeps its sign and its position in a sum. */
static inline struct tf_wide tf_wide_exp2(struct tf_wide z)
{
    if (z.fraction != 0 && z.exponent >= 14) {
        return tf_wide_of(0, z.negative ? -16384 : 16384, TF_WIDE_ONE);
    }
    int n = z.exponent < 0 ? 0 : (int)(z.fraction >> (127 - z.exponent));
    tf_u128 r = tf_wide_fraction(z);
    if (z.negative) {
        n = -n - (r != 0);
        r = -r;
    }
    r = tf_wide_high_product(r, tf_wide_log_of_2);
    tf_u128 sum = TF_WIDE_ONE;
    for (unsigned k = 34; k > 0; k--) {
        sum = TF_WIDE_ONE + tf_wide_high_product(r, sum) / k;
    }
    return tf_wide_make(0, n, sum);
}

/* -- the last step --------------------------------------------------------- */

/* Replaces a number within 2^-106 of a double by that double, moved by the smallest amount
 * away from zero (`outward` is 1) or toward zero (-1), or left exact (0). */
static inline struct tf_wide tf_wide_snap_near_double(struct tf_wide w, int outward)
{
    const tf_u128 unit = (tf_u128)1 << 75, close = (tf_u128)1 << 22;
    const tf_u128 above = w.fraction & (unit - 1);
    if (w.fraction == 0 || (above >= close && unit - above >= close)) {
        return w;
    }
    w.fraction += above < close ? -above : unit - above;
    if (w.fraction == 0) {
        w.fraction = TF_WIDE_ONE;
        w.exponent++;
    }
    w.fraction += outward < 0 ? ~(tf_u128)0 : (tf_u128)(outward > 0);
    return tf_wide_make(w.negative, w.exponent, w.fraction);
}

static inline double tf_wide_to_odd(struct tf_wide w)
{
    uint64_t bits = 0;
    if (w.exponent > 1023) {
        bits = UINT64_C(0x7FEFFFFFFFFFFFFF);
    } else if (w.fraction != 0) {
        const int below = w.exponent < -1022 ? -1022 - w.exponent : 0;
        /* The significand's leading bit, if set, adds one to the exponent field. */
        bits = (uint64_t)(w.exponent + below + 1022) << 52;
        bits += (uint64_t)tf_wide_shift_right(w.fraction, 75 + below);
    }
    bits |= (uint64_t)w.negative << 63;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* -- power ----------------------------------------------------------------- */

/* Writes `odd` and returns the exponent of |x| = odd * 2^exponent; x is not zero. */
static inline int tf_wide_odd_part(double x, uint64_t *odd)
{
    const struct tf_wide w = tf_wide_abs(x);
    const uint64_t significand = (uint64_t)(w.fraction >> 64);
    const int zeros = tf_trailing_zeros(significand);
    *odd = significand >> zeros;
    return w.exponent - 63 + zeros;
}

/* Returns whether |x|^y is an integer times a power of two. Let |x| = m 2^e with m odd, and
 * y = n 2^k with n odd. For k < 0 the root must be exact, else the power is irrational.
 * Then for y < 0, m^|y| must be 1, as it is a denominator. */
static inline int tf_wide_is_dyadic_power(double x, double y)
{
    uint64_t m, n;
    int e = tf_wide_odd_part(x, &m);
    for (int k = tf_wide_odd_part(y, &n); k < 0; k++) {
        const uint64_t root = tf_wide_square_root(m);
        if (root * root != m || e % 2 != 0) {
            return 0;
        }
        m = root;
        e /= 2;
    }
    return m == 1 || y > 0;
}

/* Returns x**y for x other than zero, and an integer y if x is negative. y = 0 gives 1.
 *
 * Near a double are the exact powers, and 1 + y log x for tiny y log x. (A dyadic power of
 * up to 104 bits that is not a double is at least 2^-104 away from each double.) */
static inline double tf_odd_power(double x, double y)
{
    if (y == 0) {
        return 1; /* tf_wide_odd_part() does not take 0 */
    }
    const struct tf_wide exponent =
        tf_wide_multiply(tf_wide_from_double(y), tf_wide_log2(x));
    struct tf_wide power = tf_wide_exp2(exponent);
    const int outward = exponent.negative ? -1 : 1;
    const int is_exact = tf_wide_is_dyadic_power(x, y);
    power = tf_wide_snap_near_double(power, is_exact ? 0 : outward);
    uint64_t odd;
    power.negative = x < 0 && tf_wide_odd_part(y, &odd) == 0;
    return tf_wide_to_odd(power);
}

/* -- hypot ----------------------------------------------------------------- */

/* Returns sqrt(x**2 + y**2).
 *
 * The result is exact. The squares have 22 bits. If their sum has more than 128 bits, the
 * last bit is set for the rest. The integer square root is exact except for a remainder,
 * which becomes the last bit again. */
static inline double tf_odd_hypot(double x, double y)
{
    const struct tf_wide a = tf_wide_abs(x), b = tf_wide_abs(y);
    struct tf_wide sum = tf_wide_add(tf_wide_multiply(a, a), tf_wide_multiply(b, b));
    if (sum.fraction == 0) {
        return 0;
    }
    const int odd = sum.exponent % 2 == 0; /* exponent - 127 is odd */
    const tf_u128 square = tf_wide_shift_right(sum.fraction, odd);
    const uint64_t root = tf_wide_square_root(square);
    const tf_u128 inexact = (tf_u128)root * root != square;
    return tf_wide_to_odd(tf_wide_make(0, (sum.exponent + odd - 1) / 2,
                                       (tf_u128)root << 64 | inexact));
}

/* -- arctan2 --------------------------------------------------------------- */

/* Returns the angle of the point (x, y), with signed zeros as in C's atan2.
 *
 * The arctangent of a rational number other than zero is transcendental, so only zero is
 * exact. Near a double is a tiny y/x, whose arctangent is below y/x. Any other y/x that is
 * not a double is at least 2^-65 away from each double (x has 11 bits). */
static inline double tf_odd_arctan2(double y, double x)
{
    struct tf_wide p = tf_wide_abs(y), q = tf_wide_abs(x), angle = {0, 0, 0};
    const struct tf_wide difference = tf_wide_add(p, tf_wide_negated(q));
    const int steep = !difference.negative && difference.fraction != 0;
    if (steep) {
        const struct tf_wide swap = p;
        p = q;
        q = swap;
    }
    if (p.fraction != 0 && q.exponent - p.exponent < 2) {
        /* arctan(p/q) - arctan(1/2) = arctan s, |s| <= 1/3. */
        const struct tf_wide s =
            tf_wide_divide(tf_wide_add(tf_wide_scaled(p, 1), tf_wide_negated(q)),
                           tf_wide_add(tf_wide_scaled(q, 1), p));
        angle = tf_wide_add(tf_wide_arctan_of_half, tf_wide_odd_series(s, 1));
    } else if (p.fraction != 0) {
        angle = tf_wide_odd_series(tf_wide_divide(p, q), 1);
    }
    if (steep) {
        angle = tf_wide_add(tf_wide_scaled(tf_wide_pi, -1), tf_wide_negated(angle));
    }
    if (tf_has_sign(x)) {
        angle = tf_wide_add(tf_wide_pi, tf_wide_negated(angle));
    }
    angle = tf_wide_snap_near_double(angle, -1);
    angle.negative = tf_has_sign(y);
    return tf_wide_to_odd(angle);
}

/* -- logaddexp ------------------------------------------------------------- */

/* Returns a + log(1 + e^-d), in base e or 2, where a is the larger argument and d the
 * difference; log(1 + u) = 2 artanh(u/(2 + u)).
 *
 * Only base 2 with d = 0 is exact. (In base e, by Lindemann and Weierstrass. In base 2,
 * 1 + 2^-d = 2^r with dyadic d and r is a relation among powers of a root of 2. Its minimal
 * polynomial x^q - 2 leaves only d = 0.) Near a double is a plus a tiny term, above a. In
 * base 2 with nearly equal arguments, 1 + mean + log(2) d^2/8 is near 1 + mean, and above
 * it. If both arguments are so tiny that the result is near 1, the mean's sign decides. */
static inline double tf_wide_log_add(double x, double y, int base2)
{
    const double larger = x < y ? y : x, smaller = x < y ? x : y;
    const struct tf_wide a = tf_wide_from_double(larger);
    const struct tf_wide b = tf_wide_from_double(smaller);
    if (base2 && larger == smaller) {
        return tf_wide_to_odd(tf_wide_add(a, tf_wide_one));
    }
    struct tf_wide exponent = tf_wide_add(b, tf_wide_negated(a));
    if (!base2) {
        exponent = tf_wide_multiply(exponent, tf_wide_log2_of_e);
    }
    const struct tf_wide u = tf_wide_exp2(exponent);
    const struct tf_wide two = tf_wide_scaled(tf_wide_one, 1);
    const struct tf_wide s = tf_wide_divide(u, tf_wide_add(u, two));
    struct tf_wide term = tf_wide_scaled(tf_wide_odd_series(s, 0), 1);
    if (base2) {
        term = tf_wide_multiply(term, tf_wide_log2_of_e);
    }
    const struct tf_wide sum = tf_wide_add(a, term);
    const int tiny = larger < 0x1p-60 && smaller > -0x1p-60;
    const int downward = base2 && tiny && tf_wide_add(a, b).negative;
    const int outward = sum.negative || downward ? -1 : 1;
    return tf_wide_to_odd(tf_wide_snap_near_double(sum, outward));
}

/* Return log(exp(x) + exp(y)), and log2(2**x + 2**y). */
static inline double tf_odd_logaddexp(double x, double y)
{
    return tf_wide_log_add(x, y, 0);
}

static inline double tf_odd_logaddexp2(double x, double y)
{
    return tf_wide_log_add(x, y, 1);
}

#endif
