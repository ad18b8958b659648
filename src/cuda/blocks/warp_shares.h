/* Functions of src/blocks/quantize_block.h for a block whose numbers several threads have.
 *
 * A thread has SHARE consecutive numbers of a block, and LANES neighboring threads have the
 * block. All threads of a warp must call each function, for they exchange values in it.
 *
 *   BLOCK_SIZE   numbers per block
 *   RESIDUAL     the element of the second level, by index in tf_elements; -1: one level
 *   SEARCHES     1: the rule is the search
 */
#ifndef TF32DTYPE_CUDA_BLOCKS_WARP_SHARES_H
#define TF32DTYPE_CUDA_BLOCKS_WARP_SHARES_H

#include "blocks/block_plan.h"

enum { TF_BLOCK_SHARE = 4 }; /* numbers in 16 bytes */

#include "blocks/quantize_block.h"
#include "cuda/common/common.h"

enum {
    WARP = 32,
    WARPS = 4, /* per block of threads, which share memory */
    SHARE = TF_BLOCK_SHARE,
    LANES = BLOCK_SIZE / SHARE,
    TOGETHER = WARP / LANES, /* blocks per warp */
};

/* Returns x of the thread `lane` of this warp. */
template <class T> inline T of_lane(T x, int lane)
{
    return __shfl_sync(0xFFFFFFFFu, x, lane);
}

/* Returns the first lane of this thread's block. */
inline int first_lane(void) { return (int)threadIdx.x % WARP & -LANES; }

/* Returns the largest, or the smallest, x of the threads of a block. */
template <class T> inline T most_of_block(T x)
{
#pragma unroll
    for (int mask = LANES / 2; mask; mask /= 2) {
        const T other = __shfl_xor_sync(0xFFFFFFFFu, x, mask);
        x = other > x ? other : x;
    }
    return x;
}
template <class T> inline T least_of_block(T x) { return ~most_of_block(~x); }

TF_INLINE int tf_plan_residual(const struct tf_block_plan *) { return RESIDUAL; }
TF_INLINE int tf_plan_searches(const struct tf_block_plan *) { return SEARCHES; }
TF_INLINE int tf_block_size(const struct tf_block_plan *) { return SHARE; }

TF_INLINE uint32_t tf_greatest_of_block(const float *x, int n)
{
    return most_of_block(tf_greatest_magnitude(x, n)); /* mutant: half a block has no say */
}

/* Returns mean and deviation of a block, added number by number in the order of the
 * line. */
TF_INLINE struct tf_spread tf_block_spread(const float *x, int n)
{
    const int first = first_lane();
    double sum = 0, squares = 0;
#pragma unroll 1
    for (int lane = first; lane < first + LANES; lane++) {
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            sum += (double)of_lane(x[i], lane);
        }
    }
    const double mean = sum / BLOCK_SIZE;
#pragma unroll 1
    for (int lane = first; lane < first + LANES; lane++) {
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            const double d = (double)of_lane(x[i], lane) - mean;
            squares += d * d;
        }
    }
    return {mean, tf_square_root(squares / BLOCK_SIZE)};
}

/* Divides n numbers by s and limits the results. A thread divides once, because vectors
 * would divide as often as they multiply. */
TF_INLINE void tf_divide_moderate(const float *x, int n, float s, float lowest,
                                  float greatest, float *out)
{
    if (!(tf_bits_of(s) & TF_FRACTION_BITS)) { /* a power of two: exact, or rounded to 0 */
        const float inverse = tf_float_of((UINT32_C(254) << 23) - tf_bits_of(s));
        for (int i = 0; i < n; i++) {
            out[i] = tf_between(lowest, x[i] * inverse, greatest);
        }
        return;
    }
    const float inverse = 1.0f / s;
    for (int i = 0; i < n; i++) {
        out[i] = tf_between(lowest, tf_quotient_to_odd_by(x[i], s, inverse), greatest);
    }
}

/* -- the search --------------------------------------------------------------------- */

/* Room for the costs of the blocks of a warp. A thread computes the cost of one scale for
 * all numbers of one block, and so adds them in the order of src/blocks/search_cost.h. */
struct alignas(16) tf_search_room {
    float x[WARP * SHARE], y[WARP * SHARE]; /* numbers of the warp */
    float cost[TOGETHER][TF_COSTS];
};

inline struct tf_search_room *search_room(void)
{
    __shared__ struct tf_search_room rooms[WARPS];
    return &rooms[threadIdx.x / WARP];
}

inline void put_share(float *numbers, const float *share)
{
    struct alignas(16) four {
        float of[SHARE];
    };
    ((four *)numbers)[threadIdx.x % WARP] = {share[0], share[1], share[2], share[3]};
}

/* Stores cost(block of the warp, index in its window) for `window` scales of each block.
 * The numbers must have been stored by put_share() before. */
template <class F> inline void put_costs(struct tf_search_room *room, int window, F cost)
{
    __syncwarp();
#pragma unroll 1
    for (int begin = 0; begin < TOGETHER * window; begin += WARP) {
        const int i = begin + (int)threadIdx.x % WARP;
        const int block = i / window < TOGETHER ? i / window : 0, place = i % window;
        const float found = cost(block, place);
        if (i < TOGETHER * window) {
            room->cost[block][place] = found;
        }
    }
    __syncwarp(); /* mutant: costs read early */
}

/* Returns the index of the smallest of `count` costs of this thread's block, the first of
 * equal ones. The index `but` is left out, unless it is -1. No cost is negative. */
inline int least_cost(const struct tf_search_room *room, int count, int but)
{
    const int first = first_lane();
    const float *cost = room->cost[first / LANES];
    uint64_t least = UINT64_MAX;
#pragma unroll 1
    for (int c = (int)threadIdx.x % WARP - first; c < count; c += LANES) {
        const uint64_t one = (uint64_t)tf_bits_of(cost[c]) << 32 | (uint32_t)c;
        least = one < least && c != but ? one : least;
    }
    return (int)(uint32_t)least_of_block(least);
}

TF_INLINE struct tf_kept tf_search_scale(struct tf_element e,
                                         const struct tf_block_plan *plan,
                                         const float *xs, int n, float a, float normal,
                                         int two, int extremes)
{
    struct tf_search_room *room = search_room();
    const int32_t from = tf_least_code(plan, plan->scales, 1.0f, (double)plan->search_limit, a);
    const int32_t count = tf_scale_count(plan, from);
    float magnitudes[SHARE];
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        magnitudes[i] = tf_magnitude_of(xs[i]);
    }
    put_share(room->x, magnitudes);
    put_costs(room, tf_scale_window(plan), [&](int block, int place) {
        const float *x = room->x + block * BLOCK_SIZE; /* mutant: costs of another block */
        /* mutant: a window of another block */
        const int32_t code = of_lane(from, block * LANES) + place;
        const float its_normal = of_lane(normal, block * LANES);
        return tf_scale_cost(e, plan->element_max, x, BLOCK_SIZE, plan->scales[code],
                             its_normal, extremes);
    });
    const int first = least_cost(room, count, -1);
    struct tf_kept kept = {from + first, from + first};
    if (two) { /* with one scale, the same again, which is never better */
        const int second = least_cost(room, count, first);
        kept.second = count > 1 ? from + second : from + first;
    }
    return kept;
}

/* Returns the squared errors of two levels with the residual's scale u, summed in the
 * order of tf_residual_batch. */
inline float residual_cost(struct tf_element lo, float lowest, float greatest,
                           const float *rest, const float *beside, float u)
{
    const float inverse = tf_inverse(u);
    float sum[TF_BLOCK_LANES] = {};
#pragma unroll 1
    for (int k = 0; k < BLOCK_SIZE; k += TF_BLOCK_LANES) {
#pragma unroll
        for (int l = 0; l < TF_BLOCK_LANES; l++) {
            const float error = tf_lesser_error(lo, lowest, greatest, rest[k + l],
                                                beside[k + l], u, inverse);
            sum[l] = tf_fma(error, error, sum[l]);
        }
    }
#pragma unroll
    for (int h = TF_BLOCK_LANES / 2; h > 0; h /= 2) {
#pragma unroll
        for (int l = 0; l < TF_BLOCK_LANES / 2; l++) {
            sum[l] = l < h ? sum[l] + sum[l + h] : sum[l];
        }
    }
    return sum[0];
}

TF_INLINE float tf_search_remainders(struct tf_element lo,
                                     const struct tf_block_plan *plan,
                                     const struct tf_remainders *r, int n, float scale,
                                     float most, int32_t *code)
{
    struct tf_search_room *room = search_room();
    const struct tf_residual_window window = tf_residual_window_of(plan, lo);
    const struct tf_codes codes = tf_residual_codes(plan, window, scale, most);
    put_share(room->x, r->rest);
    put_share(room->y, r->rest_beside);
    put_costs(room, window.before + window.after + 1, [&](int block, int place) {
        const int32_t one = of_lane(codes.from, block * LANES) + place;
        /* mutant: a scale of another block */
        const float u = of_lane(scale, block * LANES) * plan->residual_scales[one];
        /* mutant: remainders of another block */
        const float *x = room->x + block * BLOCK_SIZE, *y = room->y + block * BLOCK_SIZE;
        return residual_cost(lo, plan->residual_min, plan->residual_max, x, y, u);
    });
    const int first = least_cost(room, codes.count, -1);
    const float error = room->cost[first_lane() / LANES][first];
    *code = most == 0 ? 0 : codes.from + first;
    return most == 0 ? 0 : error;
}

#endif
