/* Exact sums of float64 numbers and of their products, and their one rounding. */
#include "exact/accumulator.h"

#include <math.h>
#include <string.h>

#include "formats/float_bits.h"

__extension__ typedef unsigned __int128 u128;

enum { ADDITIONS = 1 << 29 };
#define DIGIT UINT64_C(0xFFFFFFFF)

void tf_accumulator_clear(struct tf_accumulator *sum)
{
    memset(sum, 0, sizeof *sum);
    sum->left = ADDITIONS;
}

/* Brings all digits but the last to [0, 2^32). The last one has the sign of the sum. */
static void carry(struct tf_accumulator *sum)
{
    int64_t over = 0;
    for (int i = 0; i < TF_EXACT_DIGITS - 1; i++) {
        const int64_t digit = sum->digits[i] + over;
        sum->digits[i] = digit & (int64_t)DIGIT;
        over = digit >> 32;
    }
    sum->digits[TF_EXACT_DIGITS - 1] += over;
    sum->left = ADDITIONS;
}

/* A finite number: (-1)^negative * significand * 2^exponent. */
struct integer {
    uint64_t significand;
    int exponent, negative;
};

static inline struct integer integer_of(uint64_t bits)
{
    const int field = (int)(bits >> 52) & 0x7FF;
    const uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    return (struct integer){mantissa | (uint64_t)(field > 0) << 52,
                            (field > 0 ? field : 1) - 1075, (int)(bits >> 63)};
}

static inline uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline int is_finite(uint64_t bits) { return (bits >> 52 & 0x7FF) != 0x7FF; }

/* Adds an amount, or subtracts it if `negative`, without a branch: signs are random. */
static inline void add_digit(int64_t *digit, uint64_t amount, int negative)
{
    *digit += ((int64_t)amount ^ -(int64_t)negative) + negative;
}

void tf_accumulator_add(struct tf_accumulator *sum, const double *x, ptrdiff_t stride,
                        size_t n)
{
    for (size_t i = 0; i < n; i++, x = (const double *)((const char *)x + stride)) {
        const uint64_t bits = bits_of(*x);
        if (!is_finite(bits)) {
            sum->special += *x;
            continue;
        }
        const struct integer term = integer_of(bits);
        const unsigned place = (unsigned)(term.exponent - TF_EXACT_LEAST);
        int64_t *digit = sum->digits + place / 32;
        const u128 shifted = (u128)term.significand << place % 32;
        add_digit(digit, (uint64_t)shifted & DIGIT, term.negative);
        add_digit(digit + 1, (uint64_t)(shifted >> 32) & DIGIT, term.negative);
        add_digit(digit + 2, (uint64_t)(shifted >> 64), term.negative);
        if (--sum->left == 0) {
            carry(sum);
        }
    }
}

void tf_accumulator_add_products(struct tf_accumulator *sum, const double *x,
                                 const double *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t a = bits_of(x[i]), b = bits_of(y[i]);
        if (!is_finite(a) || !is_finite(b)) {
            sum->special += x[i] * y[i];
            continue;
        }
        const struct integer one = integer_of(a), other = integer_of(b);
        const unsigned place = (unsigned)(one.exponent + other.exponent - TF_EXACT_LEAST);
        const unsigned shift = place % 32;
        const int negative = one.negative ^ other.negative;
        int64_t *digit = sum->digits + place / 32;
        /* The product has 106 bits: four digits, which the shift makes five. */
        const u128 product = (u128)one.significand * other.significand;
        const uint64_t lower = (uint64_t)product, upper = (uint64_t)(product >> 64);
        const uint64_t part0 = (lower & DIGIT) << shift, part1 = (lower >> 32) << shift;
        const uint64_t part2 = (upper & DIGIT) << shift, part3 = (upper >> 32) << shift;
        add_digit(digit, part0 & DIGIT, negative);
        add_digit(digit + 1, (part0 >> 32) + (part1 & DIGIT), negative);
        add_digit(digit + 2, (part1 >> 32) + (part2 & DIGIT), negative);
        add_digit(digit + 3, (part2 >> 32) + (part3 & DIGIT), negative);
        add_digit(digit + 4, part3 >> 32, negative);
        if (--sum->left == 0) {
            carry(sum);
        }
    }
}

struct tf_value tf_accumulator_value(struct tf_accumulator *sum)
{
    if (!isfinite(sum->special)) {
        return tf_value_special(sum->special < 0, isnan(sum->special) ? TF_NAN : TF_INFINITY);
    }
    carry(sum);
    struct tf_accumulator magnitude;
    const int negative = sum->digits[TF_EXACT_DIGITS - 1] < 0;
    if (negative) {
        for (int i = 0; i < TF_EXACT_DIGITS; i++) {
            magnitude.digits[i] = -sum->digits[i];
        }
        carry(&magnitude);
    }
    const int64_t *digits = negative ? magnitude.digits : sum->digits;
    int top = TF_EXACT_DIGITS - 1;
    while (top >= 0 && digits[top] == 0) {
        top--;
    }
    if (top < 0) {
        return tf_value_make(0, 0, 0);
    }
    /* The last digit may have up to 63 bits. No other digit follows above it then. */
    u128 leading = 0;
    for (int i = 0; i < 3; i++) {
        leading = leading << 32 | (uint64_t)(top - i >= 0 ? digits[top - i] : 0);
    }
    int exponent = TF_EXACT_LEAST + 32 * (top - 2), sticky = 0;
    for (int i = top - 3; i >= 0 && !sticky; i--) {
        sticky = digits[i] != 0;
    }
    const uint64_t upper = (uint64_t)(leading >> 64);
    const int extra = 64 - __builtin_clzll(upper); /* `upper` holds the digit `top` */
    sticky |= (leading & (((u128)1 << extra) - 1)) != 0;
    struct tf_value value =
        tf_value_make(negative, (uint64_t)(leading >> extra), exponent + extra);
    value.sticky = (uint8_t)sticky;
    return value;
}

/* Rounds a value to an IEEE 754 interchange format, and returns the bits. */
static uint64_t round_to_ieee(struct tf_value x, int exponent_bits, int mantissa_bits,
                              enum tf_rounding rounding)
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

double tf_round_to_double(struct tf_value x, enum tf_rounding rounding)
{
    const uint64_t bits = round_to_ieee(x, 11, 52, rounding);
    double result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

float tf_round_to_float(struct tf_value x, enum tf_rounding rounding)
{
    return tf_float_of((uint32_t)round_to_ieee(x, 8, 23, rounding));
}
