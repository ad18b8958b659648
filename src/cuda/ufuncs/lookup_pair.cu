/* Looks up functions of two arrays of bytes in a table, which has a result for each pair.
 *
 * The table has 64 KiB, and each block of threads copies it to its shared memory.
 */
#include "cuda/common/map.h"

enum { RESULTS = 1 << 16, WORDS = RESULTS / 4, THREADS = 1024 };

/* Returns the index in shared memory of the result of a pair x << 8 | y. Shared memory
 * serves one word from each of its 32 banks at a time, and a bank has every 32nd word. If
 * only y (bits 2 to 6) gave the bank, a sum with a constant y would use one bank. So the
 * lower bits of x, the most random ones, are mixed in. */
__forceinline__ uint32_t place_of(uint32_t pair)
{
    return pair ^ (pair >> 6 & 0xFC);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    look_up_pair(const tf_walk<3> walk, uint8_t *out, const uint8_t *a, const uint8_t *b,
                 const tf_constants constants, const uint32_t *table)
{
    DYNAMIC_SHARED(uint8_t, results);
#pragma unroll
    for (int k = 0; k < WORDS / THREADS; k++) {
        const uint32_t word = k * THREADS + threadIdx.x;
        *(uint32_t *)(results + place_of(4 * word)) = table[word];
    }
    __syncthreads(); /* mutant: a table that is not there yet */
    tf_map<16, 2>(walk, out, a, b, constants, [=](uint8_t x, uint8_t y) {
        return results[place_of((uint32_t)x << 8 | y)]; /* mutant: pairs swapped */
    });
}
