/* Tiles for products by mma.sync: slices of operands on their way from global memory
 * through shared memory to the registers of warps, and results on their way back.
 *
 *        global ---cp.async---> shared: STAGES slices ---ldmatrix---> registers
 *
 * The options of the compilation are
 *
 *   SIZE                      bytes per element of a and b: 4, 2 or 1
 *   A_ALONG_K, B_ALONG_K      1 where k is contiguous, 0 where m or n is (not with SIZE 1)
 *   ROWS, COLUMNS             the tile of the result per block of threads
 *   WARP_ROWS, WARP_COLUMNS   the part of the tile per warp, in registers
 *   SLICE, STAGES             bytes of k per copied slice, and slices in shared memory
 *   RESIDENT                  blocks of threads that a multiprocessor shall hold
 */
#ifndef TF32DTYPE_CUDA_MATMUL_MMA_TILES_H
#define TF32DTYPE_CUDA_MATMUL_MMA_TILES_H

#include "cuda/common/async_copy.h"

constexpr int STEPS = SLICE / 32, DEPTH = SLICE / SIZE;
constexpr int ACROSS = COLUMNS / WARP_COLUMNS, THREADS = ROWS / WARP_ROWS * ACROSS * 32;
constexpr int RASTER_ROWS = 2048 / ROWS; /* tiles per raster group, see tile_of() */

/* An operand in shared memory: EXTENT rows of a (columns of b) by a slice of k. Its lines
 * are contiguous in global memory, along k or across it, and consist of 16-byte chunks.
 *
 * The chunks of a line are permuted, so that chunks that are read at the same time are in
 * different banks. These are the same chunk of 8 consecutive lines or, for 32-bit
 * elements across k, two chunks of 4 lines. */
template <int EXTENT, bool ALONG_K, bool LEFT> struct Operand {
    static constexpr int LINES = ALONG_K ? EXTENT : DEPTH;
    static constexpr int LINE = ALONG_K ? SLICE : EXTENT * SIZE;
    static constexpr int CHUNKS = LINE / 16;
    static constexpr int PASS = THREADS / CHUNKS; /* lines per copy of all threads */
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
    int64_t pitch;       /* bytes from one line to the next */
    int edge;            /* along k: rows from this thread's line to the matrix's end;
                          * across k: bytes of its chunk in the matrix; limited */
    int line, chunk;     /* of this thread */
    int first;           /* row (or column) in the tile where this warp's begin */

    /* Begins at row `begin` of `extent` rows of the matrix. */
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

    /* Loads a step of 16 rows (or columns), as in mma.h: four matrices of 8 rows by 16
     * bytes of k. The second one is 8 rows down in a, and 16 bytes further along k in b. */
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
            for (int i = 0; i < 4; i++) { /* one word of each of the four matrices */
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

/* The tile of a block of threads. Blocks that run at the same time have neighboring
 * tiles, which go down a raster group of RASTER_ROWS rows of tiles, then across, so that
 * the L2 cache serves most reads. */
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

/* Stores results from a lane's `first` on, or only `rows` by `columns` of them unless
 * WHOLE, plus beta times the numbers in memory, which are not read if beta is 0. Reads of
 * 128 columns at a time overlap; there are no registers for more. */
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
