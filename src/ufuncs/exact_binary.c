/* Numbers of 128 bits, and the five functions on them (see wide.h).
 *
 * Each function approximates its result with a relative error below 2^-110 and
 * ends in settle() and to_odd(). An approximation farther than 2^-106 from
 * every double decides alone. A closer one belongs to an exact result or to
 * one of the few families of the form "double + tiny", whose side is known
 * beforehand; each function says which. Outside these families results fall
 * like random numbers: the chance that any of the 2^38 pairs of 19-bit
 * arguments comes so close to a double of 53 bits is below 2^-13. (logaddexp
 * loses c bits where its two terms cancel, but only for one pair in 2^c: the
 * bound stays.)
 */
#include "ufuncs/exact_binary.h"

#include <stdint.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

#define U128(high, low) ((u128)UINT64_C(high) << 64 | UINT64_C(low))
#define ONE ((u128)1 << 127)

/* (-1)^negative * fraction/2^127 * 2^exponent. The top bit of fraction is set,
 * or all of them are clear: zero. */
typedef struct {
    int negative;
    int exponent;
    u128 fraction;
} wide;

static wide wide_of(int negative, int exponent, u128 fraction)
{
    const wide w = {negative, exponent, fraction};
    return w;
}

static const wide zero = {0, 0, 0};
static const wide one = {0, 0, ONE};
static const wide pi = {0, 1, U128(0xC90FDAA22168C234, 0xC4C6628B80DC1CD1)};
static const wide log2_of_e = {0, 0, U128(0xB8AA3B295C17F0BB, 0xBE87FED0691D3E88)};
static const wide arctan_of_half = {0, -2,
                                    U128(0xED63382B0DDA7B45, 0x6FE445ECBC3A8D03)};
/* log 2 times 2^128; sqrt 2 times 2^127, which need not be exact. */
static const u128 log_of_2 = U128(0xB17217F7D1CF79AB, 0xC9E3B39803F2F6AF);
static const u128 root_of_2 = U128(0xB504F333F9DE6484, 0);

/* -- arithmetic ------------------------------------------------------------ */
/* Exact where 128 bits hold the result; else off by less than 2^-125 of the
 * result, sums by less than 2^-125 of the larger operand. */

/* x / 2^n; what is shifted out sets the last bit. */
static u128 shift_right(u128 x, int n)
{
    if (n <= 0)
        return x;
    if (n >= 128)
        return x != 0;
    return x >> n | (x << (128 - n) != 0);
}

static wide normalised(int negative, int exponent, u128 fraction)
{
    if (fraction == 0)
        return zero;
    const uint64_t high = (uint64_t)(fraction >> 64);
    const int zeros = high ? __builtin_clzll(high)
                           : 64 + __builtin_clzll((uint64_t)fraction);
    return wide_of(negative, exponent - zeros, fraction << zeros);
}

/* |x|, no subnormal. */
static wide magnitude(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT64_MAX >> 1;
    if (bits == 0)
        return zero;
    const uint64_t significand = (bits & (UINT64_MAX >> 12)) | UINT64_C(1) << 52;
    return wide_of(0, (int)(bits >> 52) - 1023, (u128)significand << 75);
}

static wide from_double(double x)
{
    wide w = magnitude(x);
    w.negative = x < 0;
    return w;
}

static wide scaled(wide a, int exponent)
{
    a.exponent += exponent;
    return a;
}

static wide negated(wide a)
{
    a.negative = !a.negative;
    return a;
}

/* The last bit is set wherever digits of the smaller operand were dropped. */
static wide add(wide a, wide b)
{
    if (b.fraction == 0)
        return a;
    if (a.fraction == 0)
        return b;
    if (a.exponent < b.exponent ||
        (a.exponent == b.exponent && a.fraction < b.fraction)) {
        const wide larger = b;
        b = a;
        a = larger;
    }
    const int gap = a.exponent - b.exponent;
    if (a.negative == b.negative)
        return normalised(
            a.negative, a.exponent + 1,
            shift_right(a.fraction, 1) + shift_right(b.fraction, gap + 1));
    return normalised(a.negative, a.exponent,
                      a.fraction - shift_right(b.fraction, gap));
}

/* a * b / 2^128, downward. */
static u128 high_product(u128 a, u128 b)
{
    const uint64_t a1 = (uint64_t)(a >> 64), a0 = (uint64_t)a;
    const uint64_t b1 = (uint64_t)(b >> 64), b0 = (uint64_t)b;
    const u128 cross = (u128)a1 * b0, other = (u128)a0 * b1;
    const u128 middle = ((u128)a0 * b0 >> 64) + (uint64_t)cross + (uint64_t)other;
    return (u128)a1 * b1 + (cross >> 64) + (other >> 64) + (middle >> 64);
}

static wide multiply(wide a, wide b)
{
    return normalised(a.negative != b.negative, a.exponent + b.exponent + 1,
                      high_product(a.fraction, b.fraction));
}

/* Long division, one bit a step; b is not zero. */
static wide divide(wide a, wide b)
{
    const int below = a.fraction < b.fraction;
    u128 rest = a.fraction, quotient = 0;
    int carry = 0;
    for (int bit = -below; bit < 128; bit++) {
        const int fits = carry || rest >= b.fraction;
        rest -= fits ? b.fraction : 0;
        quotient = quotient << 1 | (unsigned)fits;
        carry = rest >> 127 != 0;
        rest <<= 1;
    }
    return normalised(a.negative != b.negative, a.exponent - b.exponent - below,
                      quotient);
}

/* floor(sqrt(x)), one bit a step. */
static uint64_t square_root(u128 x)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 63; bit != 0; bit >>= 1) {
        const uint64_t next = root | bit;
        if ((u128)next * next <= x)
            root = next;
    }
    return root;
}

/* |a| modulo 1, times 2^128, downward. */
static u128 fixed(wide a)
{
    const int shift = a.exponent + 1;
    if (shift >= 0)
        return shift < 128 ? a.fraction << shift : 0;
    return shift > -128 ? a.fraction >> -shift : 0;
}

/* -- functions ------------------------------------------------------------- */

/* s (1 + s^2/3 + s^4/5 + ...) = artanh s, or with alternating signs arctan s
 * (Abramowitz and Stegun 4.6.33, 4.4.42), for |s| <= 1/3: the first term left
 * out is 9^-41/83 < 2^-136. */
static wide odd_series(wide s, int alternating)
{
    const u128 square = fixed(multiply(s, s));
    u128 sum = 0;
    for (unsigned k = 41; k-- > 0;) {
        const u128 higher = high_product(square, sum);
        sum = ONE / (2 * k + 1) + (alternating ? -higher : higher);
    }
    return multiply(s, normalised(0, 0, sum));
}

/* log2 |x|: with |x| = f 2^k and f within [sqrt(1/2), sqrt(2)],
 * log f = 2 artanh((f - 1)/(f + 1)); no cancellation, f - 1 is exact. */
static wide log2_of(double x)
{
    wide f = magnitude(x);
    int k = f.exponent;
    f.exponent = 0;
    if (f.fraction > root_of_2) {
        f.exponent = -1;
        k++;
    }
    const wide s = divide(add(f, negated(one)), add(f, one));
    const wide log2_f = scaled(multiply(odd_series(s, 0), log2_of_e), 1);
    return add(from_double(k), log2_f);
}

/* 2^z = 2^n e^(r log 2), n the integer below z, e^r by its power series (the
 * first term left out is below 2^-139). |z| >= 2^14 gives 2^+-16384, which is
 * as good as infinity and zero here but keeps its sign and place in a sum. */
static wide exp2_of(wide z)
{
    if (z.fraction != 0 && z.exponent >= 14)
        return wide_of(0, z.negative ? -16384 : 16384, ONE);
    int n = z.exponent < 0 ? 0 : (int)(z.fraction >> (127 - z.exponent));
    u128 r = fixed(z);
    if (z.negative) {
        n = -n - (r != 0);
        r = -r;
    }
    r = high_product(r, log_of_2);
    u128 sum = ONE;
    for (unsigned k = 34; k > 0; k--)
        sum = ONE + high_product(r, sum) / k;
    return normalised(0, n, sum);
}

/* -- the last step --------------------------------------------------------- */

/* A number within 2^-106 of a double becomes that double, moved outward (+1,
 * away from zero) or inward (-1) by the least amount, or left exact (0). */
static wide settle(wide w, int outward)
{
    const u128 unit = (u128)1 << 75, close = (u128)1 << 22;
    const u128 above = w.fraction & (unit - 1);
    if (w.fraction == 0 || (above >= close && unit - above >= close))
        return w;
    w.fraction += above < close ? -above : unit - above;
    if (w.fraction == 0) {
        w.fraction = ONE;
        w.exponent++;
    }
    w.fraction += outward < 0 ? ~(u128)0 : (u128)(outward > 0);
    return normalised(w.negative, w.exponent, w.fraction);
}

static double to_odd(wide w)
{
    uint64_t bits = 0;
    if (w.exponent > 1023)
        bits = UINT64_C(0x7FEFFFFFFFFFFFFF);
    else if (w.fraction != 0) {
        const int below = w.exponent < -1022 ? -1022 - w.exponent : 0;
        /* The significand's leading bit, where it is there, adds one to the
         * exponent field. */
        bits = (uint64_t)(w.exponent + below + 1022) << 52;
        bits += (uint64_t)shift_right(w.fraction, 75 + below);
    }
    bits |= (uint64_t)w.negative << 63;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* -- power ----------------------------------------------------------------- */

/* |x| = odd * 2^exponent; x is not zero. */
static int odd_part(double x, uint64_t *odd)
{
    const wide w = magnitude(x);
    const uint64_t significand = (uint64_t)(w.fraction >> 64);
    const int zeros = __builtin_ctzll(significand);
    *odd = significand >> zeros;
    return w.exponent - 63 + zeros;
}

/* Is |x|^y an integer times a power of two? With |x| = m 2^e, m odd, and
 * y = n 2^k, n odd: for k < 0 the root must come out exactly (else the power
 * is irrational), and then m^|y| must not be a denominator. */
static int is_dyadic_power(double x, double y)
{
    uint64_t m, n;
    int e = odd_part(x, &m);
    for (int k = odd_part(y, &n); k < 0; k++) {
        const uint64_t root = square_root(m);
        if (root * root != m || e % 2 != 0)
            return 0;
        m = root;
        e /= 2;
    }
    return m == 1 || y > 0;
}

/* Near a double: the exact powers (a dyadic one of up to 104 bits that is no
 * double is at least 2^-104 away), and 1 + y log x for tiny y log x. */
double tf_odd_power(double x, double y)
{
    if (y == 0) {
        return 1; /* odd_part() is of other numbers; is_dyadic_power() asks it */
    }
    const wide exponent = multiply(from_double(y), log2_of(x));
    wide power = exp2_of(exponent);
    const int outward = exponent.negative ? -1 : 1;
    power = settle(power, is_dyadic_power(x, y) ? 0 : outward);
    uint64_t odd;
    power.negative = x < 0 && odd_part(y, &odd) == 0;
    return to_odd(power);
}

/* -- hypot ----------------------------------------------------------------- */

/* Exact: the squares have 22 bits; where they are so far apart that their sum
 * has more than 128, its last bit stands for the rest, and the integer square
 * root is exact but for a remainder that becomes its last bit again. */
double tf_odd_hypot(double x, double y)
{
    const wide a = magnitude(x), b = magnitude(y);
    wide sum = add(multiply(a, a), multiply(b, b));
    if (sum.fraction == 0)
        return 0;
    const int odd = sum.exponent % 2 == 0; /* 127 binary places are odd */
    const u128 square = shift_right(sum.fraction, odd);
    const uint64_t root = square_root(square);
    const u128 inexact = (u128)root * root != square;
    return to_odd(normalised(0, (sum.exponent + odd - 1) / 2,
                             (u128)root << 64 | inexact));
}

/* -- arctan2 --------------------------------------------------------------- */

/* The arctangent of a rational number other than zero is transcendental, so
 * only zero is exact. Near a double: tiny y/x, whose arctangent is below it.
 * Other y/x that are no doubles keep 2^-65 from them (x has 11 bits). */
double tf_odd_arctan2(double y, double x)
{
    wide p = magnitude(y), q = magnitude(x), angle = {0, 0, 0};
    const wide difference = add(p, negated(q));
    const int steep = !difference.negative && difference.fraction != 0;
    if (steep) {
        const wide swap = p;
        p = q;
        q = swap;
    }
    if (p.fraction != 0 && q.exponent - p.exponent < 2)
        /* arctan(p/q) - arctan(1/2), whose argument is within 1/3. */
        angle = add(arctan_of_half, odd_series(divide(add(scaled(p, 1), negated(q)),
                                                      add(scaled(q, 1), p)), 1));
    else if (p.fraction != 0)
        angle = odd_series(divide(p, q), 1);
    if (steep)
        angle = add(scaled(pi, -1), negated(angle));
    if (__builtin_signbit(x))
        angle = add(pi, negated(angle));
    angle = settle(angle, -1);
    angle.negative = __builtin_signbit(y) != 0;
    return to_odd(angle);
}

/* -- logaddexp ------------------------------------------------------------- */

/* a + log(1 + e^-d), a the larger argument and d their difference, in base e
 * or 2; log(1 + u) = 2 artanh(u/(2 + u)).
 *
 * Exact: base 2 with d = 0 alone. (Base e by Lindemann and Weierstrass; in
 * base 2, 1 + 2^-d = 2^r with dyadic d and r is a relation among powers of a
 * root of 2, whose minimal polynomial x^q - 2 leaves only d = 0.) Near a
 * double: a plus a tiny term, above a; and in base 2, for nearly equal
 * arguments, 1 + mean + log(2) d^2/8, above 1 + mean, unless both are so tiny
 * that it is near 1 and the mean's sign decides. */
static double log_add(double x, double y, int base2)
{
    const double larger = x < y ? y : x, smaller = x < y ? x : y;
    const wide a = from_double(larger), b = from_double(smaller);
    if (base2 && larger == smaller)
        return to_odd(add(a, one));
    wide exponent = add(b, negated(a));
    if (!base2)
        exponent = multiply(exponent, log2_of_e);
    const wide u = exp2_of(exponent);
    wide term = scaled(odd_series(divide(u, add(u, scaled(one, 1))), 0), 1);
    if (base2)
        term = multiply(term, log2_of_e);
    const wide sum = add(a, term);
    const int tiny = larger < 0x1p-60 && smaller > -0x1p-60;
    const int downward = base2 && tiny && add(a, b).negative;
    return to_odd(settle(sum, sum.negative || downward ? -1 : 1));
}

double tf_odd_logaddexp(double x, double y)
{
    return log_add(x, y, 0);
}

double tf_odd_logaddexp2(double x, double y)
{
    return log_add(x, y, 1);
}
