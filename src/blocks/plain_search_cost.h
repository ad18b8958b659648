/* Costs of many scales at once, in loops that compilers vectorize: some hooks of
 * cpu_hooks.h. kernels/vector_search_cost.h computes the same by vector instructions. */
#ifndef TF32DTYPE_BLOCKS_PLAIN_SEARCH_COST_H
#define TF32DTYPE_BLOCKS_PLAIN_SEARCH_COST_H

#include "blocks/cpu_hooks.h"

/* Adds the 16 lanes of each of 16 candidates, in one order, into sums[0]. */
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

/* Writes the costs of 16 scales side by side: squared errors, or the largest error. */
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

/* As cpu_hooks.h says; `but` is -1 if no index is left out. */
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

/* Writes the squared errors of two levels with 16 residual scales side by side. */
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
