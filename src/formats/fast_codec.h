/* One element, fast: float32 bits <-> every format, without a branch.
 *
 * One text for all formats: where the facts are compile-time constants, what a format
 * does not need disappears. The loops on the CPU and the kernels on a GPU are made of
 * it; codec.h is the truth that they are tested against. Its additions and products
 * are float32's, subnormals included.
 *
 * A wider number is rounded to float32 to odd first, which loses nothing (see casts.c).
 *
 * A number in the format's normal range, here float8_e4m3fn's:
 *
 *      bit    31   30 ............... 23   22 .... 20   19 ................. 0
 *            +---+-----------------------+------------+------------------------+
 *   float32  | S |     E, bias 127       |  M, kept   |  tf_cut(f) bits go     |
 *            +---+-----------------------+------------+------------------------+
 *                  - tf_rebias(f): E - 120     + half a unit less one, + last bit
 *                                                    | carries into M, then into E
 *            +---+-----------------------+------------+
 *      code  | S |     E, bias 7, 4 bits |     M      | >> tf_cut(f)
 *            +---+-----------------------+------------+
 */
#ifndef TF32DTYPE_FORMATS_FAST_CODEC_H
#define TF32DTYPE_FORMATS_FAST_CODEC_H

#include "formats/codec.h"
#include "formats/float_bits.h"

/* -- facts of a format in float32's bits ----------------------------------- */

TF_INLINE int tf_cut(struct tf_format f) { return 23 - f.mantissa_bits; }

/* A normal code's magnitude, shifted left by tf_cut(), is this much below the
 * float32 bits of the same number. */
TF_INLINE uint32_t tf_rebias(struct tf_format f)
{
    return (uint32_t)(127 - f.bias) << 23;
}

/* float32 bits of the least normal number (for e8m0, of its least number). */
TF_INLINE uint32_t tf_least_normal(struct tf_format f)
{
    return f.specials == TF_EXPONENT_ONLY ? UINT32_C(1) << 22
                                   : (uint32_t)(128 - f.bias) << 23;
}

/* float32 bits of the first number that rounds beyond the largest finite: half
 * a unit above it, where a tie goes to the even one of the two. */
TF_INLINE uint32_t tf_beyond(struct tf_format f)
{
    const uint32_t maximum = tf_maximum_magnitude(f);
    const uint32_t half = UINT32_C(1) << (tf_cut(f) - 1);
    const uint32_t tie_stays = f.specials != TF_EXPONENT_ONLY && !(maximum & 1);
    return (maximum << tf_cut(f)) + tf_rebias(f) + half + tie_stays;
}

/* -- float32 -> code -------------------------------------------------------- */

TF_INLINE uint32_t tf_encode_power(uint32_t bits)
{
    /* Below 2^-126 float32 has no leading bit to carry into: compare. */
    const uint32_t low = bits >= UINT32_C(0x00600000);
    const uint32_t high = (bits + UINT32_C(0x00400000)) >> 23;
    const uint32_t code = bits < UINT32_C(0x00800000) ? low : high;
    /* Zero and negative numbers wrap to the top. */
    return bits - 1 >= UINT32_C(0x7F400000) - 1 ? 0xFF : code;
}

/* bfloat16 and tf32 have float32's exponent: their codes are its upper bits, the
 * sign among them, rounded by adding half a unit less one, plus the bit that
 * stays last. A carry moves into the exponent, up to Inf. */
TF_INLINE uint32_t tf_encode_upper_bits(struct tf_format f, uint32_t bits)
{
    const int shift = tf_cut(f);
    const uint32_t half_less_one = (UINT32_C(1) << (shift - 1)) - 1;
    return (bits + half_less_one + (bits >> shift & 1)) >> shift;
}

/* What a magnitude beyond the range becomes, fnuz's NaN among them. */
TF_INLINE uint32_t tf_overflow_code(struct tf_format f)
{
    return f.specials == TF_FNUZ ? tf_nan_code(f) : tf_overflow_magnitude(f);
}

/* The code of a number, to nearest, ties to even. NaN is rounded like the number that
 * its bits would be next: where that is not what NaN becomes, the formats that
 * tf_mends_nan() names, tf_code_of_nan() is to take its place. */
TF_INLINE uint32_t tf_code_of_number(struct tf_format f, uint32_t bits)
{
    if (f.specials == TF_EXPONENT_ONLY) {
        return tf_encode_power(bits);
    }
    if (f.bias == 127) {
        return tf_encode_upper_bits(f, bits);
    }
    const uint32_t magnitude = bits & TF_MAGNITUDE_BITS;
    const uint32_t sign = bits >> (32 - f.width) & tf_sign_mask(f);
    const int shift = tf_cut(f);

    /* 1. Round to nearest even by adding half a unit less one, plus the bit
     *    that stays last; a carry moves into the exponent. */
    const uint32_t half_less_one = (UINT32_C(1) << (shift - 1)) - 1;
    const uint32_t last = magnitude >> shift & 1;
    uint32_t code = (magnitude + last + (half_less_one - tf_rebias(f))) >> shift;
    /* 2. Subnormal results, where the format's range is narrower than
     *    float32's: adding 2^(least + 23) makes the addition round there. */
    const float magic = tf_float_of((uint32_t)(tf_least_exponent(f) + 23 + 127) << 23);
    const uint32_t small =
        tf_bits_of(tf_float_of(magnitude) + magic) - tf_bits_of(magic);
    code = magnitude < tf_least_normal(f) ? small : code;
    /* 3. What lies beyond the range has greater codes. */
    code = code < tf_overflow_code(f) ? code : tf_overflow_code(f);
    return f.specials == TF_FNUZ && code == 0 ? 0 : code | sign;
}

TF_INLINE int tf_mends_nan(struct tf_format f)
{
    return f.specials == TF_IEEE || f.specials == TF_FINITE;
}

TF_INLINE int tf_single_is_nan(uint32_t bits)
{
    return (bits & TF_MAGNITUDE_BITS) > TF_INF_BITS;
}

/* What NaN becomes: the canonical one with its sign, where it has one. */
TF_INLINE uint32_t tf_code_of_nan(struct tf_format f, uint32_t bits)
{
    const uint32_t sign = bits >> (32 - f.width) & tf_sign_mask(f);
    return tf_nan_code(f) | sign;
}

/* The code of any float32, to nearest, ties to even. */
TF_INLINE uint32_t tf_code_of_single(struct tf_format f, uint32_t bits)
{
    const uint32_t code = tf_code_of_number(f, bits);
    return tf_mends_nan(f) && tf_single_is_nan(bits) ? tf_code_of_nan(f, bits) : code;
}

/* -- item -> float32 --------------------------------------------------------- */

/* float32 bits of the number that an item is. NaN is quiet and keeps its sign, where
 * it has one. */
TF_INLINE uint32_t tf_single_of_item(struct tf_format f, uint32_t item)
{
    if (f.specials == TF_EXPONENT_ONLY) {
        const uint32_t code = item & 0xFF, nan = TF_QUIET_NAN_BITS;
        return code == 0 ? UINT32_C(1) << 22 : code == 0xFF ? nan : code << 23;
    }
    uint32_t sign = item >> (f.width - 1 + f.shift) << 31;
    const uint32_t magnitude = (item >> f.shift & tf_magnitude_mask(f)) << tf_cut(f);
    const uint32_t infinity = tf_infinity_magnitude(f) << tf_cut(f);
    uint32_t bits = magnitude;
    if (f.bias != 127) {
        /* A subnormal number has the bits behind 2^(1 - bias), of which it is the excess.
         * No subnormal number of float32 is read: some processors take long for it. */
        const uint32_t least = (UINT32_C(1) << 23) + tf_rebias(f);
        const float excess = tf_float_of(magnitude + least) - tf_float_of(least);
        bits = magnitude >> 23 ? magnitude + tf_rebias(f) : tf_bits_of(excess);
    }
    if (f.specials == TF_IEEE) {
        const int special = magnitude >= infinity;
        bits = f.bias != 127 && special ? TF_INF_BITS : bits;
        bits = magnitude > infinity ? TF_QUIET_NAN_BITS : bits;
    } else if (f.specials == TF_FN) {
        const uint32_t nan = tf_magnitude_mask(f) << tf_cut(f);
        bits = magnitude == nan ? TF_QUIET_NAN_BITS : bits;
    } else if (f.specials == TF_FNUZ) {
        /* What would be -0. */
        bits = sign != 0 && magnitude == 0 ? TF_QUIET_NAN_BITS : bits;
        sign = magnitude == 0 ? 0 : sign;
    }
    return bits | sign;
}

#endif
