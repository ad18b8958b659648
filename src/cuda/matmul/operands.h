/* Reads operands of a product for a tensor core: float32 in any strides becomes lines of
 * the core's format, with k contiguous.
 *
 * A line is a row of the first operand or a column of the second. The lines of a matrix
 * are contiguous, and so are a stack's matrices.
 */
#ifndef TF32DTYPE_CUDA_MATMUL_OPERANDS_H
#define TF32DTYPE_CUDA_MATMUL_OPERANDS_H

#include "cuda/common/common.h"

/* An operand in memory. Strides count numbers. */
struct strided_operand {
    const float *data;
    int64_t matrix, line, step; /* strides, which may be negative or 0 */
    int64_t count, lines, k;
};

/* A block of 32 x 8 threads moves 32 lines of 64 k. */
enum { SIDE = 32, HEIGHT = 8, DEEP = 64 };
/* The length is even, so that two neighbors are read at a time. */
typedef float tile_row[DEEP + 2];
static_assert(sizeof(tile_row) % 8 == 0, "");

struct line_tile {
    int64_t matrix, line, k; /* the first ones of the tile */
};

/* Returns the number of tiles of lines that are extended with zeros to `padded` k. */
inline int64_t tiles_of(const struct strided_operand &x, int64_t padded)
{
    return x.count * tf_ceil_div(x.lines, SIDE) * tf_ceil_div(padded, DEEP);
}

/* Returns tile `at`. Tiles of a line follow each other, then lines, then matrices. */
inline struct line_tile tile_at(const struct strided_operand &x, int64_t padded, int64_t at)
{
    const uint32_t deep = (uint32_t)tf_ceil_div(padded, DEEP);
    const uint32_t high = (uint32_t)tf_ceil_div(x.lines, SIDE);
    const uint32_t lines = (uint32_t)at / deep; /* a grid has fewer than 2^31 blocks */
    const struct line_tile t = {lines / high, (int64_t)(lines % high) * SIDE,
                                (int64_t)((uint32_t)at % deep) * DEEP};
    return t;
}

inline int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Reads numbers[line][k] of a tile; numbers outside the operand are 0. */
inline void read_tile(const struct strided_operand &x, const struct line_tile &t,
                      tile_row *numbers)
{
    /* Neighboring threads read the numbers that are closest in memory. */
    const bool lines_are_close = distance(x.line) < distance(x.step);
    const float *first = x.data + t.matrix * x.matrix + t.line * x.line + t.k * x.step;
    const int lines = (int)(x.lines - t.line < SIDE ? x.lines - t.line : SIDE);
    const int deep = (int)(x.k - t.k < DEEP ? x.k - t.k : DEEP);
    const int lane = (int)threadIdx.x, height = (int)threadIdx.y;
    const int r = lines_are_close ? lane : height / 2;
    const int c = lines_are_close ? height : lane + height % 2 * SIDE;
    const int down = lines_are_close ? 0 : HEIGHT / 2, across = lines_are_close ? HEIGHT : 0;
    const float *from = first + r * x.line + c * x.step;
    const int64_t hop = down * x.line + across * x.step;
#pragma unroll
    for (int i = 0; i < DEEP / HEIGHT; i++) {
        const bool is_there = r + i * down < lines && c + i * across < deep;
        numbers[r + i * down][c + i * across] = is_there ? from[i * hop] : 0;
    }
    __syncthreads();
}

#endif
