/* The cost of a block's scale: squared errors of its numbers, or the largest error. */
#ifndef TF32DTYPE_BLOCKS_SEARCH_COST_H
#define TF32DTYPE_BLOCKS_SEARCH_COST_H

#include "blocks/scale_rules.h"

/* Limits of S in a normalized block: those of normal numbers. */
#define TF_LEAST_WITHIN 0x1p-126f
#define TF_MOST_WITHIN 0x1.fffffep127f

TF_INLINE float tf_scale_within(float scale, float normal)
{
    return tf_between(TF_LEAST_WITHIN, scale * normal, TF_MOST_WITHIN);
}

/* Size of an array of costs of many scales. Inf fills up whole batches. */
enum { TF_COSTS = 3 * TF_BLOCK_LANES };

TF_INLINE int tf_whole_batches(int count)
{
    return (count + TF_BLOCK_LANES - 1) / TF_BLOCK_LANES * TF_BLOCK_LANES;
}

/* Limit of the inverse of a residual's scale, which may be too small to have an inverse. */
#define TF_MOST_INVERSE 0x1p127f

TF_INLINE float tf_inverse(float u)
{
    const float inverse = 1.0f / u;
    return inverse < TF_MOST_INVERSE ? inverse : TF_MOST_INVERSE;
}

/* Returns the rest of a magnitude x that a scale's nearest number leaves. */
TF_INLINE float tf_first_error(struct tf_element e, float greatest, float x, float scale,
                               float inverse)
{
    const float y = x * inverse;
    const float q = tf_nearest_within(e, y < greatest ? y : greatest);
    return tf_fma(-scale, q, x);
}

/* Returns the cost of one scale for n normalized magnitudes. */
TF_INLINE float tf_scale_cost(struct tf_element e, float greatest, const float *x, int n,
                              float candidate, float normal, int extremes)
{
    const float scale = tf_scale_within(candidate, normal), inverse = 1.0f / scale;
    float sum[TF_BLOCK_LANES];
    TF_VECTOR_LOOP
    for (int l = 0; l < TF_BLOCK_LANES; l++) {
        sum[l] = 0;
    }
    for (int k = 0; k < n; k += TF_BLOCK_LANES) {
        TF_VECTOR_LOOP
        for (int l = 0; l < TF_BLOCK_LANES; l++) {
            const float d = tf_first_error(e, greatest, x[k + l], scale, inverse);
            const float a = tf_magnitude_of(d);
            sum[l] = !extremes ? tf_fma(d, d, sum[l]) : a > sum[l] ? a : sum[l];
        }
    }
    TF_VECTOR_LOOP
    for (int h = TF_BLOCK_LANES / 2; h > 0; h >>= 1) {
        TF_VECTOR_LOOP
        for (int l = 0; l < TF_BLOCK_LANES / 2; l++) {
            if (l < h) {
                const float a = sum[l], b = sum[l + h];
                sum[l] = !extremes ? a + b : b > a ? b : a;
            }
        }
    }
    return sum[0];
}

/* Returns the rest of a remainder that a residual scale's nearest number leaves. */
TF_INLINE float tf_second_error(struct tf_element lo, float lowest, float greatest,
                                float rest, float u, float inverse)
{
    const float l = tf_nearest_within(lo, tf_between(lowest, rest * inverse, greatest));
    return tf_fma(-u, l, rest);
}

/* Returns the smaller error of two levels: with the first level's nearest number, or with
 * the next one on the other side. */
TF_INLINE float tf_lesser_error(struct tf_element lo, float lowest, float greatest,
                                float rest, float beside, float u, float inverse)
{
    const float first =
        tf_magnitude_of(tf_second_error(lo, lowest, greatest, rest, u, inverse));
    const float second =
        tf_magnitude_of(tf_second_error(lo, lowest, greatest, beside, u, inverse));
    return second < first ? second : first;
}

#endif
