/* Quantizes lines of float32 to blocks of codes with scales, by the CPU's source. The
 * threads of a warp have SHARE numbers each, of 128 / BLOCK_SIZE neighboring blocks.
 *
 *   HI, RESIDUAL   indices in tf_elements of both levels; RESIDUAL -1: one level
 *   BLOCK_SIZE     numbers per block
 *   SEARCHES       1: the rule is the search
 */
#include "cuda/blocks/warp_shares.h"
#include "cuda/common/vectors.h"

/* Does the work of tf_round_block. All threads of a warp stay in it to the end. */
inline void round_share(struct tf_element e, const struct tf_block_plan &plan,
                        const float *x, const uint64_t *draws, struct tf_block *block)
{
    const uint32_t infinite = TF_INF_BITS;
    uint32_t most = tf_greatest_of_block(x, SHARE);
    const bool special = most >= infinite, poisoned = special && plan.nan_on_special;
    float finite[SHARE];
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        finite[i] = x[i];
    }
    const bool any_special = __any_sync(0xFFFFFFFFu, special);
    if (any_special) {
        uint32_t infinities = 0;
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            const uint32_t magnitude = tf_bits_of(x[i]) & TF_MAGNITUDE_BITS;
            infinities |= (uint32_t)(magnitude == infinite);
            finite[i] = magnitude < infinite ? x[i] : 0;
        }
        infinities = most_of_block(infinities);
        most = tf_greatest_of_block(finite, SHARE);
        most = most == 0 && infinities ? infinite - 1 : most;
    }
    const bool nothing = most == 0 || poisoned; /* rounded like most = 1 */
    tf_round_finite(e, &plan, finite, nothing ? 1.0f : tf_float_of(most), draws, block);
    if (nothing) {
        tf_round_zeros(block, SHARE);
        block->code = poisoned ? 0xFF : 0; /* mutant: a poisoned block */
    }
    if (!any_special) {
        return;
    }
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        const uint32_t magnitude = tf_bits_of(x[i]) & TF_MAGNITUDE_BITS;
        if (magnitude >= infinite && !poisoned) {
            block->hi[i] = magnitude == infinite ? tf_with_sign(plan.element_max, x[i])
                                                 : tf_float_of(TF_QUIET_NAN_BITS);
            block->lo[i] = 0;
        }
    }
}

/* Returns the code of a number of a block, which may be NaN. With one level, x is a
 * quotient that is not rounded yet. */
inline uint32_t code_of(struct tf_element e, float x)
{
    if (x != x) {
        return tf_code_in_block(e, x);
    }
    return tf_code_on_grid(e, RESIDUAL < 0 ? tf_nearest_signed(e, x) : x);
}

/* Stores the codes of a share, the first in the lowest bits, by wide aligned accesses. */
inline void put_codes(struct tf_element e, const float *numbers, uint8_t *out)
{
    uint64_t bits = 0;
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        /* mutant: bits of a code lost */
        bits |= (uint64_t)code_of(e, numbers[i]) << i * e.width;
    }
    const int size = SHARE * e.width / 8;
    if (size % 4 == 0 && (uintptr_t)out % size == 0) {
        if (size == 8) {
            *(uint64_t *)out = bits;
        } else {
            *(uint32_t *)out = (uint32_t)bits;
        }
    } else if (size % 2 == 0 && (uintptr_t)out % 2 == 0) {
#pragma unroll
        for (int i = 0; i < size / 2; i++) {
            /* mutant: codes at an odd place */
            ((uint16_t *)out)[i] = (uint16_t)(bits >> 16 * i);
        }
    } else {
#pragma unroll
        for (int i = 0; i < size; i++) {
            out[i] = (uint8_t)(bits >> 8 * i);
        }
    }
}

/* Quantizes lines of `length` numbers, whose last block may be short. `draws` has the
 * layout of x, or is null. Codes and scales are stored as by tf_blocks_quantize. */
extern "C" __global__ void __launch_bounds__(WARP * WARPS)
    block_quantize(const __grid_constant__ struct tf_block_plan plan, const float *x,
                   const uint64_t *draws, uint8_t *codes, uint8_t *scales,
                   uint8_t *residuals, int64_t lines, int64_t length)
{
    const struct tf_element e = tf_elements[HI];
    const struct tf_element lo = tf_elements[RESIDUAL < 0 ? HI : RESIDUAL];
    const int64_t blocks = tf_ceil_div(length, BLOCK_SIZE), all = lines * blocks;
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const int mine = lane % LANES * SHARE; /* the first, in the block */
    const int64_t step = (int64_t)gridDim.x * WARPS * TOGETHER;
#pragma unroll 1
    for (int64_t of_warp = ((int64_t)blockIdx.x * WARPS + warp) * TOGETHER; of_warp < all;
         of_warp += step) { /* `of_warp` is the warp's first block */
        const int64_t b = of_warp + lane / LANES;
        int64_t at = b * BLOCK_SIZE + mine, left = BLOCK_SIZE;
        if (length % BLOCK_SIZE != 0) {
            const int64_t line = b / blocks;
            const int64_t first = (b - line * blocks) * BLOCK_SIZE + mine;
            at = line * length + first;
            left = length - first;
        }
        left = b < all ? left : 0;
        float numbers[SHARE];
        tf_get_numbers(x + at, left, numbers);
        uint64_t drawn[SHARE] = {};
        if (draws) {
#pragma unroll
            for (int i = 0; i < SHARE; i++) {
                drawn[i] = i < left ? draws[at + i] : 0; /* mutant: draws of another number */
            }
        }
        struct tf_block block;
        round_share(e, plan, numbers, drawn, &block);
        if (b >= all) {
            continue;
        }
        put_codes(e, block.hi, codes + (b * BLOCK_SIZE + mine) * e.width / 8);
        if (RESIDUAL >= 0) {
            put_codes(lo, block.lo, residuals + (b * BLOCK_SIZE + mine) * lo.width / 8);
        }
        if (mine == 0) {
            scales[RESIDUAL < 0 ? b : 2 * b] = (uint8_t)block.code;
            if (RESIDUAL >= 0) {
                /* mutant: scales are of the block before */
                scales[2 * b + 1] = (uint8_t)block.residual_code;
            }
        }
    }
}
