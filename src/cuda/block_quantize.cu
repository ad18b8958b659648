/* Lines of float32 to blocks of codes with scales: a thread a block, by the text that the
 * CPU compiles. Its numbers lie in memory of the thread's own, which caches hold.
 *
 *   HI, RESIDUAL   the elements of both levels, of tf_elements; RESIDUAL -1: one level
 *   SEARCHES       whether the rule is the search
 */
#define TF_PLAN_RESIDUAL RESIDUAL
#define TF_PLAN_SEARCHES SEARCHES
#include "block_round.h"
#include "common.h"

/* Codes of `n` numbers, the first in the lowest bits. */
inline void put_codes(struct tf_element e, const float *numbers, int n, uint8_t *out)
{
    uint32_t bits = 0;
    int filled = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        bits |= tf_code_in_block(e, numbers[i]) << filled;
#pragma unroll 1
        for (filled += e.width; filled >= 8; filled -= 8) {
            *out++ = (uint8_t)bits;
            bits >>= 8;
        }
    }
}

/* `length` numbers of a line, of which the last block may be short; `draws` lie like them,
 * or are null. Parts as tf_blocks_quantize has them. */
extern "C" __global__ void __launch_bounds__(128)
    block_quantize(const struct tf_block_plan *__restrict__ given, const float *x,
                   const uint64_t *draws, uint8_t *codes, uint8_t *scales,
                   uint8_t *residuals, int64_t lines, int64_t length)
{
    const struct tf_block_plan &plan = *given;
    const struct tf_element e = tf_elements[HI];
    const int n = plan.layout.block;
    const int64_t blocks = (length + n - 1) / n, all = lines * blocks;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    float numbers[TF_BLOCK_MOST];
    uint64_t drawn[TF_BLOCK_MOST];
    struct tf_block block;
#pragma unroll 1
    for (int64_t b = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; b < all; b += step) {
        const int64_t first = b % blocks * n, at = b / blocks * length + first;
        const int64_t left = length - first;
#pragma unroll 1
        for (int i = 0; i < n; i++) {
            numbers[i] = i < left ? x[at + i] : 0;
            drawn[i] = draws && i < left ? draws[at + i] : 0;
        }
        tf_round_block(e, &plan, numbers, draws ? drawn : 0, &block);
        put_codes(e, block.hi, n, codes + b * (n * e.width / 8));
        if (RESIDUAL < 0) {
            scales[b] = (uint8_t)block.code;
            continue;
        }
        const struct tf_element lo = tf_elements[RESIDUAL < 0 ? HI : RESIDUAL];
        scales[2 * b] = (uint8_t)block.code;
        scales[2 * b + 1] = (uint8_t)block.residual_code;
        put_codes(lo, block.lo, n, residuals + b * (n * lo.width / 8));
    }
}
