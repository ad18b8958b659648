/* Chains of wgmma over slices in shared memory, for tiles of mma_tiles.h. UNIT and TAIL are
 * those of hopper.h. */
#ifndef TF32DTYPE_CUDA_MATMUL_CHAIN_H
#define TF32DTYPE_CUDA_MATMUL_CHAIN_H

#include "cuda/matmul/mma_tiles.h"

constexpr int A_BYTES = ROWS * SLICE, FILLED = A_BYTES + COLUMNS * SLICE;

#include "cuda/matmul/ring.h"

constexpr int OF_BARRIERS = STAGES * STAGE;

/* Copies a slice of EXTENT lines of an operand: at once, or across k 64 lines at a time. */
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
            /* mutant: always the first lines */
            copy_box(to + i * SLICE, map, line + i, k, stack, full);
        }
    }
}

/* Returns the descriptor of an instruction's matrix in a slice. */
template <bool ALONG_K> inline uint64_t matrix(shared_address slice, int step)
{
    /* mutant: steps are of 16 bytes; steps are of 8 k */
    return ALONG_K ? descriptor(slice) + step * 2 : descriptor_across(slice) + step * 128;
}

/* Begins the instruction of a step, from a column of b on. */
template <int COUNT>
inline void begin_step(accumulator *d, const Ring &ring, int group, int step, int column, int adds)
{
    /* mutant: rows of the other warpgroup */
    multiply<COUNT>(d, matrix<A_ALONG_K>(ring.here() + group * 64 * SLICE, step),
                    /* mutant: always the first columns */
                    matrix<B_ALONG_K>(ring.here() + A_BYTES + column * SLICE, step), adds);
}

/* Continues the chains with `slices` slices. A stage is released when the instructions of
 * the next one have begun. */
inline void chain(accumulator *sums, Ring &ring, int group, int slices)
{
    shared_address before = 0;
#pragma unroll 1
    for (int slice = 0; slice < slices; slice++, ring.go_on()) {
        ring.await_bytes();
        registers_are_ready(sums);
        begin_products(); /* mutant: no fence of registers, in chains */
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            /* mutant: a chain for each slice */
            begin_step<ACCUMULATORS>(sums, ring, group, step, 0, 1);
        }
        commit_products();
        await_products<1>(); /* mutant: a stage released early */
        if (slice > 0) {
            Ring::release(before);
        }
        before = ring.empty(); /* mutant: the stage itself released */
    }
    await_products<0>(); /* mutant: results read early */
    Ring::release(before); /* mutant: the last stage not released */
    registers_are_ready(sums);
}

#endif
