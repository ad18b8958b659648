/* The scale of a block that costs the least, and that of its residual.
 *
 * A block is first normalized: xs = x 2^-e and Ss = S 2^-e, so that its greatest number
 * lies in [1, 2) (below 2^-126 as far as e = -126 goes). So float32 can hold squares of
 * errors, and their sums, without overflow, and costs can be compared. Numbers that are
 * below 2^-149 then become zero for the search, and for a residual to nearest; codes do
 * not see that, since they come of x itself wherever x is so small against S, nor does a
 * residual that is rounded in a direction or to odd, which asks tf_normalised_to_odd().
 */
#ifndef TF32DTYPE_BLOCKS_SCALE_SEARCH_H
#define TF32DTYPE_BLOCKS_SCALE_SEARCH_H

#include "blocks/search_cost.h"

/* What a block becomes. The numbers of both levels lie on the element's grid, or are
 * such that rounding them to it, to nearest, is what is wanted. */
struct tf_block {
    uint32_t code, residual_code; /* of the scales */
    uint32_t special;             /* some number is not finite */
    float hi[TF_BLOCK_SHARE], lo[TF_BLOCK_SHARE];
};

/* Scales that the search tries: an octave's, and one more. */
TF_INLINE int32_t tf_scale_window(const struct tf_block_plan *plan)
{
    return (1 << tf_scales[plan->layout.scale].mantissa_bits) + 1;
}

/* The same from a code on, as far as there are any. */
TF_INLINE int32_t tf_scale_count(const struct tf_block_plan *plan, int32_t from)
{
    const int32_t left = plan->top - from + 1, most = tf_scale_window(plan);
    return left < most ? left : most;
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
    return tf_float_of(tf_greatest_of_block(r->rest, n));
}

/* Scales of a residual that the search tries, about the least one that the greatest
 * remainder `most` fits: how many before it and after it. */
struct tf_residual_window {
    float limit;
    int32_t before, after;
};

TF_INLINE struct tf_residual_window
tf_residual_window_of(const struct tf_block_plan *plan, struct tf_element lo)
{
    const int bits = tf_scales[plan->layout.scale].mantissa_bits;
    const int eighth = (1 << bits) / 8;
    struct tf_residual_window window = {448.0f, 0, 1 << bits};
    if (lo.format < 0) {
        window.limit = 7.5f;
        window.before = eighth > 1 ? eighth : 1;
        window.after = eighth;
    }
    return window;
}

/* The codes of that, beside a scale of the block. */
struct tf_codes {
    int32_t from, count;
};

TF_INLINE struct tf_codes tf_residual_codes(const struct tf_block_plan *plan,
                                            struct tf_residual_window window, float scale,
                                            float most)
{
    const int32_t middle =
        tf_least_code(plan, plan->residual_scales, scale, (double)window.limit, most);
    const int32_t last = middle + window.after, to = last < plan->top ? last : plan->top;
    const int32_t first = middle - window.before;
    const int32_t from = first > plan->least ? first : plan->least;
    const struct tf_codes codes = {from, to - from + 1};
    return codes;
}

/* Tries the kept scales with the best of the residual's for each, and writes the codes of
 * the two that leave the least error. Returns the block's scale. */
TF_INLINE float tf_best_of_kept(struct tf_element e, struct tf_element lo,
                                const struct tf_block_plan *plan, const float *xs,
                                float normal, struct tf_kept kept,
                                struct tf_remainders *r, struct tf_block *block)
{
    const int n = tf_block_size(plan);
    float least = 0, scale = 0;
    for (int k = 0; k < 2; k++) {
        const int32_t code = k == 0 ? kept.first : kept.second;
        if (code < 0) {
            break;
        }
        const float candidate = tf_scale_within(plan->scales[code], normal);
        const float most = tf_remainders_of(e, plan->element_max, xs, n, candidate, r);
        int32_t residual;
        const float error =
            tf_search_remainders(lo, plan, r, n, candidate, most, &residual);
        if (k == 0 || error < least) {
            least = error;
            scale = candidate;
            block->code = (uint32_t)code;
            block->residual_code = (uint32_t)residual;
        }
    }
    return scale;
}

/* Two levels: scales and numbers of both. */
TF_INLINE void tf_search_residual(struct tf_element e, struct tf_element lo,
                                  const struct tf_block_plan *plan, const float *xs,
                                  float a, float normal, struct tf_block *block)
{
    const int n = tf_block_size(plan);
    const float lowest = plan->residual_min, greatest = plan->residual_max;
    const struct tf_kept kept =
        tf_search_scale(e, plan, xs, n, a, normal, 1, lo.format < 0);
    struct tf_remainders r;
    const float scale = tf_best_of_kept(e, lo, plan, xs, normal, kept, &r, block);
    /* What has won, once more. */
    const float most = tf_remainders_of(e, plan->element_max, xs, n, scale, &r);
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

/* The scales of a block of normalized numbers xs; of two levels, to nearest, the numbers
 * too. */
TF_INLINE void tf_search_block(struct tf_element e, const struct tf_block_plan *plan,
                               const float *xs, float a, float normal,
                               struct tf_block *block)
{
    const int n = tf_block_size(plan);
    if (tf_plan_residual(plan) < 0) {
        block->code = (uint32_t)tf_search_scale(e, plan, xs, n, a, normal, 0, 0).first;
    } else if (e.format != tf_float8_e4m3fn_index) {
        /* no such format */
    } else if (tf_plan_residual(plan) == tf_element_int4) {
        tf_search_residual(e, tf_elements[tf_element_int4], plan, xs, a, normal, block);
    } else {
        tf_search_residual(e, tf_elements[tf_element_float8_e4m3fn], plan, xs, a, normal,
                           block);
    }
}

#endif
