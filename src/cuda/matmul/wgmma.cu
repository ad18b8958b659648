/* a @ b by Hopper's wgmma, with a fixed order of k: what native.cu is for mma.sync. Each
 * element of the result is one chain of instructions from +0, k ascending; or, with
 * PROMOTE, each instruction's result is added to a sum from +0 by float32 addition, to
 * nearest, for stretches of k one after the other, each of which is added to the result.
 *
 * The options of the compilation (tf32dtype/cuda/_matmul/wgmma.py) are those of mma_tiles.h,
 * 2-byte elements in any layout, others along k, warps of 16 rows and all of the tile's 128
 * or 256 columns, slices of 128 bytes of k, across it of 64 k, and
 *
 *   UNIT, TAIL                the instruction, see hopper.h
 *   PROMOTE                   1: an instruction is a chain; 0: all of k is one
 *
 *        global ---cp.async.bulk.tensor---> shared: STAGES slices ---wgmma---> registers
 *
 * One thread copies, STAGES slices ahead. Each of the other warpgroups has 64 rows of the
 * tile; while an instruction multiplies into one set of accumulators, the other set is
 * added to the sums. Each thread's totals of its stretches are in shared memory, too.
 *
 * A wide tile takes less from L2 and shared memory for a result: of 128 x 256 x 64 steps of
 * 2 bytes, 1024 clocks of the tensor cores, 48 KiB from L2 and 80 KiB from shared memory; of
 * 128 x 128 x 64, 512 clocks, 32 and 48 KiB.
 */
#include "cuda/matmul/mma_tiles.h"

constexpr int A_BYTES = ROWS * SLICE, FILLED = A_BYTES + COLUMNS * SLICE;

#include "cuda/matmul/ring.h"

constexpr int OF_TOTALS = STAGES * STAGE;
constexpr int OF_BARRIERS = OF_TOTALS + (PROMOTE ? ROWS * COLUMNS * 4 : 0);

/* Copies a slice of an operand's EXTENT lines: all at once, or across k 64 at a time. */
template <int EXTENT, bool ALONG_K>
inline void copy_slice(shared_address to, const TensorMap *map, int k, int line, int stack,
                       shared_address full)
{
    static_assert(ALONG_K || SIZE == 2, "wgmma transposes 16 bits alone");
    if (ALONG_K) {
        copy_box(to, map, k, line, stack, full);
    } else {
#pragma unroll
        for (int i = 0; i < EXTENT; i += 64) {
            /* fault: the first lines for ever */
            copy_box(to + i * SLICE, map, line + i, k, stack, full);
        }
    }
}

/* An instruction's matrix in a slice. */
template <bool ALONG_K> inline uint64_t matrix(shared_address slice, int step)
{
    /* fault: steps are of 16 bytes; steps are of 8 k */
    return ALONG_K ? descriptor(slice) + step * 2 : descriptor_across(slice) + step * 128;
}

/* Begins a step's instruction. */
inline void begin_step(Results &d, const Ring &ring, int group, int step, int adds)
{
    /* fault: rows of the other warpgroup */
    multiply(&d[0][0][0], matrix<A_ALONG_K>(ring.here() + group * 64 * SLICE, step),
             matrix<B_ALONG_K>(ring.here() + A_BYTES, step), adds);
}

/* The same in a group of its own. */
inline void begin(Results &d, const Ring &ring, int group, int step, int adds)
{
    registers_are_ready(&d[0][0][0]);
    begin_products(); /* fault: no fence of registers */
    begin_step(d, ring, group, step, adds);
    commit_products();
}

inline void add(Results &sums, Results &d)
{
    registers_are_ready(&d[0][0][0]);
#pragma unroll
    for (int i = 0; i < WARP_COLUMNS / 2; i++) {
        sums[0][i / 4][i % 4] = __fadd_rn(sums[0][i / 4][i % 4], d[0][i / 4][i % 4]);
    }
}

/* What is there of a thread's results. */
inline void read_results(float *totals, const float *first, int64_t n, int64_t rows,
                         int64_t columns)
{
#pragma unroll
    for (int i = 0; i < WARP_COLUMNS / 2; i++) {
        /* fault: rows of what is there are swapped, by wgmma */
        const int64_t down = i / 2 % 2 * 8, column = i / 4 * 8 + i % 2;
        const bool is_there = down < rows && column < columns;
        totals[i * THREADS] = is_there ? first[down * n + column] : 0;
    }
}

/* Sums of the tile's stretches, each onto the total before, the first onto beta out. */
inline void sum_stretches(Results &sums, Ring &ring, int group, float *totals, int slices,
                          int stretch, float beta)
{
    Results d[2];
    do {
        /* 1. A stretch: of each instruction but the last, while the next one runs. */
        /* fault: a stretch is a slice too long, by wgmma */
        int ahead = slices < stretch ? slices : stretch;
        slices -= ahead;
#pragma unroll 1
        for (; ahead > 0; ahead--, ring.go_on()) {
            ring.await_bytes(); /* fault: no wait for bytes */
            begin(d[0], ring, group, 0, 0);
#pragma unroll
            for (int step = 1; step < STEPS; step++) {
                begin(d[step % 2], ring, group, step, 0); /* fault: chains go on, by wgmma */
                await_products<1>(); /* fault: accumulators are read too early */
                add(sums, d[1 - step % 2]);
            }
            await_products<0>(); /* fault: a stage is let go before it is read */
            Ring::release(ring.empty());
            add(sums, d[1]); /* fault: the last instruction is forgotten */
        }
        /* 2. Onto the total, which the last one makes the result. */
#pragma unroll
        for (int i = 0; i < WARP_COLUMNS / 2; i++) {
            float &sum = sums[0][i / 4][i % 4];
            if (beta != 0) {
                sum = __fmaf_rn(beta, totals[i * THREADS], sum);
            }
            if (slices > 0) {
                totals[i * THREADS] = sum; /* fault: totals are forgotten */
                sum = 0; /* fault: sums are not begun anew, by wgmma */
            }
        }
        beta = 1; /* fault: beta for ever, by wgmma */
    } while (slices > 0);
}

/* The tile's chains. A stage is let go when the next one's instructions are begun. */
inline void chain(Results &sums, Ring &ring, int group, int slices)
{
    shared_address before = 0;
#pragma unroll 1
    for (int slice = 0; slice < slices; slice++, ring.go_on()) {
        ring.await_bytes();
        registers_are_ready(&sums[0][0][0]);
        begin_products(); /* fault: no fence of registers, in chains */
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            /* fault: a chain begins anew in each slice */
            begin_step(sums, ring, group, step, step || slice);
        }
        commit_products();
        await_products<1>(); /* fault: a stage is let go too early */
        if (slice > 0) {
            Ring::release(before);
        }
        before = ring.empty(); /* fault: the stage itself is let go */
    }
    await_products<0>(); /* fault: results are read too early */
    Ring::release(before); /* fault: the last stage is not let go */
    registers_are_ready(&sums[0][0][0]);
}

/* out (stacks, m, n) = a (stacks, m, k) b (stacks, k, n) + beta out, which is not read if
 * beta is 0. The maps are of (k, lines, stacks), by boxes of a slice of the tile's lines, or
 * across k of (lines, k, stacks), by boxes of 64 lines of a slice; an operand that is
 * repeated has one matrix: its stride of stacks is 0, not 1. A stretch is so many k, a
 * multiple of DEPTH. k is at least 1.
 *
 * A block has every gridDim.x-th tile: the next one's first slices are copied while the
 * results of this one are written. */
extern "C" __global__ void __launch_bounds__(THREADS + 128, 1)
    wgmma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
          float *out, int64_t m, int64_t n, int64_t k, int32_t stack_a, int32_t stack_b,
          int32_t tiles, int32_t stretch, float beta)
{
    DYNAMIC_SHARED(uint8_t, memory);
    /* fault: stages begin anywhere */
    uint8_t *const base = memory + (-shared_of(memory) & 1023);
    Ring ring;
    ring.start(shared_of(base), shared_of(base) + OF_BARRIERS);
    const uint32_t rows = (uint32_t)tf_ceil_div(m, ROWS);
    const uint32_t columns = (uint32_t)tf_ceil_div(n, COLUMNS);
    const int slices = (int)tf_ceil_div(k, DEPTH);

    if (threadIdx.x >= THREADS) {
        give_registers<FEW>();
        if (threadIdx.x == THREADS) {
            for (uint32_t at = blockIdx.x; at < (uint32_t)tiles; at += gridDim.x) {
                const Tile tile = tile_of(at, rows, columns);
                const int stack = (int)tile.stack;
                for (int slice = 0; slice < slices; slice++, ring.go_on()) {
                    ring.begin_to_fill();
                    /* fault: the next slice begins too early, by wgmma */
                    copy_slice<ROWS, A_ALONG_K>(ring.here(), &a, slice * DEPTH, (int)tile.row,
                                                stack * stack_a, ring.full());
                    copy_slice<COLUMNS, B_ALONG_K>(ring.here() + A_BYTES, &b, slice * DEPTH,
                                                   /* fault: columns of another tile */
                                                   (int)tile.column, stack * stack_b,
                                                   ring.full());
                }
            }
        }
    } else {
        take_registers<MANY>();
        const int thread = (int)threadIdx.x, group = thread / 128, lane = thread % 32;
        const bool paired = ((uintptr_t)out | (uint64_t)n * 4) % 8 == 0;
#pragma unroll 1
        for (uint32_t at = blockIdx.x; at < (uint32_t)tiles; at += gridDim.x) {
            const Tile tile = tile_of(at, rows, columns); /* fault: the first tile for ever */
            const int64_t row = tile.row + thread / 32 * 16 + lane / 4;
            const int64_t column = tile.column + lane % 4 * 2;
            float *const place = out + (tile.stack * m + row) * n + column;
            Results sums = {};
            if (PROMOTE) {
                /* fault: totals are another thread's */
                float *const totals = (float *)(base + OF_TOTALS) + thread;
                if (beta != 0) { /* fault: what is there is not read */
                    read_results(totals, place, n, m - row, n - column);
                }
                sum_stretches(sums, ring, group, totals, slices, stretch / DEPTH, beta);
            } else {
                chain(sums, ring, group, slices);
            }
            if (tile.row + ROWS <= m && tile.column + COLUMNS <= n && paired) {
                deposit<true>(sums, place, n, m, n, 0);
            } else {
                deposit<false>(sums, place, n, m - row, n - column, 0);
            }
        }
    }
}
