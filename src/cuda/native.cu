/* a @ b by this GPU's tensor cores, with a fixed order of k: each element of the result is
 * one chain of mma.sync from +0, k ascending, so that a model of the instruction gives
 * its bits (tf32dtype/tensor_core). What is missing of the last slice of k is zero.
 *
 * The options of the compilation (tf32dtype/cuda/native.py) are
 *
 *   UNIT                      the instruction, see mma.h
 *   SIZE                      bytes of an element of a and b: 4, 2 or 1
 *   A_ALONG_K, B_ALONG_K      1 where k is contiguous, 0 where m or n is (not with SIZE 1)
 *   ROWS, COLUMNS             the tile of the result that a block has
 *   WARP_ROWS, WARP_COLUMNS   and that a warp has, in registers
 *   SLICE, STAGES             bytes of k that are copied at a time, and how many times ahead
 *   RESIDENT                  blocks that a multiprocessor shall hold
 *
 *        global ---cp.async---> shared: STAGES slices ---ldmatrix---> registers: 2 steps
 *
 * A slice's step is the 32 bytes of k that an instruction takes. While one step is
 * multiplied, the registers of the next are loaded; while a slice is multiplied, those
 * up to STAGES - 1 after it are under way.
 */
#include "async.h"
#include "mma.h"

constexpr int STEPS = SLICE / 32, DEPTH = SLICE / SIZE;
constexpr int ACROSS = COLUMNS / WARP_COLUMNS, THREADS = ROWS / WARP_ROWS * ACROSS * 32;
constexpr int BAND = 2048 / ROWS; /* tiles, see below */

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
               : LINE == 64          ? line / 2 % 4
                                     : line % 8;
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
        const int here = rows < EXTENT ? (int)rows : EXTENT;
        edge = ALONG_K ? here - line : clamp(here * SIZE - chunk * 16);
    }

    static int clamp(int bytes) { return bytes < 0 ? 0 : bytes < 16 ? bytes : 16; }

    /* Begins to copy the next slice, which has `depth` elements of k, into a stage. */
    void copy(shared_address stage, int depth)
    {
        const int lines = ALONG_K ? edge : depth - line;
        const int bytes = ALONG_K ? clamp(depth * SIZE - chunk * 16) : edge;
        const uint8_t *source = from;
        stage += line * LINE + (chunk ^ swizzle(line)) * 16;
#pragma unroll
        for (int pass = 0; pass < LINES / PASS; pass++) {
            copy_async(stage + pass * PASS * LINE, source,
                       pass * PASS < lines ? bytes : 0);
            source += PASS * pitch;
        }
        from += ALONG_K ? SLICE : DEPTH * pitch;
    }

    /* A step of 16 rows (or columns), as mma.h has it: four matrices of 8 rows by 16 bytes
     * of k. Of a the second one is 8 rows down, of b 16 bytes further. */
    void load(uint32_t *r, shared_address stage, int step, int tile) const
    {
        const int lane = threadIdx.x % 32, row = first + tile * 16;
        const int down = LEFT ? lane / 8 % 2 : lane / 16;
        const int further = LEFT ? lane / 16 : lane / 8 % 2;
        if (ALONG_K) {
            const int line = lane % 8 + down * 8, chunk = step * 2 + further;
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
constexpr int STAGE = Left::BYTES + Right::BYTES;

/* Which tile a block has. Blocks that run at the same time have neighbouring tiles: they go
 * down bands of BAND rows of tiles, then across, so that L2 serves most of their reads. */
struct Tile {
    int64_t stack, row, column;
};

inline Tile tile_of(uint32_t block, uint32_t rows, uint32_t columns)
{
    const uint32_t stack = block / (rows * columns), rest = block % (rows * columns);
    const uint32_t most = rows < BAND ? rows : BAND;
    const uint32_t band = rest / (most * columns), within = rest % (most * columns);
    const uint32_t left = rows - band * most, height = left < most ? left : most;
    return {(int64_t)stack, (int64_t)(band * most + within % height) * ROWS,
            (int64_t)(within / height) * COLUMNS};
}

/* Two neighbours of a row, as far as there are such. */
inline void store(float *row, int64_t column, int64_t n, bool paired, float x, float y)
{
    if (paired && column + 1 < n) {
        *(float2 *)(row + column) = {x, y};
    } else {
        if (column < n) {
            row[column] = x;
        }
        if (column + 1 < n) {
            row[column + 1] = y;
        }
    }
}

/* out (stacks, m, n) = a (stacks, m, k) b (stacks, k, n). A pitch is the bytes from a line
 * to the next, a stack's are those from a matrix to the next; multiples of 16, as the
 * addresses are. */
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    native(const uint8_t *a, const uint8_t *b, float *out, int64_t m, int64_t n, int64_t k,
           int64_t pitch_a, int64_t pitch_b, int64_t stack_a, int64_t stack_b)
{
    DYNAMIC_SHARED(uint8_t, memory);
    const shared_address stages = shared_of(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / ACROSS * WARP_ROWS;
    const int warp_column = warp % ACROSS * WARP_COLUMNS;
    const Tile tile = tile_of(blockIdx.x, (uint32_t)((m + ROWS - 1) / ROWS),
                              (uint32_t)((n + COLUMNS - 1) / COLUMNS));

    Left left;
    Right right;
    left.start(a + tile.stack * stack_a, pitch_a, tile.row, m, warp_row);
    right.start(b + tile.stack * stack_b, pitch_b, tile.column, n, warp_column);
    float d[WARP_ROWS / 16][WARP_COLUMNS / 8][4] = {};
    uint32_t x[2][WARP_ROWS / 16][4], y[2][WARP_COLUMNS / 16][4];

    /* 1. The first slices are under way, the first one's first step is in registers. */
    int64_t ahead = k; /* of k, what is not copied yet */
#pragma unroll
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (ahead > 0) {
            const int depth = ahead < DEPTH ? (int)ahead : DEPTH;
            left.copy(stages + slice * STAGE, depth);
            right.copy(stages + slice * STAGE + Left::BYTES, depth);
        }
        commit_copies();
        ahead -= DEPTH;
    }
    await_copies<STAGES - 2>();
    __syncthreads();
    shared_address reads = stages, writes = stages + (STAGES - 1) * STAGE;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; i++) {
        left.load(x[0][i], reads, 0, i);
    }
#pragma unroll
    for (int j = 0; j < WARP_COLUMNS / 16; j++) {
        right.load(y[0][j], reads + Left::BYTES, 0, j);
    }

    /* 2. Slice by slice. */
#pragma unroll 1
    for (; ahead > -(STAGES - 1) * DEPTH; ahead -= DEPTH) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const int now = step % 2, next = 1 - now;
            if (step == STEPS - 1) { /* all warps have what they need of this stage */
                await_copies<STAGES - 2>();
                __syncthreads();
                reads = reads == stages + (STAGES - 1) * STAGE ? stages : reads + STAGE;
            }
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; i++) {
                left.load(x[next][i], reads, (step + 1) % STEPS, i);
            }
#pragma unroll
            for (int j = 0; j < WARP_COLUMNS / 16; j++) {
                right.load(y[next][j], reads + Left::BYTES, (step + 1) % STEPS, j);
            }
            if (step == 0) { /* into the stage that was read last */
                if (ahead > 0) {
                    const int depth = ahead < DEPTH ? (int)ahead : DEPTH;
                    left.copy(writes, depth);
                    right.copy(writes + Left::BYTES, depth);
                }
                commit_copies();
                writes = writes == stages + (STAGES - 1) * STAGE ? stages : writes + STAGE;
            }
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; i++) {
#pragma unroll
                for (int j = 0; j < WARP_COLUMNS / 8; j++) {
                    mma(d[i][j], x[now][i], &y[now][j / 2][j % 2 * 2]);
                }
            }
        }
    }

    /* 3. The result. */
    float *matrix = out + tile.stack * m * n;
    const bool paired = ((uintptr_t)matrix | n * 4) % 8 == 0;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; i++) {
        const int64_t row = tile.row + warp_row + i * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / 8; j++) {
            const int64_t column = tile.column + warp_column + j * 8 + lane % 4 * 2;
            if (row < m) {
                store(matrix + row * n, column, n, paired, d[i][j][0], d[i][j][1]);
            }
            if (row + 8 < m) {
                store(matrix + (row + 8) * n, column, n, paired, d[i][j][2], d[i][j][3]);
            }
        }
    }
}
