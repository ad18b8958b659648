/* C = A B of blocks with scales, by this GPU's tensor cores. For each block of k in
 * order, and each existing term of hi hi, hi lo, lo hi, lo lo, a chain of mma.sync begins
 * at +0. Then, on the CUDA cores,
 *
 *     c = fma(RN32(scale of A's block * scale of B's), chain, c)
 *
 * The options of the compilation (tf32dtype/cuda/blocks/native.py) are those of
 * mma_tiles.h, with SIZE 1 and k contiguous, and
 *
 *   UNIT, UNIT_BYTES          the instruction, see mma.h; UNIT_BYTES is 32
 *   BLOCK_K                   k of a block: 32, 64 or 128, of which slices are whole ones
 *   A_LEVELS, B_LEVELS        1, or 2: residuals are multiplied too
 *   LAST                      1: lo lo as well
 *
 * As in native.cu, registers of the next instruction are loaded while one is computed,
 * and copies of the following slices, with their blocks' scales, run in the background.
 */
#include "cuda/matmul/mma.h"
#include "cuda/matmul/mma_tiles.h"

constexpr int TERMS = A_LEVELS * B_LEVELS - (A_LEVELS * B_LEVELS == 4 && !LAST);
constexpr int CHAIN = BLOCK_K / 32, BLOCKS = SLICE / BLOCK_K; /* instructions */
constexpr int TURNS = STEPS * TERMS;                      /* instructions per slice */
static_assert(SLICE % BLOCK_K == 0 && UNIT_BYTES == 32 && SIZE == 1, "whole blocks");

/* Offsets in a stage: codes of both levels, then scales. For each block, the scales of
 * all lines follow level by level. */
constexpr int SCALES_OF_A = A_LEVELS * ROWS * 4, SCALES_OF_B = B_LEVELS * COLUMNS * 4;
constexpr int OF_B = A_LEVELS * Left::BYTES;
constexpr int OF_SCALES = OF_B + B_LEVELS * Right::BYTES;
constexpr int STAGE = OF_SCALES + BLOCKS * (SCALES_OF_A + SCALES_OF_B);

/* An instruction of a slice: its block, its step, and the level of each operand. */
struct Turn {
    int block, step, a_level, b_level;
    bool begins, ends; /* a chain */
};

constexpr Turn turn_of(int turn)
{
    const int block = turn / (TERMS * CHAIN), term = turn / CHAIN % TERMS;
    const int i = turn % CHAIN;
    return {block,           block * CHAIN + i,   term / B_LEVELS % A_LEVELS,
            term % B_LEVELS, i == 0,              i == CHAIN - 1};
}

/* Begins to copy the scales of a level's EXTENT lines to a stage, 16 bytes per thread at
 * a time. A level has `pitch` scales, a multiple of 4; the others are zero. */
template <int EXTENT>
inline void copy_scales(shared_address to, const float *from, int64_t begin, int64_t pitch,
                        bool is_there)
{
#pragma unroll
    for (int i = (int)threadIdx.x * 4; i < EXTENT; i += THREADS * 4) {
        copy_async(to + i * 4, from + begin + i,
                   is_there && begin + i < pitch ? 16 : 0);
    }
}

/* The strides of an operand. Those of codes are bytes, from line to line and from matrix
 * to matrix. Those of scales are numbers: by level, by block and by stack. */
struct Side {
    int64_t pitch, stack, lo_pitch, lo_stack;
    int64_t level, block, scale_stack;
};

/* Loads the scales of a turn's block, for the rows and the columns of this lane. */
inline void load_scales(float *p, float *q, shared_address scales, Turn turn, int row,
                        int column)
{
    const int lane = threadIdx.x % 32;
    const shared_address of_a = scales + turn.block * (SCALES_OF_A + SCALES_OF_B) +
                                (turn.a_level * ROWS + row + lane / 4) * 4;
    const shared_address of_b =
        scales + turn.block * (SCALES_OF_A + SCALES_OF_B) + SCALES_OF_A +
       
        /* mutant: the other level's scales */
        (turn.b_level * COLUMNS + column + lane % 4 * 2) * 4;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 8; i++) {
        p[i] = __uint_as_float(load_word(of_a + i * 32));
    }
#pragma unroll
    for (int j = 0; j < WARP_COLUMNS / 4; j++) {
        q[j] = __uint_as_float(load_word(of_b + j / 2 * 32 + j % 2 * 4));
    }
}

/* Adds the chains of a term, times their scales, to the sums. */
inline void promote(Results &sums, const Results &chains, const float *p, const float *q)
{
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; i++) {
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / 8; j++) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                /* mutant: scales of rows swapped, in native blocks; scales of columns swapped, in native blocks */
                const float scale = __fmul_rn(p[i * 2 + r / 2], q[j * 2 + r % 2]);
                sums[i][j][r] = __fmaf_rn(scale, chains[i][j][r], sums[i][j][r]);
            }
        }
    }
}

/* Begins to copy the codes of the next slice, of all levels, into a stage. */
inline void copy_codes(Left *left, Right *right, shared_address stage, int depth)
{
#pragma unroll
    for (int level = 0; level < A_LEVELS; level++) {
        left[level].copy(stage + level * Left::BYTES, depth);
    }
#pragma unroll
    for (int level = 0; level < B_LEVELS; level++) {
        right[level].copy(stage + OF_B + level * Right::BYTES, depth);
    }
}

/* Begins to copy the scales of the slice's blocks, and moves the pointers past them. */
inline void copy_slice_scales(const float *&a_scales, const float *&b_scales,
                              shared_address stage, int depth, const Side &side_a,
                              const Side &side_b, const Tile &tile)
{
#pragma unroll
    for (int block = 0; block < BLOCKS; block++) {
        const bool is_there = block * BLOCK_K < depth;
        shared_address to = stage + block * (SCALES_OF_A + SCALES_OF_B);
#pragma unroll
        for (int level = 0; level < A_LEVELS; level++) {
            copy_scales<ROWS>(to, a_scales + level * side_a.level, tile.row, side_a.level,
                              is_there);
            to += ROWS * 4;
        }
#pragma unroll
        for (int level = 0; level < B_LEVELS; level++) {
            copy_scales<COLUMNS>(to, b_scales + level * side_b.level, tile.column,
                                 side_b.level, is_there);
            to += COLUMNS * 4;
        }
        /* mutant: scales of another block, in native blocks */
        a_scales += is_there ? side_a.block : 0;
        b_scales += is_there ? side_b.block : 0;
    }
}

/* Stores the sums in the result. Addresses computed earlier would occupy registers. */
inline void store_sums(const Results &sums, float *out, int64_t m, int64_t n, int warp_row,
                       int warp_column)
{
    const uint32_t rows = (uint32_t)tf_ceil_div(m, ROWS);
    const uint32_t columns = (uint32_t)tf_ceil_div(n, COLUMNS);
    const int thread = computed_here((int)threadIdx.x), lane = thread % 32;
    const Tile to = tile_of((uint32_t)computed_here((int)blockIdx.x), rows, columns);
    const int64_t row = to.row + warp_row + lane / 4;
    const int64_t column = to.column + warp_column + lane % 4 * 2;
    float *const place = out + (to.stack * m + row) * n + column;
    const bool paired = ((uintptr_t)out | (uint64_t)n * 4) % 8 == 0;
    if (to.row + ROWS <= m && to.column + COLUMNS <= n && paired) {
        deposit<true>(sums, place, n, m, n, 0);
    } else {
        deposit<false>(sums, place, n, m - row, n - column, 0);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    block_native(const uint8_t *a, const uint8_t *a_lo, const float *a_scales,
                 const uint8_t *b, const uint8_t *b_lo, const float *b_scales, float *out,
                 const Side side_a, const Side side_b, int64_t m, int64_t n, int64_t k)
{
    DYNAMIC_SHARED(uint8_t, memory);
    const shared_address stages = shared_of(memory);
    const uint32_t rows = (uint32_t)tf_ceil_div(m, ROWS);
    const uint32_t columns = (uint32_t)tf_ceil_div(n, COLUMNS);
    const Tile tile = tile_of(blockIdx.x, rows, columns);

    Left left[A_LEVELS];
    Right right[B_LEVELS];
    const int warp_row = (int)threadIdx.x / 32 / ACROSS * WARP_ROWS;
    const int warp_column = (int)threadIdx.x / 32 % ACROSS * WARP_COLUMNS;
    left[0].start(a + tile.stack * side_a.stack, side_a.pitch, tile.row, m, warp_row);
    right[0].start(b + tile.stack * side_b.stack, side_b.pitch, tile.column, n,
                   warp_column);
    if (A_LEVELS > 1) {
        left[A_LEVELS - 1].start(a_lo + tile.stack * side_a.lo_stack, side_a.lo_pitch,
                                 tile.row, m, warp_row);
    }
    if (B_LEVELS > 1) {
        right[B_LEVELS - 1].start(b_lo + tile.stack * side_b.lo_stack, side_b.lo_pitch,
                                  tile.column, n, warp_column);
    }
    a_scales += tile.stack * side_a.scale_stack;
    b_scales += tile.stack * side_b.scale_stack;
    Results d, sums = {};
    const float zero[4] = {};
    uint32_t x[WARP_ROWS / 16][4], y[2][WARP_COLUMNS / 16][4];
    float p[WARP_ROWS / 8], q[WARP_COLUMNS / 4];

    int ahead = (int)tf_ceil_div(k, DEPTH);  /* slices that are not copied yet */
    const int last = (int)((k - 1) % DEPTH) + 1; /* depth of the last slice */
    const auto copy = [&](shared_address stage) {
        const int depth = ahead > 1 ? DEPTH : last;
        copy_codes(left, right, stage, depth);
        copy_slice_scales(a_scales, b_scales, stage + OF_SCALES, depth, side_a, side_b,
                          tile);
    };

    /* 1. Begin to copy the first slices, and load the first instruction's operands. */
#pragma unroll
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (ahead > 0) {
            copy(stages + slice * STAGE);
        }
        commit_copies();
        ahead--;
    }
    await_copies<STAGES - 2>();
    __syncthreads();
    shared_address reads = stages, writes = stages + (STAGES - 1) * STAGE;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; i++) {
        left[0].load(x[i], reads, 0, i);
    }
#pragma unroll
    for (int j = 0; j < WARP_COLUMNS / 16; j++) {
        right[0].load(y[0][j], reads + OF_B, 0, j);
    }

    /* 2. Multiply slice by slice. */
#pragma unroll 1
    for (; ahead > 1 - STAGES; ahead--) {
        const int depth = ahead == 2 - STAGES ? last : DEPTH; /* of this slice */
#pragma unroll
        for (int turn = 0; turn < TURNS; turn++) {
            const Turn now = turn_of(turn), next = turn_of((turn + 1) % TURNS);
            const int parity = turn % 2;
            if (now.ends) { /* mutant: scales read while their stage is filled */
                load_scales(p, q, reads + OF_SCALES, now, warp_row, warp_column);
            }
            if (turn == TURNS - 1) { /* all warps have read this stage */
                /* mutant: a wait of one group less, in native blocks */
                await_copies<STAGES - 2>();
                __syncthreads(); /* mutant: no barrier between slices */
                reads = reads == stages + (STAGES - 1) * STAGE ? stages : reads + STAGE;
            }
#pragma unroll
            for (int j = 0; j < WARP_COLUMNS / 16; j++) {
                right[0].load(y[1 - parity][j],
                              reads + OF_B + next.b_level * Right::BYTES, next.step, j);
            }
            if (turn == 0) { /* into the stage that was read last */
                if (ahead > 0) {
                    copy(writes);
                }
                commit_copies();
                writes = writes == stages + (STAGES - 1) * STAGE ? stages : writes + STAGE;
            }
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; i++) {
#pragma unroll
                for (int j = 0; j < WARP_COLUMNS / 8; j++) {
                    mma(d[i][j], x[i], &y[parity][j / 2][j % 2 * 2],
                        /* mutant: chains go on, in native blocks */
                        now.begins ? zero : d[i][j]);
                }
                /* mutant: the other level's codes, in native blocks */
                left[0].load(x[i], reads + next.a_level * Left::BYTES, next.step, i);
            }
            if (now.ends && now.block * BLOCK_K < depth) {
                promote(sums, d, p, q);
            }
        }
    }

    /* 3. Store the result. */
    store_sums(sums, out, m, n, warp_row, warp_column);
}
