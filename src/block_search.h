/* The scale of a block that costs the least, and that of its residual.
 *
 * A block is first normalised: xs = x 2^-e and Ss = S 2^-e, so that its greatest number
 * lies in [1, 2) (below 2^-126 as far as e = -126 goes). What is below 2^-149 then is
 * lost for the search and the residual, but not for the codes, nor for a residual that is
 * rounded in a direction or to odd.
 */
#ifndef TF32DTYPE_BLOCK_SEARCH_H
#define TF32DTYPE_BLOCK_SEARCH_H

#include "block_costs.h"

/* What a block becomes. The numbers of both levels lie on the element's grid, or are
 * such that rounding them to it, to nearest, is what is wanted. */
struct tf_block {
    uint32_t code, residual_code; /* of the scales */
    uint32_t special;             /* some number is not finite */
    float hi[TF_BLOCK_MOST], lo[TF_BLOCK_MOST];
};

/* Codes by cost, or by greatest error: the least one's, and the next one's; -1: none. */
struct tf_kept {
    int32_t code[2];
};

TF_INLINE struct tf_kept tf_search_scale(struct tf_element e,
                                         const struct tf_block_plan *plan,
                                         const struct tf_magnitudes *block, float a,
                                         float normal, int two, int extremes)
{
    float cost[TF_COSTS];
    const int32_t from = tf_least_code(plan, plan->scales, 1.0f, (double)plan->limit, a);
    const int32_t left = plan->top - from + 1;
    const int32_t most = (1 << tf_scales[plan->layout.scale].mantissa_bits) + 1;
    const int32_t count = left < most ? left : most;
    tf_scale_costs(e, plan->greatest, block, plan->scales + from, normal, count, extremes,
                   cost);
    const int first = tf_first_least(cost, count, -1);
    struct tf_kept kept = {{from + first, -1}};
    if (two && count > 1) {
        kept.code[1] = from + tf_first_least(cost, count, first);
    }
    return kept;
}

/* Returns the greatest remainder of the nearest numbers. */
TF_INLINE float tf_remainders_of(struct tf_element e, float greatest, const float *xs,
                                 int n, float scale, struct tf_remainders *r)
{
    const float inverse = 1.0f / scale;
    for (int i = 0; i < n; i++) {
        const float y = xs[i] * inverse;
        const float hi = tf_nearest_signed(e, tf_between(-greatest, y, greatest));
        const float beside = tf_next_element(e, greatest, hi, y >= hi);
        r->hi[i] = hi;
        r->beside[i] = beside;
        r->rest[i] = tf_fma(-scale, hi, xs[i]);
        r->rest_beside[i] = tf_fma(-scale, beside, xs[i]);
    }
    return tf_float_of(tf_greatest_magnitude(r->rest, n));
}

/* Two levels: scales and numbers of both. */
TF_INLINE void tf_search_residual(struct tf_element e, struct tf_element lo,
                                  const struct tf_block_plan *plan, const float *xs,
                                  const struct tf_magnitudes *magnitudes, float a,
                                  float normal, struct tf_block *block)
{
    const int n = tf_block_size(plan);
    const int bits = tf_scales[plan->layout.scale].mantissa_bits;
    const int whole = lo.format < 0;
    const int eighth = (1 << bits) / 8;
    const int before = whole ? (eighth > 1 ? eighth : 1) : 0;
    const int after = whole ? eighth : 1 << bits;
    const float lowest = plan->lowest, greatest = plan->residual_greatest;
    const struct tf_kept kept =
        tf_search_scale(e, plan, magnitudes, a, normal, 1, whole);
    struct tf_remainders r;
    float least = 0, scale = 0;
    for (int k = 0; k < 2 && kept.code[k] >= 0; k++) {
        const float candidate = tf_scale_within(plan->scales[kept.code[k]], normal);
        const float most = tf_remainders_of(e, plan->greatest, xs, n, candidate, &r);
        float error = 0;
        int32_t code = 0;
        if (most != 0) {
            const int32_t middle = tf_least_code(plan, plan->residual_scales, candidate,
                                                 whole ? 7.5 : 448.0, most);
            const int32_t to = middle + after < plan->top ? middle + after : plan->top;
            int32_t from = middle - before;
            from = from > plan->least ? from : plan->least;
            float cost[TF_COSTS];
            tf_residual_costs(lo, lowest, greatest, &r, n, candidate,
                              plan->residual_scales + from, to - from + 1, cost);
            const int first = tf_first_least(cost, to - from + 1, -1);
            error = cost[first];
            code = from + first;
        }
        if (k == 0 || error < least) {
            least = error;
            scale = candidate;
            block->code = (uint32_t)kept.code[k];
            block->residual_code = (uint32_t)code;
        }
    }
    /* What has won, once more. */
    const float most = tf_remainders_of(e, plan->greatest, xs, n, scale, &r);
    const float u = scale * plan->residual_scales[block->residual_code];
    const float inverse = tf_inverse(u);
    if (most == 0) {
        for (int i = 0; i < n; i++) {
            block->hi[i] = r.hi[i];
            block->lo[i] = 0;
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        const float y = r.rest[i] * inverse, z = r.rest_beside[i] * inverse;
        const float l = tf_nearest_signed(lo, tf_between(lowest, y, greatest));
        const float m = tf_nearest_signed(lo, tf_between(lowest, z, greatest));
        const float first = tf_magnitude_of(tf_fma(-u, l, r.rest[i]));
        const float second = tf_magnitude_of(tf_fma(-u, m, r.rest_beside[i]));
        block->hi[i] = second < first ? r.beside[i] : r.hi[i];
        block->lo[i] = second < first ? m : l;
    }
}

#endif
