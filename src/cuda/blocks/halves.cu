/* Converts FP8 codes in blocks of 32 to float16, in the order in which Hopper's mma.sync
 * of FP8 takes them. The assembler makes that instruction of two of float16, the second
 * of which continues the first's sum. The first takes the lower two of each four k of a
 * block, and the second, 16 numbers later, the upper two. So these give FP8's bits.
 *
 * CODES is the format in PTX: "e4m3" or "e5m2".
 */
#include "cuda/common/hopper.h"

/* Returns float16 numbers of the two low codes of a word. PTX ISA 9, 9.7.9.21, cvt. */
inline uint32_t halves_of(uint32_t codes)
{
#ifdef SIMT /* tests/support/simulator/simt_hopper.h computes it */
    return simt_halves_of(CODES, codes & 0xFFFF);
#else
    uint32_t found;
    asm("cvt.rn.f16x2." CODES "x2 %0, %1;" : "=r"(found) : "h"((uint16_t)codes));
    return found;
#endif
}

/* Writes `out` (matrices, lines, chunks * 16) from lines of `chunks` times 16 codes.
 * Codes from k on become zeros. Strides of codes are bytes, by matrix and by line. */
extern "C" __global__ void __launch_bounds__(256)
    block_halves(const uint8_t *codes, uint16_t *out, int64_t matrix, int64_t line,
                 int64_t lines, int64_t chunks, int64_t k, int64_t all)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t chunk = i % chunks, row = i / chunks;
        /* mutant: lines of the next matrix */
        const uint8_t *from = codes + row / lines * matrix + row % lines * line + chunk * 16;
        const uint4 read = *(const uint4 *)from;
        const uint32_t words[] = {read.x, read.y, read.z, read.w};
        uint32_t first[4], last[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int64_t rest = k - chunk * 16 - j * 4; /* codes from this word on */
            const uint32_t kept = rest >= 4  ? ~UINT32_C(0) /* mutant: codes beyond k count */
                                  : rest > 0 ? (UINT32_C(1) << 8 * rest) - 1
                                             : 0;
            first[j] = halves_of(words[j] & kept);
            last[j] = halves_of((words[j] & kept) >> 16); /* mutant: the other codes of a word */
        }
        uint16_t *to = out + row * chunks * 16 + chunk / 2 * 32 + chunk % 2 * 8;
        *(uint4 *)to = {first[0], first[1], first[2], first[3]};
        /* mutant: first and last swapped */
        *(uint4 *)(to + 16) = {last[0], last[1], last[2], last[3]};
    }
}
