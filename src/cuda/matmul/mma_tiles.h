/* Products by mma.sync, for the kernels of them: slices of operands on their way from
 * memory, by way of shared memory, to the registers of warps, and results back.
 *
 *        global ---cp.async---> shared: STAGES slices ---ldmatrix---> registers
 *
 * The options of the compilation are
 *
 *   SIZE                      bytes of an element of a and b: 4, 2 or 1
 *   A_ALONG_K, B_ALONG_K      1 where k is contiguous, 0 where m or n is (not with SIZE 1)
 *   ROWS, COLUMNS             the tile of the result that a block has
 *   WARP_ROWS, WARP_COLUMNS   and that a warp has, in registers
 *   SLICE, STAGES             bytes of k that are copied at a time, and how many times
 *                             ahead
 *   RESIDENT                  blocks that a multiprocessor shall hold
 */
#ifndef TF32DTYPE_CUDA_MATMUL_MMA_TILES_H
#define TF32DTYPE_CUDA_MATMUL_MMA_TILES_H

#include "cuda/common/async_copy.h"

constexpr int STEPS = SLICE / 32, DEPTH = SLICE / SIZE;
constexpr int ACROSS = COLUMNS / WARP_COLUMNS, THREADS = ROWS / WARP_ROWS * ACROSS * 32;
constexpr int RASTER_ROWS = 2048 / ROWS; /* tiles of a raster group, see below */

/* An operand in shared memory: EXTENT rows of a (columns of b) by a slice of k. Its lines
 * are contiguous in global memory, along k or across it, and consist of 16-byte chunks.
 *
 * Chunks of a line are permuted among each other, so that those that are read at a time
 * lie in different banks: the same chunk of 8 consecutive lines, or, of 32-bit elements
 * across k, two chunks of 4 lines. */
template <int EXTENT, bool ALONG_K, bool LEFT> struct Operand {
    static constexpr int LINES = ALONG_K ? EXTENT : DEPTH;
    static constexpr int LINE = ALONG_K ? SLICE : EXTENT * SIZE;
    static constexpr int CHUNKS = LINE / 16;
    static constexpr int PASS = THREADS / CHUNKS; /* lines that are copied at a time */
    static constexpr int BYTES = LINES * LINE;
    static_assert(ALONG_K || SIZE != 1, "bytes cannot be transposed while loaded");
    static_assert(THREADS % CHUNKS == 0 && LINES % PASS == 0, "threads share the lines");

    static int swizzle(int line)
    {
        return !ALONG_K && SIZE == 4 ? line % 4 * 2
               : LINE == 64          ? line / 2 % 4 /* mutant: short chunks not permuted */
                                     : line % 8; /* mutant: chunks not permuted */
    }

    const uint8_t *from; /* this thread's chunk of the next slice, in global memory */
    int64_t pitch;       /* bytes from a line to the next */
    int edge;            /* along k: rows from this one to the matrix's end; across it: bytes
                            of this chunk that there are; no more than matter */
    int line, chunk;     /* of this thread */
    int first;           /* row (or column) of this warp, in the tile */

    /* `begin` is the tile's first row of `extent`. */
    void start(const uint8_t *origin, int64_t pitch_, int64_t begin, int64_t extent,
               int warp_first)
    {
        static_assert(PASS % (!ALONG_K && SIZE == 4 ? 4 : 8) == 0, "all passes alike");
        line = threadIdx.x / CHUNKS;
        chunk = threadIdx.x % CHUNKS;
        first = warp_first;
        pitch = pitch_;
        from = origin + (ALONG_K ? begin + line : line) * pitch +
               (ALONG_K ? 0 : begin * SIZE) + chunk * 16;
        const int64_t rows = extent - begin;
        /* mutant: rows beyond the last read */
        const int here = rows < EXTENT ? (int)rows : EXTENT;
        edge = ALONG_K ? here - line : clamp(here * SIZE - chunk * 16);
    }

    static int clamp(int bytes) { return bytes < 0 ? 0 : bytes < 16 ? bytes : 16; }

    /* Begins to copy the next slice, which has `depth` elements of k, into a stage. */
    void copy(shared_address stage, int depth)
    {
        /* mutant: nonzero beyond k, across it */
        const int lines = ALONG_K ? edge : depth - line;
        /* mutant: nonzero beyond k */
        const int bytes = ALONG_K ? clamp(depth * SIZE - chunk * 16) : edge;
        const uint8_t *source = from;
        /* mutant: chunks permuted when read alone; a copy to an odd address */
        stage += line * LINE + (chunk ^ swizzle(line)) * 16;
#pragma unroll
        for (int pass = 0; pass < LINES / PASS; pass++) {
            copy_async(stage + pass * PASS * LINE, source,
                       pass * PASS < lines ? bytes : 0);
            source += PASS * pitch;
        }
        from += ALONG_K ? SLICE : DEPTH * pitch; /* mutant: the next slice begins too early */
    }

    /* A step of 16 rows (or columns), as mma.h has it: four matrices of 8 rows by 16 bytes
     * of k. Of a the second one is 8 rows down, of b 16 bytes further. */
    void load(uint32_t *r, shared_address stage, int step, int tile) const
    {
        const int lane = threadIdx.x % 32, row = first + tile * 16;
        const int down = LEFT ? lane / 8 % 2 : lane / 16;
        const int further = LEFT ? lane / 16 : lane / 8 % 2;
        if (ALONG_K) {
            /* mutant: ldmatrix has its second and third matrix swapped */
            const int line = lane % 8 + down * 8, chunk = step * 2 + further;
            /* mutant: a fragment at an odd address */
            load_matrices(r, stage + (row + line) * LINE + (chunk ^ swizzle(line)) * 16);
        } else if (SIZE == 2) {
            const int line = lane % 8 + further * 8, chunk = row / 8 + down;
            load_transposed(r, stage + (step * 16 + line) * LINE +
                                   (chunk ^ swizzle(line)) * 16);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) { /* a lane's words of the four */
                const int line = lane % 4 + (LEFT ? i / 2 : i % 2) * 4;
                const int word = row + lane / 4 + (LEFT ? i % 2 : i / 2) * 8;
                r[i] = load_word(stage + (step * 8 + line) * LINE +
                                 (word / 4 ^ swizzle(line)) * 16 + word % 4 * 4);
            }
        }
    }
};

typedef Operand<ROWS, A_ALONG_K, true> Left;
typedef Operand<COLUMNS, B_ALONG_K, false> Right;

/* Which tile a block has. Blocks that run at the same time have neighboring tiles: they go
 * down raster groups of RASTER_ROWS rows of tiles, then across, so that L2 serves most of
 * their reads. */
struct Tile {
    int64_t stack, row, column;
};

inline Tile tile_of(uint32_t block, uint32_t rows, uint32_t columns)
{
    const uint32_t stack = block / (rows * columns), rest = block % (rows * columns);
    const uint32_t most = rows < RASTER_ROWS ? rows : RASTER_ROWS;
    const uint32_t group = rest / (most * columns), within = rest % (most * columns);
    const uint32_t left = rows - group * most, height = left < most ? left : most;
    return {(int64_t)stack, (int64_t)(group * most + within % height) * ROWS,
            (int64_t)(within / height) * COLUMNS};
}

typedef float Results[WARP_ROWS / 16][WARP_COLUMNS / 8][4];

/* Results to a lane's first one, or `rows` by `columns` of them if they are not WHOLE, with
 * beta times what is there; 0: nothing is. What is read of 128 columns is under way
 * together: of more there are no registers. */
template <bool WHOLE>
inline void deposit(const Results &results, float *first, int64_t n, int64_t rows,
                    int64_t columns, float beta)
{
    constexpr int ALL = WARP_COLUMNS / 8, SOME = ALL < 16 ? ALL : 16;
    static_assert(ALL % SOME == 0, "all at a time are of one row");
#pragma unroll
    for (int at = 0; at < WARP_ROWS / 16 * ALL; at += SOME) {
        const int i = at / ALL, begin = at % ALL;
        float2 before[2][SOME] = {};
#pragma unroll
        for (int e = 0; e < SOME * 2; e++) {
            const int down = e % 2, j = begin + e / 2;
            const float *from = first + (i * 16 + down * 8) * n + j * 8;
            if (WHOLE && beta != 0) {
                /* mutant: rows of what is there swapped */
                before[down][e / 2] = *(const float2 *)from;
            } else if (beta != 0 && i * 16 + down * 8 < rows) {
                /* mutant: columns of what is there swapped */
                before[down][e / 2].x = j * 8 < columns ? from[0] : 0;
                before[down][e / 2].y = j * 8 + 1 < columns ? from[1] : 0;
            }
        }
#pragma unroll
        for (int e = 0; e < SOME * 2; e++) {
            const int down = e % 2, j = begin + e / 2;
            float *to = first + (i * 16 + down * 8) * n + j * 8;
            /* mutant: rows of the result swapped */
            float2 x = {results[i][j][down * 2], results[i][j][down * 2 + 1]};
            if (beta != 0) {
                /* mutant: what is there not counted */
                x.x = __fmaf_rn(beta, before[down][e / 2].x, x.x);
                x.y = __fmaf_rn(beta, before[down][e / 2].y, x.y);
            }
            if (WHOLE) {
                *(float2 *)to = x;
            } else if (i * 16 + down * 8 < rows) {
                if (j * 8 < columns) {
                    to[0] = x.x;
                }
                if (j * 8 + 1 < columns) {
                    to[1] = x.y;
                }
            }
        }
    }
}

#endif
