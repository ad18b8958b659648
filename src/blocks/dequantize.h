/* What blocks are worth: S hi (+ S R lo), rounded once. */
#ifndef TF32DTYPE_BLOCKS_DEQUANTIZE_H
#define TF32DTYPE_BLOCKS_DEQUANTIZE_H

#include "blocks/element_rounding.h"

/* The scale of a residual: S R rounded to float32's 24 bits; where float32 has fewer,
 * all of them. */
TF_INLINE double tf_second_scale(float scale, float residual)
{
    const float product = scale * residual;
    return product >= 0x1p-126f ? (double)product
                                      : (double)scale * (double)residual;
}

/* a + b to odd, which a later rounding to float32 takes for the sum itself. */
TF_INLINE double tf_sum_to_odd(double a, double b)
{
    const double sum = a + b, part = sum - a;
    const double rest = (a - (sum - part)) + (b - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (rest != 0 && !(bits & 1)) {
        const int below = (rest < 0) != (sum < 0); /* the exact magnitude is less */
        bits += below ? UINT64_MAX : 1;
        double odd;
        memcpy(&odd, &bits, sizeof odd);
        return odd;
    }
    return sum;
}

/* S hi (+ S2 lo), exact but for what double lacks; `odd`: that is rounded to odd. */
TF_INLINE double tf_block_number(int two, float scale, double second, float hi, float lo,
                                 int odd)
{
    const double a = (double)scale * (double)hi;
    if (!two) {
        return a;
    }
    const double b = second * (double)lo;
    return odd && a - a == 0 && b - b == 0 ? tf_sum_to_odd(a, b) : a + b;
}

/* As float32, to nearest or to odd; what is finite stays finite. */
TF_NOINLINE float tf_block_single(int two, float scale, double second, float hi, float lo,
                              int odd)
{
    const double number = tf_block_number(two, scale, second, hi, lo, 1);
    const double most = 0x1.fffffep127;
    const int beyond = number > most || number < -most;
    if (beyond && scale <= (float)most && tf_magnitude_of(hi) <= (float)most) {
        return number < 0 ? (float)-most : (float)most;
    }
    const float single = (float)number;
    const double rest = number - (double)single;
    const uint32_t bits = tf_bits_of(single);
    if (odd && rest != 0 && rest == rest && !(bits & 1)) {
        /* Of 0, which has been rounded to, no magnitude is below. */
        const uint32_t below = (rest < 0) != (number < 0);
        return tf_float_of((bits - below) | 1);
    }
    return single;
}

/* Is S * hi, for all numbers of the element, a float32, if there is something to add, and
 * nothing beyond its range? Then one operation gives what tf_block_single gives. */
TF_INLINE int tf_scale_is_plain(int two, float scale, float residual)
{
    const int exact = !two || (!(tf_bits_of(scale) & 0xF) &&
                               scale * residual >= 0x1p-126f);
    return exact && tf_is_moderate(scale);
}

#endif
