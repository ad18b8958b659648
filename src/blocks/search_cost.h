/* What scales of a block would cost: squared errors of its numbers, many scales at once.
 *
 * src/blocks/kernels/vector_search_cost.h says the same with vectors, which is then used.
 */
#ifndef TF32DTYPE_BLOCKS_SEARCH_COST_H
#define TF32DTYPE_BLOCKS_SEARCH_COST_H

#include "blocks/scale_rules.h"

/* What S is in a normalized block: within normal numbers. */
#define TF_LEAST_WITHIN 0x1p-126f
#define TF_MOST_WITHIN 0x1.fffffep127f

TF_INLINE float tf_scale_within(float scale, float normal)
{
    return tf_between(TF_LEAST_WITHIN, scale * normal, TF_MOST_WITHIN);
}

/* Costs of many scales lie in an array that is filled up to whole batches, with Inf. */
enum { TF_COSTS = 3 * TF_BLOCK_LANES };

TF_INLINE int tf_whole_batches(int count)
{
    return (count + TF_BLOCK_LANES - 1) / TF_BLOCK_LANES * TF_BLOCK_LANES;
}

/* Normalized magnitudes of a block; a block of 16 has zeros after it, which add
 * nothing. */
struct tf_magnitudes {
    float x[TF_BLOCK_MOST];
    int n; /* 32 or more */
};

/* What a kept scale leaves of n numbers for the residual: of the nearest number of the
 * first level, and of the one beyond it. */
struct tf_remainders {
    float hi[TF_BLOCK_MOST], beside[TF_BLOCK_MOST];
    float rest[TF_BLOCK_MOST], rest_beside[TF_BLOCK_MOST];
};

/* The inverse of a residual's scale, which may be too small to have one. */
#define TF_MOST_INVERSE 0x1p127f

TF_INLINE float tf_inverse(float u)
{
    const float inverse = 1.0f / u;
    return inverse < TF_MOST_INVERSE ? inverse : TF_MOST_INVERSE;
}

#if !defined(TF_FAST_COSTS)

/* The sum of 16 lanes of each of 16 candidates, in one order. */
TF_INLINE void tf_add_lanes(float sums[TF_BLOCK_LANES][TF_BLOCK_LANES])
{
    for (int h = TF_BLOCK_LANES / 2; h > 0; h >>= 1) {
        for (int l = 0; l < h; l++) {
            TF_VECTOR_LOOP
            for (int v = 0; v < TF_BLOCK_LANES; v++) {
                sums[l][v] += sums[l + h][v];
            }
        }
    }
}

/* What is left of a magnitude by a scale. */
TF_INLINE float tf_first_error(struct tf_element e, float greatest, float x, float scale,
                               float inverse)
{
    const float y = x * inverse;
    const float q = tf_nearest_within(e, y < greatest ? y : greatest);
    return tf_fma(-scale, q, x);
}

/* Costs of 16 scales side by side: squared errors, or the greatest error. */
TF_INLINE void tf_scale_batch(struct tf_element e, float greatest,
                              const struct tf_magnitudes *block, const float *candidates,
                              float normal, int extremes, float *cost)
{
    float sums[TF_BLOCK_LANES][TF_BLOCK_LANES];
    float scale[TF_BLOCK_LANES], inverse[TF_BLOCK_LANES];
    TF_VECTOR_LOOP
    for (int v = 0; v < TF_BLOCK_LANES; v++) {
        scale[v] = tf_scale_within(candidates[v], normal);
        inverse[v] = 1.0f / scale[v];
    }
    for (int l = 0; l < TF_BLOCK_LANES; l++) {
        TF_VECTOR_LOOP
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            sums[l][v] = 0;
        }
    }
    for (int k = 0; k < block->n; k += 2 * TF_BLOCK_LANES) {
        for (int l = 0; l < TF_BLOCK_LANES; l++) {
            float *sum = sums[l];
            const float x = block->x[k + l], y = block->x[k + l + TF_BLOCK_LANES];
            TF_VECTOR_LOOP
            for (int v = 0; v < TF_BLOCK_LANES; v++) {
                const float d = tf_first_error(e, greatest, x, scale[v], inverse[v]);
                const float f = tf_first_error(e, greatest, y, scale[v], inverse[v]);
                if (extremes) {
                    const float a = tf_magnitude_of(d), b = tf_magnitude_of(f);
                    const float more = a > b ? a : b;
                    sum[v] = more > sum[v] ? more : sum[v];
                } else {
                    sum[v] = tf_fma(f, f, tf_fma(d, d, sum[v]));
                }
            }
        }
    }
    if (extremes) {
        for (int l = 1; l < TF_BLOCK_LANES; l++) {
            TF_VECTOR_LOOP
            for (int v = 0; v < TF_BLOCK_LANES; v++) {
                sums[0][v] = sums[l][v] > sums[0][v] ? sums[l][v] : sums[0][v];
            }
        }
    } else {
        tf_add_lanes(sums);
    }
    TF_VECTOR_LOOP
    for (int v = 0; v < TF_BLOCK_LANES; v++) {
        cost[v] = sums[0][v];
    }
}

/* The cost of one scale for n normalized magnitudes. */
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

/* Costs of `count` scales. */
TF_INLINE void tf_scale_costs(struct tf_element e, float greatest,
                              const struct tf_magnitudes *block, const float *candidates,
                              float normal, int count, int extremes, float *cost)
{
    int c = 0;
    for (; c + 4 <= count; c += TF_BLOCK_LANES) {
        tf_scale_batch(e, greatest, block, candidates + c, normal, extremes, cost + c);
    }
    for (; c < count; c++) {
        cost[c] = tf_scale_cost(e, greatest, block->x, block->n, candidates[c], normal,
                                extremes);
    }
    for (c = count; c < tf_whole_batches(count); c++) {
        cost[c] = tf_float_of(TF_INF_BITS);
    }
}

/* Where the least cost, none of them negative, is: the first of equals; but for
 * one place, or -1. */
TF_INLINE int tf_first_least(const float *cost, int count, int but)
{
    uint32_t least = UINT32_MAX, first = UINT32_MAX;
    for (int c = 0; c < tf_whole_batches(count); c += TF_BLOCK_LANES) {
        TF_VECTOR_LOOP
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            const uint32_t bits = c + v == but ? UINT32_MAX : tf_bits_of(cost[c + v]);
            least = bits < least ? bits : least;
        }
    }
    for (int c = 0; c < tf_whole_batches(count); c += TF_BLOCK_LANES) {
        TF_VECTOR_LOOP
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            const uint32_t at = (uint32_t)(c + v);
            const uint32_t place = tf_bits_of(cost[c + v]) == least && c + v != but
                                       ? at
                                       : UINT32_MAX;
            first = place < first ? place : first;
        }
    }
    return (int)first;
}

/* What is left of a remainder. */
TF_INLINE float tf_second_error(struct tf_element lo, float lowest, float greatest,
                                float rest, float u, float inverse)
{
    const float l = tf_nearest_within(lo, tf_between(lowest, rest * inverse, greatest));
    return tf_fma(-u, l, rest);
}

/* The lesser error of two levels: of the nearest number of the first one, or of the one
 * beyond it. */
TF_INLINE float tf_lesser_error(struct tf_element lo, float lowest, float greatest,
                                float rest, float beside, float u, float inverse)
{
    const float first =
        tf_magnitude_of(tf_second_error(lo, lowest, greatest, rest, u, inverse));
    const float second =
        tf_magnitude_of(tf_second_error(lo, lowest, greatest, beside, u, inverse));
    return second < first ? second : first;
}

/* Squared errors of two levels with 16 residual scales side by side. */
TF_INLINE void tf_residual_batch(struct tf_element lo, float lowest, float greatest,
                                 const struct tf_remainders *r, int n, const float *u,
                                 float *cost)
{
    float sums[TF_BLOCK_LANES][TF_BLOCK_LANES], inverse[TF_BLOCK_LANES];
    TF_VECTOR_LOOP
    for (int v = 0; v < TF_BLOCK_LANES; v++) {
        inverse[v] = tf_inverse(u[v]);
    }
    for (int l = 0; l < TF_BLOCK_LANES; l++) {
        TF_VECTOR_LOOP
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            sums[l][v] = 0;
        }
    }
    for (int i = 0; i < n; i++) {
        float *sum = sums[i % TF_BLOCK_LANES];
        const float rest = r->rest[i], beside = r->rest_beside[i];
        TF_VECTOR_LOOP
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            const float error =
                tf_lesser_error(lo, lowest, greatest, rest, beside, u[v], inverse[v]);
            sum[v] = tf_fma(error, error, sum[v]);
        }
    }
    tf_add_lanes(sums);
    TF_VECTOR_LOOP
    for (int v = 0; v < TF_BLOCK_LANES; v++) {
        cost[v] = sums[0][v];
    }
}

/* Costs of `count` scales of the residual beside a scale of the block. */
TF_INLINE void tf_residual_costs(struct tf_element lo, float lowest, float greatest,
                                 const struct tf_remainders *r, int n, float scale,
                                 const float *candidates, int count, float *cost)
{
    for (int c = 0; c < count; c += TF_BLOCK_LANES) {
        float u[TF_BLOCK_LANES];
        TF_VECTOR_LOOP
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            u[v] = scale * candidates[c + v];
        }
        tf_residual_batch(lo, lowest, greatest, r, n, u, cost + c);
    }
    for (int c = count; c < tf_whole_batches(count); c++) {
        cost[c] = tf_float_of(TF_INF_BITS);
    }
}

#endif

#endif
