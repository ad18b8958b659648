/* Quantization on a CPU: quantize_block.h with the hooks for a thread that has whole
 * blocks.
 *
 * The search computes the costs of many scales at once. A file that includes this header
 * also includes plain_search_cost.h or kernels/vector_search_cost.h, which compute them.
 */
#ifndef TF32DTYPE_BLOCKS_CPU_HOOKS_H
#define TF32DTYPE_BLOCKS_CPU_HOOKS_H

#include "blocks/block_plan.h"

enum { TF_BLOCK_SHARE = TF_BLOCK_MOST };

#include "blocks/quantize_block.h"

TF_INLINE int tf_plan_residual(const struct tf_block_plan *plan)
{
    return plan->layout.residual;
}

TF_INLINE int tf_plan_searches(const struct tf_block_plan *plan)
{
    return plan->rule == TF_RULE_MSE;
}

/* Compilers see that blocks are whole vectors. */
TF_INLINE int tf_block_size(const struct tf_block_plan *plan)
{
    return plan->layout.block & -TF_BLOCK_LANES;
}

TF_INLINE uint32_t tf_greatest_of_block(const float *x, int n)
{
    return tf_greatest_magnitude(x, n);
}

TF_RARE_OF_ARRAYS struct tf_spread tf_block_spread(const float *x, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)x[i];
    }
    const double mean = sum / n;
    for (int i = 0; i < n; i++) {
        const double d = (double)x[i] - mean;
        squares += d * d;
    }
    const struct tf_spread spread = {mean, tf_square_root(squares / n)};
    return spread;
}

/* Divides each number: vectors divide as often as they multiply. */
TF_INLINE void tf_divide_moderate(const float *x, int n, float s, float lowest,
                                  float greatest, float *out)
{
    for (int i = 0; i < n; i++) {
        out[i] = tf_between(lowest, tf_quotient_to_odd(x[i], s), greatest);
    }
}

/* -- the search ------------------------------------------------------------------------ */

/* Normalized magnitudes of a block. Zeros follow a block of 16, and change no cost. */
struct tf_magnitudes {
    float x[TF_BLOCK_MOST];
    int n; /* 32 or more */
};

/* Write the costs of `count` scales of a block or its residual. Inf fills up a batch. */
TF_INLINE void tf_scale_costs(struct tf_element e, float greatest,
                              const struct tf_magnitudes *block, const float *candidates,
                              float normal, int count, int extremes, float *cost);
TF_INLINE void tf_residual_costs(struct tf_element lo, float lowest, float greatest,
                                 const struct tf_remainders *r, int n, float scale,
                                 const float *candidates, int count, float *cost);

/* Returns the index of the smallest cost except index `but`, and the first of equal costs.
 * No cost may be negative. */
TF_INLINE int tf_first_least(const float *cost, int count, int but);

TF_INLINE struct tf_kept tf_search_scale(struct tf_element e,
                                         const struct tf_block_plan *plan,
                                         const float *xs, int n, float a, float normal,
                                         int two, int extremes)
{
    struct tf_magnitudes magnitudes;
    magnitudes.n = n > 2 * TF_BLOCK_LANES ? n : 2 * TF_BLOCK_LANES;
    for (int i = 0; i < TF_BLOCK_LANES; i++) {
        magnitudes.x[TF_BLOCK_LANES + i] = 0;
    }
    for (int i = 0; i < n; i++) {
        magnitudes.x[i] = tf_magnitude_of(xs[i]);
    }
    float cost[TF_COSTS];
    const int32_t from = tf_least_code(plan, plan->scales, 1.0f, (double)plan->search_limit, a);
    const int32_t count = tf_scale_count(plan, from);
    tf_scale_costs(e, plan->element_max, &magnitudes, plan->scales + from, normal, count,
                   extremes, cost);
    const int first = tf_first_least(cost, count, -1);
    struct tf_kept kept = {from + first, -1};
    if (two && count > 1) {
        kept.second = from + tf_first_least(cost, count, first);
    }
    return kept;
}

TF_INLINE float tf_search_remainders(struct tf_element lo,
                                     const struct tf_block_plan *plan,
                                     const struct tf_remainders *r, int n, float scale,
                                     float most, int32_t *code)
{
    *code = 0;
    if (most == 0) {
        return 0;
    }
    float cost[TF_COSTS];
    const struct tf_codes codes =
        tf_residual_codes(plan, tf_residual_window_of(plan, lo), scale, most);
    tf_residual_costs(lo, plan->residual_min, plan->residual_max, r, n, scale,
                      plan->residual_scales + codes.from, codes.count, cost);
    const int first = tf_first_least(cost, codes.count, -1);
    *code = codes.from + first;
    return cost[first];
}

#endif
