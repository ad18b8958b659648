/* Transposes operands whose lines are adjacent in memory, so that k is contiguous, as
 * tensor cores read FP8 and tf32.
 *
 * For bytes, a block moves SIDE lines of SIDE k at a time. Its threads read four lines at
 * once, and transpose 4 x 4 bytes in registers, so that they write four k at once.
 */
#include "cuda/common/common.h"

enum { SIDE = 128, WORDS = SIDE / 4, WARP = 32, WARPS = 8 };

/* Strides count bytes. */
struct tf_operand_lines {
    int64_t matrix, line, step;
    int64_t count, lines, k;
};
static_assert(sizeof(tf_operand_lines) == 48 &&
                  TF_OFFSETOF(tf_operand_lines, count) == 24,
              "as in operand_lines.py");

/* Returns whether the operand has all of a tile, in aligned words. */
inline bool is_whole(const uint8_t *x, const tf_operand_lines &of, int64_t line,
                     int64_t k)
{
    const bool aligned = ((uintptr_t)x | (uintptr_t)of.step) % 4 == 0;
    /* mutant: words of other lines; a short tile as a whole one */
    return aligned && of.line == 1 && line + SIDE <= of.lines && k + SIDE <= of.k;
}

/* Returns bytes of four lines at a k, the first one lowest; 0 outside the operand. */
inline uint32_t four_lines(const uint8_t *x, const tf_operand_lines &of, int64_t line,
                           int64_t k)
{
    uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (k < of.k && line + i < of.lines) { /* mutant: k that is not there */
            word |= (uint32_t)x[(line + i) * of.line + k * of.step] << 8 * i;
        }
    }
    return word;
}

/* Returns byte i of each of four words. */
inline uint32_t byte_of_each(const uint32_t *words, int i)
{
    const uint32_t low = __byte_perm(words[0], words[1], (uint32_t)(i | (i + 4) << 4));
    const uint32_t high = __byte_perm(words[2], words[3], (uint32_t)(i | (i + 4) << 4));
    return __byte_perm(low, high, 0x5410); /* mutant: bytes in another order */
}

/* Writes `rows` lines of `padded` k each, a multiple of 4; 0 outside the operand. */
extern "C" __global__ void __launch_bounds__(WARP * WARPS)
    transpose(const uint8_t *x, uint32_t *out, const tf_operand_lines of, int64_t rows,
              int64_t padded)
{
    __shared__ uint32_t tile[SIDE][WORDS + 1]; /* [k][lines]: steps of 4 k are 4 banks */
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int64_t k0 = (int64_t)blockIdx.x * SIDE;
#pragma unroll 1
    for (int64_t matrix = blockIdx.z; matrix < of.count; matrix += gridDim.z) {
        const uint8_t *from = x + matrix * of.matrix; /* mutant: another matrix */
#pragma unroll 1
        for (int64_t line0 = (int64_t)blockIdx.y * SIDE; line0 < rows;
             line0 += (int64_t)gridDim.y * SIDE) {
            __syncthreads(); /* mutant: no barrier before the next tile */
            const int64_t line = line0 + 4 * lane;
            if (is_whole(from, of, line0, k0)) { /* a warp reads 128 bytes */
                uint32_t words[SIDE / WARPS];
                const uint8_t *at = from + line + (k0 + warp) * of.step;
#pragma unroll
                for (int i = 0; i < SIDE / WARPS; i++) {
                    words[i] = *(const uint32_t *)(at + i * WARPS * of.step);
                }
#pragma unroll
                for (int i = 0; i < SIDE / WARPS; i++) {
                    tile[i * WARPS + warp][lane] = words[i]; /* mutant: a warp's words */
                }
            } else {
#pragma unroll 1
                for (int i = warp; i < SIDE; i += WARPS) {
                    tile[i][lane] = four_lines(from, of, line, k0 + i);
                }
            }
            __syncthreads(); /* mutant: no barrier before reading */
#pragma unroll 1
            for (int i = warp; i < WORDS * WORDS / WARP; i += WARPS) {
                const int fours = i % (WORDS / 8) * 8 + lane / 4; /* of k */
                const int column = i / (WORDS / 8) * 4 + lane % 4;
                const int64_t row = line0 + 4 * column, k = k0 + 4 * fours;
                uint32_t words[4];
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    words[j] = tile[4 * fours + j][column];
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    if (row + j < rows && k < padded) {
                        out[((matrix * rows + row + j) * padded + k) / 4] =
                            byte_of_each(words, j);
                    }
                }
            }
        }
    }
}

/* As `transpose`, for 4-byte elements: a block moves HALF lines of HALF k at a time. A
 * thread's reads overlap. */
enum { HALF = SIDE / 2, EACH = HALF * HALF / (WARP * WARPS) };

extern "C" __global__ void __launch_bounds__(WARP * WARPS)
    transpose_words(const uint8_t *x, uint32_t *out, const tf_operand_lines of,
                    int64_t rows, int64_t padded)
{
    __shared__ uint32_t tile[HALF][HALF + 1]; /* [k][lines]: 32 k are in 32 banks */
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int64_t k0 = (int64_t)blockIdx.x * HALF;
#pragma unroll 1
    for (int64_t matrix = blockIdx.z; matrix < of.count; matrix += gridDim.z) {
        const uint8_t *from = x + matrix * of.matrix; /* mutant: another matrix of words */
#pragma unroll 1
        for (int64_t line0 = (int64_t)blockIdx.y * HALF; line0 < rows;
             line0 += (int64_t)gridDim.y * HALF) {
            uint32_t words[EACH];
            const uint8_t *at = from + (line0 + lane) * of.line + (k0 + warp) * of.step;
#pragma unroll
            for (int i = 0; i < EACH; i++) { /* a warp reads 128 bytes */
                const int line = i % 2 * WARP, k = i / 2 * WARPS;
                /* mutant: words that are not there */
                const bool is_there = line0 + lane + line < of.lines && k0 + warp + k < of.k;
                words[i] =
                    is_there ? *(const uint32_t *)(at + line * of.line + k * of.step) : 0;
            }
            __syncthreads(); /* mutant: no barrier before the next tile of words */
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                tile[i / 2 * WARPS + warp][i % 2 * WARP + lane] = words[i];
            }
            __syncthreads(); /* mutant: no barrier before reading words */
            uint32_t *to = out + (matrix * rows + line0 + warp) * padded + k0 + lane;
#pragma unroll
            for (int i = 0; i < EACH; i++) { /* a warp writes 128 bytes */
                const int line = i / 2 * WARPS, k = i % 2 * WARP;
                if (line0 + warp + line < rows && k0 + lane + k < padded) {
                    to[line * padded + k] = tile[k + lane][line + warp];
                }
            }
        }
    }
}
