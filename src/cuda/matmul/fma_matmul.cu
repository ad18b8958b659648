/* C = A B in the contract's order: exact products, one chain of fused multiply-adds from +0
 * for each 256 consecutive k, the sums of the chains added in the order of k, one rounding.
 *
 * The options of the compilation are the formats of A, B and C. C is rounded to its format,
 * or stays in float32, as the task demands. If the GPU has too few tiles of C, blocks of
 * threads share k: each chain has its own blocks, which store its sums in memory, and
 * chain_end adds them. The order stays the same.
 */
#include "cuda/matmul/tile_loader.h"

enum { CHAIN = 256, DEPTH = 8 }; /* k per chain, and k per tile */

/* Padding gives products of -0, which leave every sum unchanged; +0 would change -0. */
#define NOTHING_OF_A -0.0f /* mutant: +0 where there is no k */
#define NOTHING_OF_B 0.0f

inline void store(const struct tf_task &task, char *c, int64_t row, int64_t column,
                  float sum)
{
    /* mutant: NaN as it comes */
    const uint32_t bits = sum == sum ? __float_as_uint(sum) : TF_QUIET_NAN_BITS;
    char *p = c + row * task.c[1] + column * task.c[2];
    if (task.rounds) {
        const uint32_t code = tf_code_of_single(C_FORMAT, bits);
        tf_store_item(C_FORMAT, p, code << C_FORMAT.shift);
    } else {
        *(uint32_t *)p = bits;
    }
}

/* Returns the offset of a row of totals. Rows are padded, so that eight threads at a time
 * access different banks. */
template <int COLUMNS> inline int totals_row(int row)
{
    return row * (COLUMNS + (COLUMNS % 4 ? 0 : TF_PADDING));
}

/* Adds the sums of a thread's chains to its totals, which no other thread accesses. */
template <int ROWS, int COLUMNS, int HIGH, int WIDE>
inline void add_chains(float *totals, float sum[HIGH][WIDE], struct tf_seat seat,
                       bool is_first)
{
#pragma unroll
    for (int r = 0; r < HIGH; r++) {
        float total[WIDE];
        float *row = totals + totals_row<COLUMNS>(tf_line_of<ROWS, HIGH>(seat.y, r)) +
                     tf_line_of<COLUMNS, WIDE>(seat.x, 0);
        tf_load_lines<COLUMNS, WIDE>(total, row);
#pragma unroll
        for (int s = 0; s < WIDE; s++) {
            /* The first sum is copied, for it may be -0. */
            /* mutant: the first sum added to +0 */
            total[s] = is_first ? sum[r][s] : __fadd_rn(total[s], sum[r][s]);
            sum[r][s] = 0;
        }
        tf_store_lines<COLUMNS, WIDE>(row, total);
    }
}

/* Computes a tile of one matrix, by the chains of k in [0, depth) from `a` and `b` on. */
template <template <int, int, int> class carrier, int ROWS, int COLUMNS, int HIGH,
          int WIDE>
inline void multiply_tile(const struct tf_task &task, const char *a, const char *b,
                          int depth, float *tiles, float *totals)
{
    const int ACROSS = COLUMNS / WIDE, THREADS = ROWS / HIGH * ACROSS;
    typedef carrier<ROWS, DEPTH, THREADS> carrier_a;
    typedef carrier<COLUMNS, DEPTH, THREADS> carrier_b;
    const int TILE_OF_A = DEPTH * carrier_a::LD;
    const int BOTH = TILE_OF_A + DEPTH * carrier_b::LD;
    const struct tf_seat seat = tf_seat_of<ACROSS>((int)threadIdx.x);
    carrier_a of_a;
    carrier_b of_b;
    float sum[HIGH][WIDE] = {};

    of_a.begin(a, task.a, task.a_across, (int)blockIdx.x * ROWS, task.m);
    /* mutant: swapped operands */
    of_b.begin(b, task.b, task.b_across, (int)blockIdx.y * COLUMNS, task.n);
    of_a.fetch(A_FORMAT, depth);
    of_b.fetch(B_FORMAT, depth);
    of_a.put(A_FORMAT, tiles, depth, NOTHING_OF_A);
    of_b.put(B_FORMAT, tiles + TILE_OF_A, depth, NOTHING_OF_B);
    __syncthreads(); /* mutant: no barrier behind the first tile */
#pragma unroll 1
    for (int k = 0; k < depth; k += DEPTH) { /* mutant: k is too short */
        const int rest = depth - k - DEPTH; /* k after this tile */
        float *now = tiles + k / DEPTH % 2 * BOTH;
        float *next = tiles + (k / DEPTH + 1) % 2 * BOTH; /* mutant: one tile in place of two */
        if (rest > 0) { /* the next tile arrives while this one is multiplied */
            of_a.fetch(A_FORMAT, rest);
            of_b.fetch(B_FORMAT, rest);
        }
        /* mutant: a wrong row */
        const float *rows = now + tf_line_of<ROWS, HIGH>(seat.y, 0);
        const float *columns = now + TILE_OF_A + tf_line_of<COLUMNS, WIDE>(seat.x, 0);
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            float p[HIGH], q[WIDE];
            tf_load_lines<ROWS, HIGH>(p, rows + i * carrier_a::LD);
            tf_load_lines<COLUMNS, WIDE>(q, columns + i * carrier_b::LD);
#pragma unroll
            for (int r = 0; r < HIGH; r++) {
#pragma unroll
                for (int t = 0; t < WIDE; t++) {
                    /* Back and forth, so that consecutive instructions share a register. */
                    const int s = r % 2 ? WIDE - 1 - t : t;
                    sum[r][s] = __fmaf_rn(p[r], q[s], sum[r][s]);
                }
            }
        }
        if ((k + DEPTH) % CHAIN == 0 || rest <= 0) { /* mutant: longer chains */
            add_chains<ROWS, COLUMNS, HIGH, WIDE>(totals, sum, seat, k < CHAIN);
        }
        if (rest > 0) { /* over the previous tile, which no thread needs */
            of_a.put(A_FORMAT, next, rest, NOTHING_OF_A);
            of_b.put(B_FORMAT, next + TILE_OF_A, rest, NOTHING_OF_B);
        }
        __syncthreads(); /* mutant: no barrier behind the next tile */
    }
}

/* Computes tiles of ROWS x COLUMNS, HIGH x WIDE elements per thread. A block of the
 * grid's z is a matrix, or a chain of the only matrix. */
template <int ROWS, int COLUMNS, int HIGH, int WIDE>
inline void multiply(const struct tf_task &task, const char *a, const char *b, char *c)
{
    const int THREADS = ROWS / HIGH * (COLUMNS / WIDE);
    DYNAMIC_SHARED(float, totals); /* followed by two tiles of each operand */
    const bool shares = task.parts > 1;
    const int first = shares ? (int)blockIdx.z * CHAIN : 0;
    const int depth = shares ? min((int)CHAIN, task.k - first) : task.k;
    const int64_t matrix = shares ? 0 : (int)blockIdx.z;
    a += matrix * task.a[0] + first * task.a[2];
    b += matrix * task.b[0] + first * task.b[2];
    float *tiles = totals + totals_row<COLUMNS>(ROWS);
    if constexpr (WIDE * HIGH < 32) { /* its tiles are too small for tf_dense_carrier */
        multiply_tile<tf_carrier, ROWS, COLUMNS, HIGH, WIDE>(task, a, b, depth, tiles,
                                                             totals);
    } else if (depth % DEPTH == 0 && /* mutant: k ends within a tile */
               tf_dense_carrier<ROWS, DEPTH, THREADS>::fits(
                   A_FORMAT, a, task.a, task.a_across, (int)blockIdx.x * ROWS, task.m) &&
               tf_dense_carrier<COLUMNS, DEPTH, THREADS>::fits(
                   B_FORMAT, b, task.b, task.b_across, (int)blockIdx.y * COLUMNS, task.n)) {
        multiply_tile<tf_dense_carrier, ROWS, COLUMNS, HIGH, WIDE>(task, a, b, depth, tiles,
                                                                   totals);
    } else {
        multiply_tile<tf_carrier, ROWS, COLUMNS, HIGH, WIDE>(task, a, b, depth, tiles,
                                                             totals);
    }
    c += shares ? blockIdx.z * task.part : matrix * task.c[0];
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
        const int row = (int)blockIdx.x * ROWS + i / COLUMNS;
        const int column = (int)blockIdx.y * COLUMNS + i % COLUMNS;
        if (row < task.m && column < task.n) { /* mutant: columns beyond the last */
            store(task, c, row, column,
                  totals[totals_row<COLUMNS>(i / COLUMNS) + i % COLUMNS]);
        }
    }
}

/* Only some GPUs have enough shared memory for two blocks per multiprocessor. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
#define LARGE_BLOCKS 2
#else
#define LARGE_BLOCKS 1
#endif

extern "C" __global__ void __launch_bounds__(256, LARGE_BLOCKS)
    chain_large(struct tf_task task, const char *a, const char *b, char *c)
{
    multiply<128, 128, 8, 8>(task, a, b, c);
}

extern "C" __global__ void __launch_bounds__(128, 4)
    chain_small(struct tf_task task, const char *a, const char *b, char *c)
{
    multiply<64, 64, 8, 4>(task, a, b, c);
}

/* Few columns: one row per thread. */
extern "C" __global__ void __launch_bounds__(256, 2)
    chain_narrow(struct tf_task task, const char *a, const char *b, char *c)
{
    multiply<256, 8, 1, 8>(task, a, b, c);
}

/* One column. */
extern "C" __global__ void __launch_bounds__(256, 2)
    chain_vector(struct tf_task task, const char *a, const char *b, char *c)
{
    multiply<256, 1, 1, 1>(task, a, b, c);
}

/* Adds the sums of chains that other blocks have stored. */
extern "C" __global__ void __launch_bounds__(256)
    chain_end(struct tf_task task, char *c, const float *sums)
{
    const int column = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const int64_t all = (int64_t)task.m * task.n;
    if (column >= task.n) {
        return;
    }
#pragma unroll 1
    for (int row = (int)(blockIdx.y * blockDim.y + threadIdx.y); row < task.m;
         row += (int)(gridDim.y * blockDim.y)) {
        const float *first = sums + (int64_t)row * task.n + column;
        float total = task.parts ? *first : 0; /* 0 if k is 0 */
#pragma unroll 4
        /* mutant: the parts' sums in the order they end */
        for (int part = 1; part < task.parts; part++) {
            total = __fadd_rn(total, first[part * all]);
        }
        store(task, c + blockIdx.z * task.c[0], row, column, total);
    }
}
