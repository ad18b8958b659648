/* Finds the numbers that the tensor scale and the check for NaN and Inf need, in lines of
 * float32: see tf_blocks_bounds in src/blocks/block_arrays.h. A group of threads takes a
 * block. */
#include "cuda/common/vectors.h"
#include "formats/float_bits.h"

enum { WARP = 32, SHARE = 4 /* numbers per thread */ };

/* Results that atomicMax collects, in any order of the threads, from 0, which means
 * nothing yet. A minimum is stored inverted, so that atomicMax finds it.
 * tf32dtype/cuda/blocks/kernels.py has the same struct. */
struct tf_bounds {
    uint32_t greatest; /* bits of the largest finite magnitude */
    uint32_t least;    /* ~bits of the smallest of blocks' largest magnitudes that are not
                        * 0 */
    uint64_t special;  /* ~index of the first Inf or NaN */
    uint64_t nan;      /* ~index of the first NaN */
};
static_assert(sizeof(tf_bounds) == 24 && TF_OFFSETOF(tf_bounds, special) == 8,
              "as in kernels.py");

template <class T> inline T greatest_of(T x, int lanes)
{
#pragma unroll 1
    for (int mask = lanes / 2; mask; mask /= 2) {
        const T other = __shfl_xor_sync(0xFFFFFFFFu, x, mask);
        x = other > x ? other : x;
    }
    return x;
}

/* Updates a maximum. Atomics at one address wait for each other, and most would change
 * nothing, so the value is read first. */
template <class T> inline void note(T *most, T x)
{
    if (x > *most) {
        atomicMax(most, x);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    block_bounds(const float *x, struct tf_bounds *bounds, int64_t lines, int64_t length,
                 int32_t block)
{
    const int lanes = block / SHARE; /* per block */
    const int lane = (int)threadIdx.x % lanes;
    const int64_t blocks = tf_ceil_div(length, block), all = lines * blocks;
    const int64_t groups = (int64_t)gridDim.x * (blockDim.x / lanes);
    const int64_t group = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / lanes;
    const bool whole = length % block == 0;
    const uint32_t infinite = TF_INF_BITS;
    uint32_t greatest = 0, least = 0;
    uint64_t special = 0, nan = 0;
#pragma unroll 1
    for (int64_t i = group; i - group < all; i += groups) { /* with all lanes of a warp */
        int64_t at = i * block + lane * SHARE, left = block;
        if (!whole) {
            const int64_t line = i / blocks;
            const int64_t first = (i - line * blocks) * block + lane * SHARE;
            at = line * length + first;
            left = length - first;
        }
        float numbers[SHARE];
        tf_get_numbers(x + at, i < all ? left : 0, numbers);
        uint32_t most = 0;
#pragma unroll
        for (int k = 0; k < SHARE; k++) {
            const uint32_t magnitude = __float_as_uint(numbers[k]) & TF_MAGNITUDE_BITS;
            if (magnitude < infinite) { /* mutant: NaN counts as the greatest */
                most = magnitude > most ? magnitude : most;
                continue;
            }
            const uint64_t place = ~(uint64_t)(at + k);
            special = place > special ? place : special;
            nan = magnitude > infinite && place > nan ? place : nan;
        }
        most = greatest_of(most, lanes);
        greatest = most > greatest ? most : greatest;
        least = most && ~most > least ? ~most : least; /* mutant: the least number of blocks */
    }
    greatest = greatest_of(greatest, WARP);
    least = greatest_of(least, WARP);
    special = greatest_of(special, WARP);
    nan = greatest_of(nan, WARP);
    if (threadIdx.x % WARP == 0) {
        note(&bounds->greatest, greatest);
        note(&bounds->least, least);
        note(&bounds->special, special);
        note(&bounds->nan, nan);
    }
}
