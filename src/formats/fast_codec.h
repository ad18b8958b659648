/* One element, fast: float32 bits <-> every format, without a branch.
 *
 * All formats share this source. Where the facts of a format are compile-time constants,
 * the compiler drops the steps that the format does not need. The CPU loops and the GPU
 * kernels use these functions; tests compare them with codec.h, the reference. The
 * functions need float32 additions and products that keep subnormal numbers.
 *
 * A wider number is rounded to float32 to odd first, which loses nothing (see casts.c).
 *
 * Rounding of a number in the format's normal range, for float8_e4m3fn:
 *
 *      bit    31   30 ............... 23   22 .... 20   19 ................. 0
 *            +---+-----------------------+------------+------------------------+
 *   float32  | S |     E, bias 127       |  M, kept   |  tf_cut(f) bits, cut   |
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

/* Returns the difference between the float32 bits of a normal number and the magnitude of
 * its code, shifted left by tf_cut(). */
TF_INLINE uint32_t tf_rebias(struct tf_format f)
{
    return (uint32_t)(127 - f.bias) << 23;
}

/* Returns the float32 bits of the smallest normal number (e8m0: of the smallest). */
TF_INLINE uint32_t tf_least_normal(struct tf_format f)
{
    return f.specials == TF_EXPONENT_ONLY ? UINT32_C(1) << 22
                                   : (uint32_t)(128 - f.bias) << 23;
}

/* Returns the float32 bits of the smallest number that rounds above the largest finite one.
 * It is half a unit above that one, or the next if a tie rounds down to an even maximum. */
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
    /* float32 numbers below 2^-126 have no leading bit to carry into, so compare. */
    const uint32_t low = (int32_t)bits >= 0x00600000;
    const uint32_t high = (bits + UINT32_C(0x00400000)) >> 23;
    const uint32_t code = (int32_t)bits < 0x00800000 ? low : high;
    /* Zero and negative numbers wrap to the top, and become NaN. */
    return bits - 1 >= UINT32_C(0x7F400000) - 1 ? 0xFF : code;
}

/* Returns the code of a number in bfloat16 or tf32, which have float32's exponent. The
 * code is the upper bits, with the sign, rounded by adding half a unit less one, plus the
 * last kept bit. A carry moves into the exponent, up to Inf. */
TF_INLINE uint32_t tf_encode_upper_bits(struct tf_format f, uint32_t bits)
{
    const int shift = tf_cut(f);
    const uint32_t half_less_one = (UINT32_C(1) << (shift - 1)) - 1;
    return (bits + half_less_one + (bits >> shift & 1)) >> shift;
}

/* Returns the code, without sign, of a magnitude above the range; it is NaN for fnuz. */
TF_INLINE uint32_t tf_overflow_code(struct tf_format f)
{
    return f.specials == TF_FNUZ ? tf_nan_code(f) : tf_overflow_magnitude(f);
}

/* Returns the code of a number, rounded to nearest, ties to even. The bits of NaN are
 * rounded like those of a number above Inf. Where tf_mends_nan() is true, that gives a
 * wrong code, which the caller replaces by tf_code_of_nan(). */
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

    /* 1. Round to nearest even by adding half a unit less one, plus the last kept bit. A
     *    carry moves into the exponent. */
    const uint32_t half_less_one = (UINT32_C(1) << (shift - 1)) - 1;
    const uint32_t last = magnitude >> shift & 1;
    uint32_t code = (magnitude + last + (half_less_one - tf_rebias(f))) >> shift;
    /* 2. Subnormal results, if the format's range is narrower than float32's: adding
     *    2^(least + 23) makes the addition round to multiples of the smallest number. */
    const float magic = tf_float_of((uint32_t)(tf_least_exponent(f) + 23 + 127) << 23);
    const uint32_t small =
        tf_bits_of(tf_float_of(magnitude) + magic) - tf_bits_of(magic);
    code = magnitude < tf_least_normal(f) ? small : code;
    /* 3. Limit the codes of numbers above the range, which are larger. */
    code = code < tf_overflow_code(f) ? code : tf_overflow_code(f);
    return f.specials == TF_FNUZ && code == 0 ? 0 : code | sign;
}

TF_INLINE int tf_mends_nan(struct tf_format f)
{
    return f.specials == TF_IEEE || f.specials == TF_FINITE;
}

TF_INLINE int tf_single_is_nan(uint32_t bits)
{
    return (int32_t)(bits & TF_MAGNITUDE_BITS) > (int32_t)TF_INF_BITS;
}

/* Returns the canonical NaN, with the sign of `bits` if the format has one. */
TF_INLINE uint32_t tf_code_of_nan(struct tf_format f, uint32_t bits)
{
    const uint32_t sign = bits >> (32 - f.width) & tf_sign_mask(f);
    return tf_nan_code(f) | sign;
}

/* Returns the code of any float32, rounded to nearest, ties to even. */
TF_INLINE uint32_t tf_code_of_single(struct tf_format f, uint32_t bits)
{
    const uint32_t code = tf_code_of_number(f, bits);
    return tf_mends_nan(f) && tf_single_is_nan(bits) ? tf_code_of_nan(f, bits) : code;
}

/* -- item -> float32 --------------------------------------------------------- */

/* Returns the float32 bits of an item's number. NaN is quiet and keeps its sign, if the
 * format's NaN has one. */
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
        /* With 2^(1 - bias) added, the bits of a subnormal number become those of a
         * normal one; the subtraction removes 2^(1 - bias). No operand is subnormal in
         * float32, on which some processors are slow. */
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
        /* The code of -0 elsewhere is NaN in fnuz. */
        bits = sign != 0 && magnitude == 0 ? TF_QUIET_NAN_BITS : bits;
        sign = magnitude == 0 ? 0 : sign;
    }
    return bits | sign;
}

#endif
