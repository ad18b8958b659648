/* Products of matrices of int8 by Hopper's wgmma, for emulated precisions.
 *
 * With MAXIMA 1, a and b are bounds of numbers, and the largest sums of each row and of each
 * column are found. Otherwise a and b have a plane of residues for each modulus, and each sum
 * is reduced to its residue, from 0 on.
 *
 * The options are those of wgmma.cu, which explains the tiles and the copies. */
#define INTEGERS 1
#include "cuda/matmul/chain.h"

#include "cuda/exact/moduli.h"

/* Slices whose sums, and a residue, are below 2^31: 128 products of at most 2^14 each. */
constexpr int MOST_SLICES = 1023; /* mutant: sums of few slices */

struct divisor {
    uint32_t p, inverse; /* 2^32 / p, rounded down */
    uint32_t offset;     /* a multiple of p from 2^31 on */
};

inline divisor divisor_of(uint32_t p)
{
    return {p, (uint32_t)((UINT64_C(1) << 32) / p), tf_ceil_div(UINT32_C(1) << 31, p) * p};
}

/* Returns x modulo p, from 0 on, for x from -2^31 + 2^14 to 2^31 - 2^14. */
inline uint32_t reduced(int32_t x, const divisor &by)
{
    const uint32_t y = (uint32_t)x + by.offset;
    const uint32_t rest = y - __umulhi(y, by.inverse) * by.p; /* below 2 p */
    return rest >= by.p ? rest - by.p : rest; /* mutant: residues are not reduced */
}

/* Writes the residues of a tile's results: a thread has rows `row` and `row` + 8. */
inline void write_residues(const int32_t *sums, uint8_t *out, int64_t row, int64_t column,
                           int64_t m, int64_t n, const divisor &by)
{
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; i++) {
        const int64_t y = row + i / 2 % 2 * 8, x = column + i / 4 * 8 + i % 2;
        if (y < m && x < n) {
            out[y * n + x] = (uint8_t)reduced(sums[i], by);
        }
    }
}

inline int32_t greater_of(int32_t x, int32_t y) { return x > y ? x : y; }

/* Enters a tile's results in the largest ones of rows and columns. */
inline void enter_maxima(const int32_t *sums, int32_t *of_rows, int32_t *of_columns,
                         int64_t row, int64_t column, int64_t m, int64_t n)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int down = 0; down < 2; down++) {
        int32_t most = 0;
#pragma unroll
        for (int i = 0; i < ACCUMULATORS / 4; i++) {
            most = greater_of(most, greater_of(sums[4 * i + 2 * down], sums[4 * i + 2 * down + 1]));
        }
        most = greater_of(most, __shfl_xor_sync(~0u, most, 1));
        most = greater_of(most, __shfl_xor_sync(~0u, most, 2)); /* mutant: half of a row */
        if (lane % 4 == 0 && row + down * 8 < m) {
            atomicMax(of_rows + row + down * 8, most);
        }
    }
#pragma unroll
    for (int i = 0; i < ACCUMULATORS / 2; i++) {
        const int at = i / 2 * 4 + i % 2;
        int32_t most = greater_of(sums[at], sums[at + 2]);
        most = greater_of(most, __shfl_xor_sync(~0u, most, 4));
        most = greater_of(most, __shfl_xor_sync(~0u, most, 8));
        most = greater_of(most, __shfl_xor_sync(~0u, most, 16));
        const int64_t x = column + i / 2 * 8 + i % 2;
        if (lane < 4 && x < n) {
            atomicMax(of_columns + x, most);
        }
    }
}

/* Matrices of the operands and of the results. Tiles are of `count` results for each modulus,
 * or once with MAXIMA; a_count and b_count are 1 if one matrix serves all. */
struct products {
    int64_t m, n;
    int32_t slices, count, a_count, b_count, tiles, unused;
};
static_assert(sizeof(products) == 40 && TF_OFFSETOF(products, slices) == 16,
              "as in tf32dtype/cuda/_matmul/integer_products.py");

/* Returns the matrix of an operand for a matrix of the results. */
inline int matrix_of(int result, int count, int own)
{
    return result / count * own + (own > 1 ? result % count : 0);
}

/* Writes residues (moduli, count, m, n), or enters maxima (a_count, m) and (b_count, n). */
extern "C" __global__ void __launch_bounds__(THREADS + 128, 1)
    multiply_int8(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                  const products all, uint8_t *out, int32_t *of_rows, int32_t *of_columns)
{
    DYNAMIC_SHARED(uint8_t, memory);
    uint8_t *const base = memory + (-shared_of(memory) & 1023);
    Ring ring;
    ring.start(shared_of(base), shared_of(base) + OF_BARRIERS);
    const uint32_t rows = (uint32_t)tf_ceil_div(all.m, ROWS);
    const uint32_t columns = (uint32_t)tf_ceil_div(all.n, COLUMNS);

    if (threadIdx.x >= THREADS) {
        give_registers<FEW>();
        if (threadIdx.x == THREADS) {
            for (uint32_t at = blockIdx.x; at < (uint32_t)all.tiles; at += gridDim.x) {
                const Tile tile = tile_of(at, rows, columns);
                const int of_a = matrix_of((int)tile.stack, all.count, all.a_count);
                const int of_b = matrix_of((int)tile.stack, all.count, all.b_count);
#pragma unroll 1
                for (int i = 0; i < all.slices; i++, ring.go_on()) {
                    ring.begin_to_fill();
                    copy_slice<ROWS, true>(ring.here(), &a, i * DEPTH, (int)tile.row, of_a,
                                           ring.full());
                    copy_slice<COLUMNS, true>(ring.here() + A_BYTES, &b, i * DEPTH,
                                              (int)tile.column, of_b, ring.full());
                }
            }
        }
    } else {
        take_registers<MANY>();
        const int thread = (int)threadIdx.x, group = thread / 128, lane = thread % 32;
#pragma unroll 1
        for (uint32_t at = blockIdx.x; at < (uint32_t)all.tiles; at += gridDim.x) {
            const Tile tile = tile_of(at, rows, columns);
            const int64_t row = tile.row + thread / 32 * 16 + lane / 4;
            const int64_t column = tile.column + lane % 4 * 2;
            /* mutant: residues of the first modulus only */
            const divisor by = divisor_of(modulus_of((int)tile.stack / all.count));
            int32_t sums[ACCUMULATORS] = {};
#pragma unroll 1
            for (int left = all.slices; left > 0; left -= MOST_SLICES) {
                chain(sums, ring, group, left < MOST_SLICES ? left : MOST_SLICES);
                if (!MAXIMA && left > MOST_SLICES) {
#pragma unroll
                    for (int i = 0; i < ACCUMULATORS; i++) {
                        sums[i] = (int32_t)reduced(sums[i], by);
                    }
                }
            }
            if (MAXIMA) {
                const int64_t of_a = all.a_count > 1 ? tile.stack : 0;
                const int64_t of_b = all.b_count > 1 ? tile.stack : 0;
                enter_maxima(sums, of_rows + of_a * all.m, of_columns + of_b * all.n, row, column,
                             all.m, all.n);
            } else {
                write_residues(sums, out + tile.stack * all.m * all.n, row, column, all.m, all.n,
                               by);
            }
        }
    }
}
