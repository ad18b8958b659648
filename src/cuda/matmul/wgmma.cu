/* a @ b by Hopper's wgmma, with a fixed order of k, as native.cu computes it by mma.sync.
 * Each element of the result is one chain of instructions from +0, k ascending.
 *
 * Or a and b are split into PARTS parts. The parts of a line are contiguous, and those of
 * b begin with the last. The result is the sum of ORDERS split orders, the smallest
 * first, in one chain through all orders, which is multiplied by `between` before each
 * next order. With PROMOTE, the largest products, order 0, are not a chain. Each
 * instruction's result is added to the sum by float32 addition, to nearest. These sums
 * are of stretches of k, one after the other, which are added to each other.
 *
 * The options of the compilation (tf32dtype/cuda/_matmul/wgmma.py) are those of
 * mma_tiles.h. They are limited to 2-byte elements in any layout, others along k, warps
 * of 16 rows and all of the tile's 128 or 256 columns, slices of 128 bytes of k, or
 * across k of 64 k. Besides,
 *
 *   UNIT, TAIL                the instruction, see hopper.h
 *   PARTS, ORDERS             1 and 1: plain operands
 *   PROMOTE                   1: each instruction of order 0 is a chain; 0: none is
 *
 *        global ---cp.async.bulk.tensor---> shared: STAGES slices ---wgmma---> registers
 *
 * One thread copies, up to STAGES slices ahead. Each other warpgroup has 64 rows of the
 * tile.
 *
 * A wide tile reads less from the L2 cache and shared memory per result. A step of 128 x
 * 256 x 64 of 2 bytes takes 1024 clocks of the tensor cores, 48 KiB from L2 and 80 KiB
 * from shared memory. A step of 128 x 128 x 64 takes 512 clocks, 32 KiB and 48 KiB.
 */

#include "cuda/matmul/chain.h"

/* `count` slices of a split order, from slice `in_a` of a and slice `in_b` of b on. */
struct Range {
    int in_a, in_b, count;
};

/* Returns a piece of a split order, whose products are of parts i of a and j of b with i
 * + j = order, i ascending, of `slices` each. */
inline Range range_of(int order, int slices, int piece, int pieces)
{
    const int least = order < PARTS ? 0 : order - PARTS + 1;
    const int64_t all = (int64_t)(order - 2 * least + 1) * slices;
    const int first = (int)(all * piece / pieces), last = (int)(all * (piece + 1) / pieces);
    /* mutant: parts of b in their own order */
    return {least * slices + first, (PARTS - 1 - order + least) * slices + first, last - first};
}

/* Adds each instruction of the slices to the sums, for 64 columns at a time. The next
 * instruction runs while the results are added. */
inline void promote(Results &sums, Ring &ring, int group, int slices)
{
    constexpr int COUNT = 32, PIECES = ACCUMULATORS / COUNT, ALL = STEPS * PIECES;
    float d[2][COUNT];
#pragma unroll 1
    for (; slices > 0; slices--, ring.go_on()) {
        ring.await_bytes(); /* mutant: no wait for bytes */
#pragma unroll
        for (int i = 0; i <= ALL; i++) {
            if (i < ALL) {
                registers_are_ready<COUNT>(d[i % 2]);
                begin_products(); /* mutant: no fence of registers */
                /* mutant: chains go on, by wgmma */
                begin_step<COUNT>(d[i % 2], ring, group, i / PIECES, i % PIECES * COUNT * 2, 0);
                commit_products();
            }
            if (i == 0) {
                continue;
            }
            if (i < ALL) {
                await_products<1>(); /* mutant: accumulators read early */
            } else {
                /* mutant: the last sums read early; a stage released unread */
                await_products<0>();
                Ring::release(ring.empty());
            }
            registers_are_ready<COUNT>(d[(i - 1) % 2]);
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                float &sum = sums[0][((i - 1) % PIECES * COUNT + j) / 4][j % 4];
                sum = __fadd_rn(sum, d[(i - 1) % 2][j]); /* mutant: no instruction added */
            }
        }
    }
}

/* out (stacks, m, n) = a (stacks, m, k) b (stacks, k, n), with k in `slices` slices. With
 * pieces of k, `out` is (pieces, stacks, m, n). The maps have dimensions (k, lines,
 * stacks), and boxes of a slice of the tile's lines. Across k they have (lines, k,
 * stacks), and boxes of 64 lines of a slice. If an operand has one matrix for all stacks,
 * its stack_a or stack_b is 0, else 1. A stretch is a number of slices.
 *
 * A block has every gridDim.x-th tile, and copies the first slices of the next tile while
 * it writes the results of a tile. */
extern "C" __global__ void __launch_bounds__(THREADS + 128, 1)
    wgmma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
          float *out, int64_t m, int64_t n, int32_t slices, int32_t stacks, int32_t pieces,
          int32_t stack_a, int32_t stack_b, int32_t tiles, int32_t stretch, float between)
{
    DYNAMIC_SHARED(uint8_t, memory);
    /* mutant: stages begin anywhere */
    uint8_t *const base = memory + (-shared_of(memory) & 1023);
    Ring ring;
    ring.start(shared_of(base), shared_of(base) + OF_BARRIERS);
    const uint32_t rows = (uint32_t)tf_ceil_div(m, ROWS);
    const uint32_t columns = (uint32_t)tf_ceil_div(n, COLUMNS);

    if (threadIdx.x >= THREADS) {
        give_registers<FEW>();
        if (threadIdx.x == THREADS) {
            for (uint32_t at = blockIdx.x; at < (uint32_t)tiles; at += gridDim.x) {
                const Tile tile = tile_of(at, rows, columns);
                const int piece = (int)tile.stack / stacks, stack = (int)tile.stack % stacks;
#pragma unroll 1
                for (int order = ORDERS - 1; order >= 0; order--) {
                    const Range range = range_of(order, slices, piece, pieces);
#pragma unroll 1
                    for (int i = 0; i < range.count; i++, ring.go_on()) {
                        ring.begin_to_fill();
                        /* mutant: the next slice begins too early, by wgmma */
                        copy_slice<ROWS, A_ALONG_K>(ring.here(), &a, (range.in_a + i) * DEPTH,
                                                    (int)tile.row, stack * stack_a,
                                                    ring.full());
                        copy_slice<COLUMNS, B_ALONG_K>(ring.here() + A_BYTES, &b,
                                                       (range.in_b + i) * DEPTH,
                                                       /* mutant: columns of another tile */
                                                       (int)tile.column, stack * stack_b,
                                                       ring.full());
                    }
                }
            }
        }
    } else {
        take_registers<MANY>();
        const int thread = (int)threadIdx.x, group = thread / 128, lane = thread % 32;
        const bool paired = ((uintptr_t)out | (uint64_t)n * 4) % 8 == 0;
#pragma unroll 1
        for (uint32_t at = blockIdx.x; at < (uint32_t)tiles; at += gridDim.x) {
            const Tile tile = tile_of(at, rows, columns); /* mutant: always the first tile */
            const int piece = (int)tile.stack / stacks;
            const int64_t row = tile.row + thread / 32 * 16 + lane / 4;
            const int64_t column = tile.column + lane % 4 * 2;
            float *const place = out + (tile.stack * m + row) * n + column;
            const bool whole =
                tile.row + ROWS <= m && tile.column + COLUMNS <= n && paired;
            Results sums = {};
            /* 1. Chains of all orders, except order 0 with PROMOTE. */
#pragma unroll 1
            for (int order = ORDERS - 1; order >= PROMOTE; order--) {
                chain(&sums[0][0][0], ring, group, range_of(order, slices, piece, pieces).count);
#pragma unroll
                for (int i = 0; order > 0 && i < ACCUMULATORS; i++) {
                    sums[0][i / 4][i % 4] *= between; /* mutant: orders count alike */
                }
            }
            /* 2. Stretches of order 0, each added to the results of the previous ones. */
            int left = PROMOTE ? range_of(0, slices, piece, pieces).count : 0;
            float beta = 0;
#pragma unroll 1
            do {
                if (PROMOTE) {
                    /* mutant: a stretch is a slice too long, by wgmma */
                    const int ahead = left < stretch ? left : stretch;
                    promote(sums, ring, group, ahead);
                    left -= ahead;
                }
                if (whole) {
                    deposit<true>(sums, place, n, m, n, beta);
                } else {
                    deposit<false>(sums, place, n, m - row, n - column, beta);
                }
                beta = 1; /* mutant: stretches forgotten */
                if (left > 0) {
#pragma unroll
                    for (int i = 0; i < ACCUMULATORS; i++) {
                        sums[0][i / 4][i % 4] = 0; /* mutant: sums not restarted, by wgmma */
                    }
                }
            } while (left > 0);
        }
    }
}
