/* The digits of exact sums, and their one rounding. Freestanding and integer-only, so that
 * C and CUDA compile it.
 *
 * A sum is an integer of 4352 bits in units of 2^-2176. It holds every product of two
 * float64 numbers, from 2^-2148 to below 2^2048, and 2^62 of the largest ones. It has 136
 * digits of 32 bits, each in an int64_t, so that additions leave carries for later (Neal,
 * "Fast exact summation using small and large superaccumulators", 2015). */
#ifndef TF32DTYPE_EXACT_DIGITS_H
#define TF32DTYPE_EXACT_DIGITS_H

#include "formats/codec.h"
#include "runtime/wide_integers.h"

enum {
    TF_EXACT_DIGITS = 136,
    TF_EXACT_LEAST = -2176,
    /* Additions until a digit may overflow: each adds less than 2^33 to a digit. */
    TF_EXACT_ADDITIONS = 1 << 29
};
#define TF_EXACT_DIGIT UINT64_C(0xFFFFFFFF)

/* A finite number: (-1)^negative * significand * 2^exponent. */
struct tf_integer {
    uint64_t significand;
    int exponent, negative;
};

static inline struct tf_integer tf_integer_of(uint64_t bits)
{
    const int field = (int)(bits >> 52) & 0x7FF;
    const uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    const struct tf_integer x = {mantissa | (uint64_t)(field > 0) << 52,
                                 (field > 0 ? field : 1) - 1075, (int)(bits >> 63)};
    return x;
}

static inline int tf_is_finite_double(uint64_t bits) { return (bits >> 52 & 0x7FF) != 0x7FF; }

/* A product adds these amounts to five digits from `digit` on, or subtracts them if
 * `negative`. */
struct tf_product_digits {
    int digit, negative;
    uint64_t amounts[5];
};

/* Returns the digits of the product of two finite numbers. It has 106 bits: four digits,
 * which the shift makes five. */
static inline struct tf_product_digits tf_product_digits_of(uint64_t x, uint64_t y)
{
    const struct tf_integer one = tf_integer_of(x), other = tf_integer_of(y);
    const unsigned place = (unsigned)(one.exponent + other.exponent - TF_EXACT_LEAST);
    const unsigned shift = place % 32;
    const tf_u128 product = (tf_u128)one.significand * other.significand;
    const uint64_t lower = (uint64_t)product, upper = (uint64_t)(product >> 64);
    const uint64_t part0 = (lower & TF_EXACT_DIGIT) << shift, part1 = (lower >> 32) << shift;
    const uint64_t part2 = (upper & TF_EXACT_DIGIT) << shift, part3 = (upper >> 32) << shift;
    const struct tf_product_digits found = {
        (int)(place / 32),
        one.negative ^ other.negative,
        {part0 & TF_EXACT_DIGIT, (part0 >> 32) + (part1 & TF_EXACT_DIGIT),
         (part1 >> 32) + (part2 & TF_EXACT_DIGIT), (part2 >> 32) + (part3 & TF_EXACT_DIGIT),
         part3 >> 32}};
    return found;
}

/* Returns an amount with its sign, without a branch: signs are random. */
static inline int64_t tf_signed_amount(uint64_t amount, int negative)
{
    return ((int64_t)amount ^ -(int64_t)negative) + negative;
}

/* Brings all digits but the last to [0, 2^32). The last one has the sign of the sum. */
static inline void tf_carry_digits(int64_t *digits)
{
    int64_t over = 0;
    for (int i = 0; i < TF_EXACT_DIGITS - 1; i++) {
        const int64_t digit = digits[i] + over;
        digits[i] = digit & (int64_t)TF_EXACT_DIGIT;
        over = digit >> 32;
    }
    digits[TF_EXACT_DIGITS - 1] += over;
}

static inline void tf_negate_digits(int64_t *digits)
{
    for (int i = 0; i < TF_EXACT_DIGITS; i++) {
        digits[i] = -digits[i];
    }
    tf_carry_digits(digits);
}

/* Returns the sum that digits make, and carries. Its sticky bit stands for all bits below
 * the significand. A sum of zero is positive. */
static inline struct tf_value tf_value_of_digits(int64_t *digits)
{
    tf_carry_digits(digits);
    const int negative = digits[TF_EXACT_DIGITS - 1] < 0;
    if (negative) {
        tf_negate_digits(digits);
    }
    int top = TF_EXACT_DIGITS - 1;
    while (top >= 0 && digits[top] == 0) {
        top--;
    }
    struct tf_value value = tf_value_make(0, 0, 0);
    if (top >= 0) {
        /* The last digit may have up to 63 bits. No other digit follows above it then. */
        tf_u128 leading = 0;
        for (int i = 0; i < 3; i++) {
            leading = leading << 32 | (uint64_t)(top - i >= 0 ? digits[top - i] : 0);
        }
        int exponent = TF_EXACT_LEAST + 32 * (top - 2), sticky = 0;
        for (int i = top - 3; i >= 0 && !sticky; i--) {
            sticky = digits[i] != 0;
        }
        const uint64_t upper = (uint64_t)(leading >> 64); /* holds the digit `top` */
        const int extra = 64 - tf_leading_zeros(upper);
        sticky |= (leading & (((tf_u128)1 << extra) - 1)) != 0;
        value = tf_value_make(negative, (uint64_t)(leading >> extra), exponent + extra);
        value.sticky = (uint8_t)sticky;
    }
    if (negative) {
        tf_negate_digits(digits);
    }
    return value;
}

/* Rounds a value to an IEEE 754 interchange format of up to 53 significant bits, once, in
 * any mode but TF_STOCHASTIC, and returns the bits. NaN is the canonical one. Magnitudes
 * out of range become Inf or the largest number as IEEE 754 says, and the largest number
 * for TF_TO_ODD. */
static inline uint64_t tf_round_to_ieee(struct tf_value x, int exponent_bits,
                                        int mantissa_bits, enum tf_rounding rounding)
{
    const uint64_t sign = (uint64_t)x.negative << (exponent_bits + mantissa_bits);
    const uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << mantissa_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int least = 1 - bias - mantissa_bits; /* exponent of the smallest number */
    if (x.value_class == TF_NAN) {
        return infinity | UINT64_C(1) << (mantissa_bits - 1);
    }
    if (x.value_class == TF_INFINITY) {
        return sign | infinity;
    }
    if (x.significand == 0) {
        return sign;
    }
    const int top = x.exponent + 63; /* x is in [2^top, 2^(top + 1)) */
    const int is_normal = top - mantissa_bits > least;
    const int unit = is_normal ? top - mantissa_bits : least;
    const int cut = unit - x.exponent; /* bits to remove, at least 11 */
    const uint64_t kept = cut < 64 ? x.significand >> cut : 0;
    const uint64_t fraction = cut <= 64 ? x.significand << (64 - cut) % 64 : 0;
    const int more = x.sticky || (cut > 64 && x.significand != 0);
    uint64_t bits = kept + (uint64_t)tf_rounds_up(rounding, x.negative, kept, fraction,
                                                  more, 0);
    if (is_normal) { /* the leading bit of `kept` adds one to the field */
        const int64_t field = (int64_t)unit - least;
        if (field >= (INT64_C(1) << exponent_bits) - 2) {
            bits = infinity;
        } else {
            bits += (uint64_t)field << mantissa_bits;
        }
    }
    if (bits >= infinity) {
        bits = tf_stops_at_maximum(rounding, x.negative) ? infinity - 1 : infinity;
    }
    return sign | bits;
}

#endif
