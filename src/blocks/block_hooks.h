/* Hooks of quantization: functions that a CPU and a GPU implement differently.
 *
 * quantize_block.h and the headers that it includes are one source for CPU and GPU. A file
 * that quantizes includes it through the header that defines the hooks and TF_BLOCK_SHARE,
 * the number of a block's numbers that one thread has:
 *
 *   blocks/cpu_hooks.h          a thread has whole blocks
 *   cuda/blocks/warp_shares.h   neighboring threads of a warp share a block
 */
#ifndef TF32DTYPE_BLOCKS_BLOCK_HOOKS_H
#define TF32DTYPE_BLOCKS_BLOCK_HOOKS_H

#include "blocks/block_plan.h"

/* -- facts of the plan, which kernels on a GPU are compiled for ----------------------- */

/* Returns the element of the second level, or -1. */
TF_INLINE int tf_plan_residual(const struct tf_block_plan *plan);

/* Returns whether the rule is the search. */
TF_INLINE int tf_plan_searches(const struct tf_block_plan *plan);

/* Returns how many numbers of a block this thread has: a multiple of the lanes of a
 * vector. The other hooks take that many numbers, n. */
TF_INLINE int tf_block_size(const struct tf_block_plan *plan);

/* -- all numbers of a block ------------------------------------------------------------ */

/* Returns the largest magnitude of the block, as bits. */
TF_INLINE uint32_t tf_greatest_of_block(const float *x, int n);

/* Mean and standard deviation of a block, for rules that need more than its largest
 * magnitude. */
struct tf_spread {
    double mean, deviation;
};

TF_RARE_OF_ARRAYS struct tf_spread tf_block_spread(const float *x, int n);

/* Writes n quotients x / s within the bounds, such that rounding these to the element's
 * grid, to nearest, rounds the exact quotients. s is moderate. */
TF_INLINE void tf_divide_moderate(const float *x, int n, float s, float lowest,
                                  float greatest, float *out);

/* -- the search ------------------------------------------------------------------------ */

/* The codes with the smallest and the next cost (or largest error), or -1 for none. */
struct tf_kept {
    int32_t first, second;
};

/* Returns the best scale, or the best `two`, for normalized numbers xs with the largest
 * magnitude a. The cost is the squared error, or the largest error if `extremes`. */
TF_INLINE struct tf_kept tf_search_scale(struct tf_element e,
                                         const struct tf_block_plan *plan,
                                         const float *xs, int n, float a, float normal,
                                         int two, int extremes);

/* The first level of n numbers by a kept scale: the nearest elements `hi`, and the next
 * ones on the other side, `beside`; and the rest that each leaves for the residual. */
struct tf_remainders {
    float hi[TF_BLOCK_SHARE], beside[TF_BLOCK_SHARE];
    float rest[TF_BLOCK_SHARE], rest_beside[TF_BLOCK_SHARE];
};

/* Writes the code of the residual's scale that leaves the smallest error, and returns that
 * error. `scale` is the block's, and `most` the largest of its remainders r. */
TF_INLINE float tf_search_remainders(struct tf_element lo,
                                     const struct tf_block_plan *plan,
                                     const struct tf_remainders *r, int n, float scale,
                                     float most, int32_t *code);

#endif
