/* Stages in shared memory, which one thread fills by copies of boxes and warps read by
 * wgmma. Each has two barriers, for "all bytes are here" and "all warps have read them".
 *
 * Include mma_tiles.h first, whose THREADS are those that multiply, and define FILLED,
 * the bytes that copies write per stage. */
#ifndef TF32DTYPE_CUDA_MATMUL_RING_H
#define TF32DTYPE_CUDA_MATMUL_RING_H

#include "cuda/common/hopper.h"

/* Registers of a thread that copies, and of one that multiplies. A multiprocessor has 64
 * Ki for one warpgroup that copies and two that multiply. */
constexpr int FEW = 40, MANY = 232;

constexpr int WARPS = THREADS / 32;
constexpr int STAGE = (FILLED + 1023) / 1024 * 1024;
static_assert(SLICE == 128 && WARP_ROWS == 16 && ACROSS == 1, "of wgmma");

/* The position of a thread that goes through the stages in turn. */
struct Ring {
    shared_address stages, barriers;
    int stage = 0;
    uint32_t parity = 0; /* of the round */

    shared_address here() const { return stages + stage * STAGE; }
    shared_address full() const { return barriers + stage * 16; }
    shared_address empty() const { return barriers + stage * 16 + 8; }

    void go_on()
    {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        parity ^= stage == 0; /* mutant: parity stays */
    }

    /* Sets the addresses of the stages and the barriers. All threads of the block call
     * it. */
    void start(shared_address first, shared_address barriers_)
    {
        stages = first;
        barriers = barriers_;
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                barrier_init(barriers + i * 16, 1);
                barrier_init(barriers + i * 16 + 8, WARPS); /* mutant: a warp releases for all */
            }
            publish_barriers(); /* mutant: barriers not published */
        }
        __syncthreads(); /* mutant: no barrier after barriers are made */
    }

    /* Waits until a stage may be filled, and announces its FILLED bytes. */
    void begin_to_fill() const
    {
        barrier_await(empty(), parity ^ 1); /* mutant: a stage filled while read, by wgmma */
        barrier_expect(full(), FILLED); /* mutant: too few bytes expected */
    }

    void await_bytes() const { barrier_await(full(), parity); }

    /* Releases a stage for a warp, when the warp and its instructions have read it. */
    static void release(shared_address empty)
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(empty);
        }
    }
};

#endif
