/* Reads rows of an operand: numbers of type ITEM in any strides. A row is a row of the first
 * operand, or a column of the second. A block of WARPS warps reads SIDE rows. */
#ifndef TF32DTYPE_CUDA_EXACT_OPERAND_H
#define TF32DTYPE_CUDA_EXACT_OPERAND_H

#include "cuda/common/common.h"
#include "runtime/wide_integers.h"

struct operand {
    const ITEM *data;
    int64_t matrix, line, step; /* strides in numbers, which may be negative or 0 */
    int64_t count, lines, k;
};

enum { SIDE = 32, WARPS = 16, EACH = SIDE / WARPS };

constexpr bool IS_DOUBLE = sizeof(ITEM) == 8;
constexpr uint64_t INFINITE = (uint64_t)0x7FF << 52;

inline uint64_t magnitude_of(double x) { return (uint64_t)__double_as_longlong(x) & INT64_MAX; }

/* Returns e of a magnitude in [2^(e - 1), 2^e). */
inline int exponent_of(uint64_t magnitude)
{
    const int field = (int)(magnitude >> 52);
    return field > 0 ? field - 1022 : 64 - tf_leading_zeros(magnitude) - 1074;
}

/* A magnitude is significand * 2^exponent. */
struct integer {
    uint64_t significand;
    int exponent;
};

inline integer integer_of(uint64_t magnitude)
{
    const int field = (int)(magnitude >> 52);
    const uint64_t mantissa = magnitude & (((uint64_t)1 << 52) - 1);
    return {mantissa | (uint64_t)(field > 0) << 52, (field > 0 ? field : 1) - 1075};
}

typedef ITEM tile_row[SIDE + 1];

/* The rows of this block: EACH of a warp. */
struct block_rows {
    tile_row *tile; /* SIDE rows of shared memory */
    const ITEM *first;
    int lines;    /* those that are there */
    int64_t row0; /* index of the warp's first row among all rows */

    inline block_rows(const operand &x, tile_row *memory)
    {
        tile = memory;
        const int64_t line = (int64_t)blockIdx.x * SIDE, matrix = blockIdx.y;
        first = x.data + matrix * x.matrix + line * x.line;
        lines = (int)(x.lines - line < SIDE ? x.lines - line : SIDE);
        row0 = matrix * x.lines + line + threadIdx.y * EACH;
    }

    inline bool has(int i) const { return (int)threadIdx.y * EACH + i < lines; }

    /* Calls f(i, k, x) for the numbers of the warp's rows, i < EACH. k may be up to `padded`,
     * a multiple of SIDE; numbers that are not there are 0. */
    template <class F>
    inline void for_numbers(const operand &x, int64_t padded, F f) const
    {
        const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
        /* Neighboring threads read the numbers that are closest in memory. */
        const int64_t line = x.line < 0 ? -x.line : x.line, step = x.step < 0 ? -x.step : x.step;
        const bool lines_are_close = line < step;
#pragma unroll 1
        for (int64_t at = 0; at < padded; at += SIDE) {
            __syncthreads(); /* mutant: no barrier before the next numbers */
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int other = warp + i * WARPS;
                const int row = lines_are_close ? lane : other;
                const int k = lines_are_close ? other : lane;
                const bool is_there = row < lines && at + k < x.k;
                tile[row][k] = is_there ? first[row * x.line + (at + k) * x.step] : 0;
            }
            __syncthreads(); /* mutant: no barrier before numbers are used */
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                f(i, at + lane, (double)tile[warp * EACH + i][lane]);
            }
        }
    }
};

/* Returns a value of all lanes of the warp. */
template <class T, class F> inline T over_warp(T x, F f)
{
#pragma unroll
    for (int mask = 16; mask; mask /= 2) {
        x = f(x, __shfl_xor_sync(~0u, x, mask));
    }
    return x;
}

inline uint64_t greater_of(uint64_t x, uint64_t y) { return x > y ? x : y; }

#endif
