/* a @ b by this GPU's tensor cores, with a fixed order of k. Each element of the result is
 * one chain of mma.sync from +0, k ascending, so that a model of the instruction gives its
 * bits (tf32dtype/tensor_core). Elements of the last slice past the end of k are zero.
 *
 * With PROMOTE, a chain ends after every PROMOTE instructions, and its result is added to
 * a sum, which begins at +0, by float32 addition, to nearest. Such sums are of stretches
 * of k, one after the other, and each is added to the result.
 *
 * The options of the compilation (tf32dtype/cuda/_matmul/native.py) are those of
 * mma_tiles.h and
 *
 *   UNIT, UNIT_BYTES          the instruction, see mma.h
 *   PROMOTE                   instructions per chain; 0: all k are one chain
 *   TOTALS                    1: with PROMOTE, totals of stretches are in shared memory
 *                             until the last one; 0: in the result itself
 *
 *        global ---cp.async---> shared: STAGES slices ---ldmatrix---> registers: 2 steps
 *
 * A step of a slice is 32 bytes of k, one instruction or two. While one step is
 * multiplied, the registers of the next are loaded, those of a in place. While a slice is
 * multiplied, the next STAGES - 1 slices are being copied.
 */
#include "cuda/matmul/mma.h"
#include "cuda/matmul/mma_tiles.h"

constexpr int UNITS = 32 / UNIT_BYTES; /* instructions per step */
/* Instructions per chain; more than a slice has, if no chain ends in it. */
constexpr int CHAIN = PROMOTE ? PROMOTE : STEPS * UNITS + 1;
static_assert(PROMOTE == 0 || STEPS * UNITS % PROMOTE == 0, "slices are whole chains");
constexpr int STAGE = Left::BYTES + Right::BYTES;
static_assert(PROMOTE || !TOTALS, "one stretch has no totals");

/* Returns the totals of a thread, in pairs like the results. The same pairs of all
 * threads of a block are contiguous. */
inline float2 *totals_of(uint8_t *memory)
{
    /* mutant: totals where the slices are */
    return (float2 *)(memory + STAGES * STAGE) + computed_here((int)threadIdx.x);
}

/* A lane's first result, the rows and columns of the matrix from it on, and whether all
 * of the tile is in the matrix, in aligned pairs. */
struct Place {
    float *first;
    int64_t rows, columns;
    bool whole;
};

/* Copies the numbers in the result to the totals. */
inline void fetch_totals(float2 *totals, const Place &of, int64_t n)
{
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 8; i++) {
        float2 before[WARP_COLUMNS / 8] = {};
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / 8; j++) {
            const float *from = of.first + i * 8 * n + j * 8;
            before[j].x = i * 8 < of.rows && j * 8 < of.columns ? from[0] : 0;
            /* mutant: columns of what is there */
            before[j].y = i * 8 < of.rows && j * 8 + 1 < of.columns ? from[1] : 0;
        }
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / 8; j++) {
            totals[(i * (WARP_COLUMNS / 8) + j) * THREADS] = before[j];
        }
    }
}

/* Adds beta times the totals, which are not read if beta is 0. Keeps the results as
 * totals if more stretches follow. */
inline void add_totals(Results &results, float2 *totals, float beta, bool more)
{
#pragma unroll
    for (int e = 0; e < WARP_ROWS * WARP_COLUMNS / 64; e++) {
        const int i = e / (WARP_COLUMNS / 8), j = e % (WARP_COLUMNS / 8);
        float *const x = &results[i / 2][j][i % 2 * 2]; /* mutant: pairs of other rows */
        if (beta != 0) {
            const float2 before = totals[e * THREADS];
            x[0] = __fmaf_rn(beta, before.x, x[0]); /* mutant: totals not added */
            x[1] = __fmaf_rn(beta, before.y, x[1]);
        }
        if (more) { /* mutant: totals are not kept */
            totals[e * THREADS] = {x[0], x[1]}; /* mutant: totals of other threads */
        }
    }
}

/* Returns the place of a thread's results. Kept all the time, it would occupy registers. */
inline Place place_of(float *out, int64_t m, int64_t n, const Left &left,
                      const Right &right)
{
    const uint32_t rows = (uint32_t)tf_ceil_div(m, ROWS);
    const uint32_t columns = (uint32_t)tf_ceil_div(n, COLUMNS);
    const int lane = computed_here((int)threadIdx.x) % 32;
    const Tile to = tile_of((uint32_t)computed_here((int)blockIdx.x), rows, columns);
    const int64_t row = to.row + left.first + lane / 4;
    const int64_t column = to.column + right.first + lane % 4 * 2;
    const bool paired = ((uintptr_t)out | (uint64_t)n * 4) % 8 == 0;
    const bool whole = to.row + ROWS <= m && to.column + COLUMNS <= n && paired;
    return {out + (to.stack * m + row) * n + column, m - row, n - column, whole};
}

inline void deposit_at(const Place &to, const Results &results, int64_t n, float beta)
{
    if (to.whole) {
        deposit<true>(results, to.first, n, to.rows, to.columns, beta);
    } else {
        deposit<false>(results, to.first, n, to.rows, to.columns, beta);
    }
}

/* Computes a step's instructions for 16 rows i, and adds chains that end to the sums. */
inline void multiply_rows(const uint32_t (&x)[WARP_ROWS / 16][4],
                          const uint32_t (&y)[WARP_COLUMNS / 16][4], int step, int i,
                          Results &d, Results &sums)
{
    const float zero[4] = {};
#pragma unroll
    for (int e = 0; e < UNITS * WARP_COLUMNS / 8; e++) {
        const int half = e / (WARP_COLUMNS / 8), j = e % (WARP_COLUMNS / 8);
        const int unit = step * UNITS + half; /* index in the slice */
        const bool begins = PROMOTE && unit % CHAIN == 0; /* mutant: chains go on, by native */
        /* mutant: fragments of b swapped; halves of a step swapped */
        mma(d[i][j], &x[i][half * 2], &y[j / 2][j % 2 * 2 + half],
            begins ? zero : d[i][j]);
#pragma unroll
        /* mutant: the last chain forgotten */
        for (int r = 0; r < 4 && (unit + 1) % CHAIN == 0; r++) {
            sums[i][j][r] = __fadd_rn(sums[i][j][r], d[i][j][r]); /* mutant: results cut */
        }
    }
}

/* out (stacks, m, n) = a (stacks, m, k) b (stacks, k, n) + beta out. `out` is not read if
 * beta is 0, or without PROMOTE. A pitch is the bytes from line to line, and a stack the
 * bytes from matrix to matrix. These and the addresses are multiples of 16. A stretch is
 * a number of k, a multiple of DEPTH. */
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    native(const uint8_t *a, const uint8_t *b, float *out, int64_t m, int64_t n, int64_t k,
           int64_t pitch_a, int64_t pitch_b, int64_t stack_a, int64_t stack_b,
           int32_t stretch, float beta)
{
    DYNAMIC_SHARED(uint8_t, memory);
    const shared_address stages = shared_of(memory);
    const uint32_t rows = (uint32_t)tf_ceil_div(m, ROWS);
    const uint32_t columns = (uint32_t)tf_ceil_div(n, COLUMNS);
    const Tile tile = tile_of(blockIdx.x, rows, columns);

    Left left;
    Right right;
    left.start(a + tile.stack * stack_a, pitch_a, tile.row, m,
               (int)threadIdx.x / 32 / ACROSS * WARP_ROWS);
    right.start(b + tile.stack * stack_b, pitch_b, tile.column, n,
                (int)threadIdx.x / 32 % ACROSS * WARP_COLUMNS);
    if (PROMOTE == 0) { /* a constant, which saves registers */
        beta = 0;
    }
    Results d = {}, sums = {}; /* of chains, and of stretches */
    Results &results = PROMOTE ? sums : d;
    uint32_t x[WARP_ROWS / 16][4], y[2][WARP_COLUMNS / 16][4];

    /* 1. Begin to copy the first slices, and load the first step of the first one. */
    int ahead = (int)tf_ceil_div(k, DEPTH);  /* slices that are not copied yet */
    /* mutant: a slice less deep at the end */
    const int last = (int)((k - 1) % DEPTH) + 1; /* depth of the last slice */
#pragma unroll
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (ahead > 0) {
            const int depth = ahead > 1 ? DEPTH : last;
            left.copy(stages + slice * STAGE, depth);
            right.copy(stages + slice * STAGE + Left::BYTES, depth);
        }
        commit_copies();
        ahead--;
    }
    if (TOTALS && beta != 0) { /* mutant: what is there not fetched */
        fetch_totals(totals_of(memory), place_of(out, m, n, left, right), n);
    }
    await_copies<STAGES - 2>();
    __syncthreads(); /* mutant: no barrier before the first step; a barrier of some warps */
    /* mutant: a stage filled while read */
    shared_address reads = stages, writes = stages + (STAGES - 1) * STAGE;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; i++) {
        left.load(x[i], reads, 0, i);
    }
#pragma unroll
    for (int j = 0; j < WARP_COLUMNS / 16; j++) {
        right.load(y[0][j], reads + Left::BYTES, 0, j);
    }

#pragma unroll 1
    do {
        /* 2. Multiply slice by slice. */
        /* mutant: a stretch is a slice too long */
        const int pause = PROMOTE ? ahead - stretch / DEPTH : 0;
        const int until = PROMOTE && pause > 1 - STAGES ? pause : 1 - STAGES;
#pragma unroll 1
        for (; ahead > until; ahead--) {
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                const int now = step % 2, next = 1 - now;
                if (step == STEPS - 1) { /* all warps have read this stage */
                    await_copies<STAGES - 2>(); /* mutant: a wait of one group less */
                    /* mutant: no barrier between reading a stage and filling it */
                    __syncthreads();
                    reads = reads == stages + (STAGES - 1) * STAGE ? stages : reads + STAGE;
                }
#pragma unroll
                for (int j = 0; j < WARP_COLUMNS / 16; j++) {
                    /* mutant: the step read twice */
                    right.load(y[next][j], reads + Left::BYTES, (step + 1) % STEPS, j);
                }
                if (step == 0) { /* into the stage that was read last */
                    if (ahead > 0) {
                        const int depth = ahead > 1 ? DEPTH : last;
                        left.copy(writes, depth);
                        right.copy(writes + Left::BYTES, depth);
                    }
                    commit_copies(); /* mutant: groups not committed */
                    writes =
                        writes == stages + (STAGES - 1) * STAGE ? stages : writes + STAGE;
                }
#pragma unroll
                for (int i = 0; i < WARP_ROWS / 16; i++) {
                    multiply_rows(x, y[now], step, i, d, sums);
                    left.load(x[i], reads, (step + 1) % STEPS, i);
                }
            }
        }

        /* 3. Add to the result. */
        const bool more = PROMOTE && ahead > 1 - STAGES;
        if (TOTALS) {
            add_totals(results, totals_of(memory), beta, more);
        }
        if (!TOTALS || !more) {
            /* mutant: what is there counts twice */
            deposit_at(place_of(out, m, n, left, right), results, n, TOTALS ? 0 : beta);
        }
#pragma unroll
        for (int e = 0; e < WARP_ROWS * WARP_COLUMNS / 32; e++) {
            /* mutant: sums not restarted */
            sums[e / (WARP_COLUMNS / 2)][e / 4 % (WARP_COLUMNS / 8)][e % 4] = 0;
        }
        beta = 1; /* mutant: beta always */
    } while (PROMOTE && ahead > 1 - STAGES);
}
