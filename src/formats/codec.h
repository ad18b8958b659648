/* One element: bits <-> value, with every rounding and overflow rule.
 *
 * This is the scalar reference of the C code. The array loops are faster forms of it for
 * round-to-nearest, and tests compare their results with it. It is freestanding and
 * integer-only, so that C and CUDA compile the same source.
 *
 *      bit   width - 1 | width - 2 ... mantissa_bits | mantissa_bits - 1 ... 0
 *           +----------+-----------------------------+------------------------+
 *      code |   sign   |          exponent           |        mantissa        |
 *           +----------+-----------------------------+------------------------+
 *                       `------------------- magnitude ----------------------'
 *
 * With an exponent field e > 0, a magnitude is (1 + mantissa / 2^mantissa_bits) * 2^(e -
 * bias). With e = 0 it is subnormal: mantissa / 2^mantissa_bits * 2^(1 - bias). As
 * integers, magnitudes have the order of their values, and consecutive ones differ by
 * one. So if rounding up carries into the exponent, the result is right.
 */
#ifndef TF32DTYPE_FORMATS_CODEC_H
#define TF32DTYPE_FORMATS_CODEC_H

#include "formats/formats.h"
#include "runtime/asserts.h"
#include "runtime/fp_flags.h"

enum tf_rounding {
    TF_TIES_TO_EVEN,
    TF_TIES_TO_AWAY,
    TF_TOWARD_ZERO,
    TF_TOWARD_POSITIVE,
    TF_TOWARD_NEGATIVE,
    TF_TO_ODD,
    TF_STOCHASTIC,
    TF_ROUNDING_COUNT
};

enum tf_overflow { TF_OVERFLOW_IEEE, TF_OVERFLOW_SATURATE };

enum tf_value_class { TF_NUMBER, TF_INFINITY, TF_NAN };

/* A real number: significand * 2^exponent, plus less than one unit of the significand if
 * `sticky`. A significand other than 0 has its top bit set. */
struct tf_value {
    uint64_t significand;
    int32_t exponent;
    uint8_t negative;
    uint8_t sticky;
    uint8_t value_class; /* enum tf_value_class */
};

static inline struct tf_value tf_value_make(int negative, uint64_t significand,
                                            int32_t exponent)
{
    struct tf_value x = {significand, exponent, (uint8_t)negative, 0, TF_NUMBER};
    if (significand == 0) {
        x.exponent = 0;
        return x;
    }
    while (!(x.significand >> 63)) {
        x.significand <<= 1;
        x.exponent--;
    }
    return x;
}

static inline struct tf_value tf_value_special(int negative,
                                               enum tf_value_class value_class)
{
    const struct tf_value x = {0, 0, (uint8_t)negative, 0, (uint8_t)value_class};
    return x;
}

/* Returns the value of the bits of an IEEE 754 interchange format. */
static inline struct tf_value tf_value_from_ieee(uint64_t bits, int exponent_bits,
                                                 int mantissa_bits)
{
    const uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
    const int all_ones = (1 << exponent_bits) - 1;
    const int field = (int)(bits >> mantissa_bits) & all_ones;
    const int negative = (int)(bits >> (mantissa_bits + exponent_bits)) & 1;
    if (field == all_ones) {
        return tf_value_special(negative, mantissa ? TF_NAN : TF_INFINITY);
    }
    const int bias = all_ones >> 1;
    if (field == 0) {
        return tf_value_make(negative, mantissa, 1 - bias - mantissa_bits);
    }
    return tf_value_make(negative, mantissa | UINT64_C(1) << mantissa_bits,
                         field - bias - mantissa_bits);
}

static inline struct tf_value tf_value_from_double_bits(uint64_t bits)
{
    return tf_value_from_ieee(bits, 11, 52);
}

static inline struct tf_value tf_decode(struct tf_format f, uint32_t code)
{
    TF_ASSERT(code <= (tf_magnitude_mask(f) | tf_sign_mask(f)));
    const uint32_t magnitude = code & tf_magnitude_mask(f);
    const int negative = (code & tf_sign_mask(f)) != 0;
    if (tf_is_nan(f, code)) {
        return tf_value_special(negative && f.specials != TF_FNUZ, TF_NAN);
    }
    if (f.specials == TF_EXPONENT_ONLY) {
        return tf_value_make(0, 1, (int32_t)magnitude - f.bias);
    }
    if (f.specials == TF_IEEE && magnitude == tf_infinity_magnitude(f)) {
        return tf_value_special(negative, TF_INFINITY);
    }
    const int field = (int)(magnitude >> f.mantissa_bits);
    const uint32_t mantissa = magnitude & ((UINT32_C(1) << f.mantissa_bits) - 1);
    const int least = tf_least_exponent(f);
    if (field == 0) {
        return tf_value_make(negative, mantissa, least);
    }
    return tf_value_make(negative, mantissa | UINT32_C(1) << f.mantissa_bits,
                         least + field - 1);
}

/* Returns the bits of the double that equals a decoded value; every value has one. */
static inline uint64_t tf_double_bits(struct tf_value x)
{
    const uint64_t sign = (uint64_t)x.negative << 63;
    if (x.value_class == TF_NAN) {
        return sign | UINT64_C(0x7FF8) << 48;
    }
    if (x.value_class == TF_INFINITY) {
        return sign | UINT64_C(0x7FF0) << 48;
    }
    if (x.significand == 0) {
        return sign;
    }
    /* The leading bit of the significand adds one to the exponent field. */
    return sign + ((uint64_t)(x.exponent + 63 + 1022) << 52) + (x.significand >> 11);
}

/* Returns the code of a magnitude above the largest finite one, with its sign. */
static inline uint32_t tf_encode_overflow(struct tf_format f, int negative)
{
    if (f.specials == TF_FNUZ || f.specials == TF_EXPONENT_ONLY) {
        return tf_nan_code(f);
    }
    return tf_overflow_magnitude(f) | (negative ? tf_sign_mask(f) : 0);
}

/* Returns the exception that overflow to tf_encode_overflow() raises. */
static inline unsigned tf_overflow_flag(struct tf_format f)
{
    return f.specials == TF_EXPONENT_ONLY ? TF_INVALID : TF_OVER;
}

/* Returns 1 if a number rounds up in magnitude. `kept` is the truncated significand, and
 * the bits below it are `fraction` / 2^64 of a unit, plus a little more if `more`. */
static inline int tf_rounds_up(enum tf_rounding rounding, int negative,
                               uint64_t kept, uint64_t fraction, int more,
                               uint64_t draw)
{
    const uint64_t half = UINT64_C(1) << 63;
    const int inexact = fraction != 0 || more;
    switch (rounding) {
    case TF_TIES_TO_EVEN:
        return fraction > half || (fraction == half && (more || (kept & 1)));
    case TF_TIES_TO_AWAY: return fraction >= half;
    case TF_TOWARD_POSITIVE: return inexact && !negative;
    case TF_TOWARD_NEGATIVE: return inexact && negative;
    case TF_TO_ODD: return inexact && !(kept & 1);
    case TF_STOCHASTIC: return draw < fraction || (draw == fraction && more);
    case TF_TOWARD_ZERO:
    case TF_ROUNDING_COUNT: break;
    }
    return 0;
}

/* Returns 1 if a rounding mode gives the largest finite number for finite numbers above
 * it (IEEE 754 section 7.4). to_odd does so like toward_zero. */
static inline int tf_stops_at_maximum(enum tf_rounding rounding, int negative)
{
    return rounding == TF_TOWARD_ZERO || rounding == TF_TO_ODD ||
           (rounding == TF_TOWARD_POSITIVE && negative) ||
           (rounding == TF_TOWARD_NEGATIVE && !negative);
}

/* Returns the code of a finite number above the range: the largest finite one if `stops`,
 * else Inf or the format's replacement of Inf. Adds the exception to *flags. */
static inline uint32_t tf_encode_beyond(struct tf_format f, int negative, int stops,
                                        unsigned *flags)
{
    if (stops) {
        *flags |= TF_OVER;
        return tf_maximum_magnitude(f) | (negative ? tf_sign_mask(f) : 0);
    }
    *flags |= tf_overflow_flag(f);
    return tf_encode_overflow(f, negative);
}

/* Returns 1 if x needs no rounding: NaN, Inf, zero, and for e8m0 also negative numbers,
 * which become NaN as zero does. Then *code is the result. */
static inline int tf_encode_special(struct tf_format f, struct tf_value x,
                                    enum tf_overflow overflow, uint32_t *code,
                                    unsigned *flags)
{
    const uint32_t sign = x.negative ? tf_sign_mask(f) : 0;
    if (x.value_class == TF_NAN) {
        *flags |= f.specials == TF_FINITE ? TF_INVALID : 0;
        *code = f.specials == TF_FNUZ ? tf_nan_code(f) : tf_nan_code(f) | sign;
    } else if (f.specials == TF_EXPONENT_ONLY &&
               (x.negative || (x.value_class == TF_NUMBER && x.significand == 0))) {
        *flags |= TF_INVALID;
        *code = tf_nan_code(f);
    } else if (x.value_class == TF_INFINITY) {
        unsigned raised = 0;
        *code = tf_encode_beyond(f, x.negative, overflow == TF_OVERFLOW_SATURATE, &raised);
        *flags |= f.specials == TF_IEEE ? 0 : raised; /* a format with Inf raises nothing */
    } else if (x.significand == 0) {
        *code = f.specials == TF_FNUZ ? 0 : sign;
    } else {
        return 0;
    }
    return 1;
}

/* A number in ulps: `kept` whole ones plus `fraction` / 2^64 of one, and a little more if
 * `more`. */
struct tf_in_units {
    uint64_t kept, fraction;
    int more;
};

/* Returns x in units of 2^unit. At least 40 bits are below the unit, because formats have
 * at most 24 significant bits.
 *
 *      significand   1 x x x x x x x x x x x x x x x x x x x   (64 bits)
 *                    `--- kept ---'`------- fraction -------'  `more` is `sticky`, or
 *                                 ^ 2^unit                     a bit below the fraction
 */
static inline struct tf_in_units tf_in_units_of(struct tf_value x, int unit)
{
    const int shift = unit - x.exponent;
    struct tf_in_units cut = {0, 0, x.sticky};
    if (shift < 64) {
        cut.kept = x.significand >> shift;
        cut.fraction = x.significand << (64 - shift);
    } else if (shift < 128) {
        cut.fraction = x.significand >> (shift - 64);
        cut.more |= shift > 64 && (x.significand << (128 - shift)) != 0;
    } else {
        cut.more = 1;
    }
    return cut;
}

/* Returns the code of x, rounded once. `draw` is the random number of stochastic
 * rounding, uniform in [0, 2^64). Exceptions are or-ed into *flags. Underflow means an
 * inexact result whose exact value is below the smallest normal number. */
static inline uint32_t tf_encode(struct tf_format f, struct tf_value x,
                                 enum tf_rounding rounding,
                                 enum tf_overflow overflow, uint64_t draw,
                                 unsigned *flags)
{
    const uint32_t sign = x.negative ? tf_sign_mask(f) : 0;
    uint32_t code;
    if (tf_encode_special(f, x, overflow, &code, flags)) {
        return code;
    }
    /* 1. Find the ulp of the result, subnormal or not. */
    const int top = x.exponent + 63;
    const int least = tf_least_exponent(f);
    const int tiny = top - f.mantissa_bits < least;
    const int unit = tiny ? least : top - f.mantissa_bits;
    /* 2. Truncate x to that ulp. */
    struct tf_in_units cut = tf_in_units_of(x, unit);
    if (tiny && (cut.fraction != 0 || cut.more)) {
        *flags |= TF_UNDER;
    }
    if (tiny && f.specials == TF_EXPONENT_ONLY) {
        return 0; /* below 2^-127 there is no number to round to */
    }
    /* 3. Round. A carry out of the significand moves into the exponent. */
    cut.kept += (uint64_t)tf_rounds_up(rounding, x.negative, cut.kept, cut.fraction,
                                       cut.more, draw);
    /* The leading bit of a normal number adds one to the exponent field, which is what it
     * should be, except for e8m0, whose fields begin at 0. */
    const uint64_t magnitude = ((uint64_t)(unit - least) << f.mantissa_bits) + cut.kept -
                               (f.specials == TF_EXPONENT_ONLY ? 1 : 0);
    if (magnitude > tf_maximum_magnitude(f)) {
        const int stops = overflow == TF_OVERFLOW_SATURATE ||
                          tf_stops_at_maximum(rounding, x.negative);
        return tf_encode_beyond(f, x.negative, stops, flags);
    }
    return magnitude == 0 && f.specials == TF_FNUZ ? 0 : (uint32_t)magnitude | sign;
}

#endif
