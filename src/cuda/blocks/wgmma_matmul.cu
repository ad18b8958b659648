/* C = A B of blocks with scales, by Hopper's wgmma, as native_matmul.cu computes it by
 * mma.sync. For each block of k in order, and each existing term of hi hi, hi lo, lo hi,
 * lo lo, a chain of instructions begins at +0. Then, on the CUDA cores,
 *
 *     c = fma(RN32(scale of A's block * scale of B's), chain, c)
 *
 * The options of the compilation (tf32dtype/cuda/blocks/wgmma.py) are those of
 * mma_tiles.h, with k contiguous, warps of 16 x 128 and slices of 128 bytes, and
 *
 *   UNIT, TAIL                the instruction, see hopper.h
 *   BLOCK_K                   k of a block, of which slices are whole ones
 *   A_LEVELS, B_LEVELS        1, or 2: residuals are multiplied too
 *   LAST                      1: lo lo as well
 *
 * As in wgmma.cu, one thread copies codes and scales, up to STAGES slices ahead. While a
 * chain is computed in one set of accumulators, the previous chain, in the other set, is
 * scaled and added to the sums.
 */
#include "cuda/matmul/mma_tiles.h"

constexpr int TERMS = A_LEVELS * B_LEVELS - (A_LEVELS * B_LEVELS == 4 && !LAST);
constexpr int BLOCKS = DEPTH / BLOCK_K, CHAIN = STEPS / BLOCKS; /* instructions */
static_assert(DEPTH % BLOCK_K == 0, "whole blocks");

/* Offsets in a stage: codes of both levels, then, for each block, scales of both levels. */
constexpr int A_BYTES = ROWS * SLICE, B_BYTES = COLUMNS * SLICE;
constexpr int OF_B = A_LEVELS * A_BYTES, OF_SCALES = OF_B + B_LEVELS * B_BYTES;
constexpr int OF_SCALES_OF_B = OF_SCALES + BLOCKS * A_LEVELS * ROWS * 4;
constexpr int FILLED = OF_SCALES_OF_B + BLOCKS * B_LEVELS * COLUMNS * 4;

#include "cuda/matmul/ring.h"

/* A chain of a slice: its block, and the level of each operand. */
struct Turn {
    int block, a_level, b_level;
};

constexpr Turn turn_of(int turn)
{
    const int term = turn % TERMS;
    /* mutant: terms are in another order, by wgmma */
    return {turn / TERMS, term / B_LEVELS % A_LEVELS, term % B_LEVELS};
}

/* Begins a chain, which is one group of instructions. */
inline void begin(Results &d, shared_address stage, int group, Turn turn)
{
    float *const first = &d[0][0][0];
    /* mutant: the other level's codes */
    const uint64_t a = descriptor(stage + turn.a_level * A_BYTES + group * 64 * SLICE);
    const uint64_t b = descriptor(stage + OF_B + turn.b_level * B_BYTES);
    registers_are_ready(first);
    begin_products();
#pragma unroll
    for (int i = 0; i < CHAIN; i++) {
        const int step = (turn.block * CHAIN + i) * 2;
        multiply(first, a + step, b + step, i > 0);
    }
    commit_products();
}

/* Adds a chain, times the scales of its block, to the sums. The chain of a block past k
 * is +0. It is scaled by -0 and adds -0, which changes nothing. */
inline void promote(Results &sums, Results &d, const uint8_t *stage, Turn turn, int row,
                    int column, bool is_there)
{
    registers_are_ready(&d[0][0][0]);
    const float *p =
        (const float *)(stage + OF_SCALES) + (turn.block * A_LEVELS + turn.a_level) * ROWS;
    const float *q = (const float *)(stage + OF_SCALES_OF_B) +
                     /* mutant: the other level's scales, by wgmma */
                     (turn.block * B_LEVELS + turn.b_level) * COLUMNS;
    const float of_rows[2] = {is_there ? p[row] : -0.f, is_there ? p[row + 8] : -0.f};
#pragma unroll
    for (int j = 0; j < WARP_COLUMNS / 8; j++) {
        const float2 of_columns = *(const float2 *)(q + column + j * 8);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const float scale =
                /* mutant: scales of rows swapped; scales of columns swapped */
                __fmul_rn(of_rows[r / 2], r % 2 ? of_columns.y : of_columns.x);
            sums[0][j][r] = __fmaf_rn(scale, d[0][j][r], sums[0][j][r]);
        }
    }
}

/* The tensor maps of an operand. Those of codes have dimensions (k, lines, stacks), and
 * boxes of a slice of a tile's lines. Those of scales have (lines, levels, blocks,
 * stacks), and boxes of all scales for one slice. */
struct Side {
    TensorMap codes, residuals, scales;
};
static_assert(sizeof(Side) == 384 && TF_OFFSETOF(Side, scales) == 256,
              "as in tf32dtype/cuda/blocks/wgmma.py");

/* Computes a tile. Turns, except a slice's last, are added while the next chain runs. */
inline void sum_blocks(Results &sums, Ring &ring, const uint8_t *base, int group, int row,
                       int column, int64_t k)
{
    const int slices = (int)tf_ceil_div(k, DEPTH);
    Results d[2];
#pragma unroll 1
    for (int slice = 0; slice < slices; slice++, ring.go_on()) {
        const int blocks = (int)tf_ceil_div(k - (int64_t)slice * DEPTH, BLOCK_K);
        const uint8_t *const stage = base + ring.stage * STAGE;
        ring.await_bytes();
        /* mutant: a stage released before its scales */
        begin(d[0], ring.here(), group, turn_of(0));
#pragma unroll
        for (int turn = 0; turn < BLOCKS * TERMS; turn++) {
            if (turn + 1 < BLOCKS * TERMS) {
                begin(d[(turn + 1) % 2], ring.here(), group, turn_of(turn + 1));
                await_products<1>();
            } else {
                await_products<0>();
            }
            const Turn done = turn_of(turn);
            /* mutant: the other set of accumulators */
            promote(sums, d[turn % 2], stage, done, row, column, done.block < blocks);
        }
        Ring::release(ring.empty()); /* mutant: no stage released */
    }
}

/* Computes every gridDim.x-th tile per block of threads, as in wgmma.cu. */
extern "C" __global__ void __launch_bounds__(THREADS + 128, 1)
    block_wgmma(const __grid_constant__ Side a, const __grid_constant__ Side b, float *out,
                int64_t m, int64_t n, int64_t k, int32_t stack_a, int32_t stack_b,
                int32_t tiles)
{
    DYNAMIC_SHARED(uint8_t, memory);
    uint8_t *const base = memory + (-shared_of(memory) & 1023);
    Ring ring;
    ring.start(shared_of(base), shared_of(base) + STAGES * STAGE);
    const uint32_t rows = (uint32_t)tf_ceil_div(m, ROWS);
    const uint32_t columns = (uint32_t)tf_ceil_div(n, COLUMNS);

    if (threadIdx.x >= THREADS) {
        give_registers<FEW>();
        if (threadIdx.x == THREADS) {
            const int slices = (int)tf_ceil_div(k, DEPTH);
            for (uint32_t at = blockIdx.x; at < (uint32_t)tiles; at += gridDim.x) {
                const Tile tile = tile_of(at, rows, columns);
                const int row = (int)tile.row, column = (int)tile.column;
                const int of_a = (int)tile.stack * stack_a, of_b = (int)tile.stack * stack_b;
                for (int slice = 0; slice < slices; slice++, ring.go_on()) {
                    const shared_address stage = ring.here(), full = ring.full();
                    const int first = slice * DEPTH, block = slice * BLOCKS;
                    ring.begin_to_fill();
                    copy_box(stage, &a.codes, first, row, of_a, full);
                    copy_box(stage + OF_B, &b.codes, first, column, of_b, full);
                    if (A_LEVELS > 1) {
                        /* mutant: residuals of another slice */
                        copy_box(stage + A_BYTES, &a.residuals, first, row, of_a, full);
                    }
                    if (B_LEVELS > 1) {
                        copy_box(stage + OF_B + B_BYTES, &b.residuals, first, column, of_b,
                                 full);
                    }
                    /* mutant: scales of another block */
                    copy_box(stage + OF_SCALES, &a.scales, row, 0, block, of_a, full);
                    copy_box(stage + OF_SCALES_OF_B, &b.scales, column, 0, block, of_b,
                             full);
                }
            }
        }
    } else {
        take_registers<MANY>();
        const int thread = (int)threadIdx.x, lane = thread % 32;
        const int row = thread / 32 * 16 + lane / 4, column = lane % 4 * 2;
        const bool paired = ((uintptr_t)out | (uint64_t)n * 4) % 8 == 0;
#pragma unroll 1
        for (uint32_t at = blockIdx.x; at < (uint32_t)tiles; at += gridDim.x) {
            const Tile tile = tile_of(at, rows, columns);
            const int64_t down = tile.row + row, over = tile.column + column;
            Results sums = {};
            sum_blocks(sums, ring, base, thread / 128, row, column, k);
            float *const place = out + (tile.stack * m + down) * n + over;
            if (tile.row + ROWS <= m && tile.column + COLUMNS <= n && paired) {
                deposit<true>(sums, place, n, m, n, 0);
            } else {
                deposit<false>(sums, place, n, m - down, n - over, 0);
            }
        }
    }
}
