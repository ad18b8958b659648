/* Search for the scale of a block that has the smallest cost, and for that of its residual.
 *
 * A block is first normalized: xs = x 2^-e and Ss = S 2^-e, so that its largest number is
 * in [1, 2). If it is below 2^-126, e is -126. float32 can then hold squares of errors and
 * their sums without overflow, and costs can be compared. Numbers below 2^-149 become zero
 * for the search, and for a residual rounded to nearest. Codes do not depend on this: they
 * are computed from x itself if x is so small next to S. A residual rounded in a direction
 * or to odd does not either, because it uses tf_normalised_to_odd().
 */
#ifndef TF32DTYPE_BLOCKS_SCALE_SEARCH_H
#define TF32DTYPE_BLOCKS_SCALE_SEARCH_H

#include "blocks/search_cost.h"

/* The result for a block. The numbers of both levels are on the element's grid, or become
 * the right numbers when they are rounded to the nearest of the grid. */
struct tf_block {
    uint32_t code, residual_code; /* codes of the scales */
    uint32_t special;             /* whether some number is not finite */
    float hi[TF_BLOCK_SHARE], lo[TF_BLOCK_SHARE];
};

/* Returns how many scales the search tries: those of one binade, and one more. */
TF_INLINE int32_t tf_scale_window(const struct tf_block_plan *plan)
{
    return (1 << tf_scales[plan->layout.scale].mantissa_bits) + 1;
}

/* Returns how many scales the search tries from a code on, up to the last code. */
TF_INLINE int32_t tf_scale_count(const struct tf_block_plan *plan, int32_t from)
{
    const int32_t left = plan->top - from + 1, most = tf_scale_window(plan);
    return left < most ? left : most;
}

/* Writes the nearest and next numbers of the first level, and the remainders. Returns the
 * largest remainder of the nearest numbers. */
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

/* The residual's scales that the search tries: some before and after the smallest scale
 * that fits the largest remainder within `limit`. */
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

/* The codes of such a window, for one scale of the block. */
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

/* Tries the kept scales, each with its best residual scale, and writes the codes of the
 * pair with the smallest error. Returns the block's scale. */
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

/* Searches the scales of a block with two levels, and writes its numbers. */
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
    /* Compute the remainders of the best scale again. */
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

/* Searches the scales of a block of normalized numbers xs. With two levels, also writes the
 * numbers, rounded to nearest. */
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
