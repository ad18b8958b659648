/* Values of blocks: S hi (+ S R lo), rounded once. */
#ifndef TF32DTYPE_BLOCKS_DEQUANTIZE_H
#define TF32DTYPE_BLOCKS_DEQUANTIZE_H

#include "blocks/element_rounding.h"

/* Returns the scale of a residual: S R as float32, or exact if that is subnormal. */
TF_INLINE double tf_second_scale(float scale, float residual)
{
    const float product = scale * residual;
    return product >= 0x1p-126f ? (double)product
                                      : (double)scale * (double)residual;
}

/* Returns a + b to odd, which a later rounding to float32 treats as the exact sum. */
TF_INLINE double tf_sum_to_odd(double a, double b)
{
    const double sum = a + b, part = sum - a;
    const double rest = (a - (sum - part)) + (b - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (rest != 0 && !(bits & 1)) {
        const int below = (rest < 0) != (sum < 0); /* the exact magnitude is smaller */
        bits += below ? UINT64_MAX : 1;
        double odd;
        memcpy(&odd, &bits, sizeof odd);
        return odd;
    }
    return sum;
}

/* Returns S hi (+ S2 lo), rounded to float64: to nearest, or to odd if `odd`. */
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

/* Returns the number as float32, rounded to nearest or to odd. Finite codes stay finite. */
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
        /* If the number was rounded to 0, its magnitude is not below that. */
        const uint32_t below = (rest < 0) != (number < 0);
        return tf_float_of((bits - below) | 1);
    }
    return single;
}

/* Returns whether one float32 operation gives the result of tf_block_single. S * hi must be
 * within range for all numbers of the element, and exact if there is something to add. */
TF_INLINE int tf_scale_is_plain(int two, float scale, float residual)
{
    const int exact = !two || (!(tf_bits_of(scale) & 0xF) &&
                               scale * residual >= 0x1p-126f);
    return exact && tf_is_moderate(scale);
}

#endif
