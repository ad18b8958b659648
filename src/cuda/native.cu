/* a @ b by this GPU's tensor cores, with a fixed order of k: each element of the result is
 * one chain of mma.sync from +0, k ascending, so that a model of the instruction gives
 * its bits (tf32dtype/tensor_core). What is missing of the last slice of k is zero.
 *
 * Or the chain begins anew after every PROMOTE instructions, and what it came to is added
 * to a sum from +0 by float32 addition, to nearest. Either is done for stretches of k
 * one after the other, each of which is added to the result.
 *
 * The options of the compilation (tf32dtype/cuda/native.py) are
 *
 *   UNIT, UNIT_BYTES          the instruction, see mma.h
 *   PROMOTE                   instructions to a chain; 0: a stretch is one chain
 *   SIZE                      bytes of an element of a and b: 4, 2 or 1
 *   A_ALONG_K, B_ALONG_K      1 where k is contiguous, 0 where m or n is (not with SIZE 1)
 *   ROWS, COLUMNS             the tile of the result that a block has
 *   WARP_ROWS, WARP_COLUMNS   and that a warp has, in registers
 *   SLICE, STAGES             bytes of k that are copied at a time, and how many times ahead
 *   RESIDENT                  blocks that a multiprocessor shall hold
 *
 *        global ---cp.async---> shared: STAGES slices ---ldmatrix---> registers: 2 steps
 *
 * A slice's step is 32 bytes of k, one instruction or two. While one step is multiplied,
 * the registers of the next are loaded, those of a in place; while a slice is multiplied, those
 * up to STAGES - 1 after it are under way.
 */
#include "async.h"
#include "mma.h"

constexpr int STEPS = SLICE / 32, DEPTH = SLICE / SIZE;
constexpr int UNITS = 32 / UNIT_BYTES; /* instructions of a step */
constexpr int ACROSS = COLUMNS / WARP_COLUMNS, THREADS = ROWS / WARP_ROWS * ACROSS * 32;
constexpr int BAND = 2048 / ROWS; /* tiles, see below */
/* Instructions until a chain ends; more than there are, if within no slice. */
constexpr int CHAIN = PROMOTE ? PROMOTE : STEPS * UNITS + 1;
static_assert(PROMOTE == 0 || STEPS * UNITS % PROMOTE == 0, "slices are whole chains");

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

typedef float Results[WARP_ROWS / 16][WARP_COLUMNS / 8][4];

/* Results to a lane's first one, or `rows` by `columns` of them if they are not WHOLE, with
 * beta times what is there; 0: nothing is. What is read is under way together. */
template <bool WHOLE>
inline void deposit(const Results &results, float *first, int64_t n, int64_t rows,
                    int64_t columns, float beta)
{
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; i++) {
        float2 before[2][WARP_COLUMNS / 8] = {};
#pragma unroll
        for (int e = 0; e < WARP_COLUMNS / 4; e++) {
            const int down = e % 2, j = e / 2;
            const float *from = first + (i * 16 + down * 8) * n + j * 8;
            if (WHOLE && beta != 0) {
                before[down][j] = *(const float2 *)from;
            } else if (beta != 0 && i * 16 + down * 8 < rows) {
                before[down][j].x = j * 8 < columns ? from[0] : 0;
                before[down][j].y = j * 8 + 1 < columns ? from[1] : 0;
            }
        }
#pragma unroll
        for (int e = 0; e < WARP_COLUMNS / 4; e++) {
            const int down = e % 2, j = e / 2;
            float *to = first + (i * 16 + down * 8) * n + j * 8;
            float2 x = {results[i][j][down * 2], results[i][j][down * 2 + 1]};
            if (beta != 0) {
                x.x = __fmaf_rn(beta, before[down][j].x, x.x);
                x.y = __fmaf_rn(beta, before[down][j].y, x.y);
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

/* out (stacks, m, n) = a (stacks, m, k) b (stacks, k, n) + beta out, which is not read if
 * beta is 0. A pitch is the bytes from a line to the next, a stack's are those from a
 * matrix to the next; multiples of 16, as the addresses are. A stretch is so many k, a
 * multiple of DEPTH. */
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    native(const uint8_t *a, const uint8_t *b, float *out, int64_t m, int64_t n, int64_t k,
           int64_t pitch_a, int64_t pitch_b, int64_t stack_a, int64_t stack_b,
           int32_t stretch, float beta)
{
    DYNAMIC_SHARED(uint8_t, memory);
    const shared_address stages = shared_of(memory);
    const uint32_t rows = (uint32_t)((m + ROWS - 1) / ROWS);
    const uint32_t columns = (uint32_t)((n + COLUMNS - 1) / COLUMNS);
    const Tile tile = tile_of(blockIdx.x, rows, columns);

    Left left;
    Right right;
    left.start(a + tile.stack * stack_a, pitch_a, tile.row, m,
               (int)threadIdx.x / 32 / ACROSS * WARP_ROWS);
    right.start(b + tile.stack * stack_b, pitch_b, tile.column, n,
                (int)threadIdx.x / 32 % ACROSS * WARP_COLUMNS);
    if (PROMOTE == 0) { /* that this is known when it is compiled saves registers */
        beta = 0;
    }
    Results d = {}, sums = {}; /* of chains, and of these */
    Results &results = PROMOTE ? sums : d;
    const float zero[4] = {};
    uint32_t x[WARP_ROWS / 16][4], y[2][WARP_COLUMNS / 16][4];

    /* 1. The first slices are under way, the first one's first step is in registers. */
    int ahead = (int)((k + DEPTH - 1) / DEPTH);  /* slices that are not copied yet */
    const int last = (int)((k - 1) % DEPTH) + 1; /* depth of the last one */
#pragma unroll
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (ahead > 0) {
            const int depth = ahead > 1 ? DEPTH : last;
            left.copy(stages + slice * STAGE, depth);
            right.copy(stages + slice * STAGE + Left::BYTES, depth);
        }
        commit_copies();
        ahead--;
    }
    await_copies<STAGES - 2>();
    __syncthreads();
    shared_address reads = stages, writes = stages + (STAGES - 1) * STAGE;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; i++) {
        left.load(x[i], reads, 0, i);
    }
#pragma unroll
    for (int j = 0; j < WARP_COLUMNS / 16; j++) {
        right.load(y[0][j], reads + Left::BYTES, 0, j);
    }

#pragma unroll 1
    do {
        /* 2. Slice by slice. */
        const int pause = PROMOTE ? ahead - stretch / DEPTH : 0;
        const int until = PROMOTE && pause > 1 - STAGES ? pause : 1 - STAGES;
#pragma unroll 1
        for (; ahead > until; ahead--) {
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                const int now = step % 2, next = 1 - now;
                if (step == STEPS - 1) { /* all warps have what they need of this stage */
                    await_copies<STAGES - 2>();
                    __syncthreads();
                    reads = reads == stages + (STAGES - 1) * STAGE ? stages : reads + STAGE;
                }
#pragma unroll
                for (int j = 0; j < WARP_COLUMNS / 16; j++) {
                    right.load(y[next][j], reads + Left::BYTES, (step + 1) % STEPS, j);
                }
                if (step == 0) { /* into the stage that was read last */
                    if (ahead > 0) {
                        const int depth = ahead > 1 ? DEPTH : last;
                        left.copy(writes, depth);
                        right.copy(writes + Left::BYTES, depth);
                    }
                    commit_copies();
                    writes =
                        writes == stages + (STAGES - 1) * STAGE ? stages : writes + STAGE;
                }
#pragma unroll
                for (int i = 0; i < WARP_ROWS / 16; i++) {
#pragma unroll
                    for (int e = 0; e < UNITS * WARP_COLUMNS / 8; e++) {
                        const int half = e / (WARP_COLUMNS / 8), j = e % (WARP_COLUMNS / 8);
                        const int unit = step * UNITS + half; /* of the slice */
                        const bool begins = PROMOTE && unit % CHAIN == 0;
                        mma(d[i][j], &x[i][half * 2], &y[now][j / 2][j % 2 * 2 + half],
                            begins ? zero : d[i][j]);
#pragma unroll
                        for (int r = 0; r < 4 && (unit + 1) % CHAIN == 0; r++) {
                            sums[i][j][r] = __fadd_rn(sums[i][j][r], d[i][j][r]);
                        }
                    }
                    left.load(x[i], reads, (step + 1) % STEPS, i);
                }
            }
        }

        /* 3. The result. Where it is would take registers before. */
        const int thread = computed_here((int)threadIdx.x), lane = thread % 32;
        const Tile to = tile_of((uint32_t)computed_here((int)blockIdx.x), rows, columns);
        const int64_t row = to.row + left.first + lane / 4;
        const int64_t column = to.column + right.first + lane % 4 * 2;
        float *const place = out + (to.stack * m + row) * n + column;
        const bool paired = ((uintptr_t)out | (uint64_t)n * 4) % 8 == 0;
        if (to.row + ROWS <= m && to.column + COLUMNS <= n && paired) {
            deposit<true>(results, place, n, m, n, beta);
        } else {
            deposit<false>(results, place, n, m - row, n - column, beta);
        }
#pragma unroll
        for (int e = 0; e < WARP_ROWS * WARP_COLUMNS / 32; e++) {
            sums[e / (WARP_COLUMNS / 2)][e / 4 % (WARP_COLUMNS / 8)][e % 4] = 0;
        }
        beta = 1;
    } while (PROMOTE && ahead > 1 - STAGES);
}
