/* Operands of a product on their way to a tensor core: float32 in any strides becomes
 * lines of what the core multiplies, k side by side.
 *
 * A line is a row of the first operand or a column of the second. The lines of a matrix
 * follow each other, those of a stack's matrices too.
 */
#ifndef TF32DTYPE_CUDA_MATMUL_OPERANDS_H
#define TF32DTYPE_CUDA_MATMUL_OPERANDS_H

#include "cuda/common/common.h"

/* Where numbers are. Strides count numbers. */
struct strided_operand {
    const float *data;
    int64_t matrix, line, step; /* strides, of which any may be negative or 0 */
    int64_t count, lines, k;
};

/* A block of 32 x 8 threads moves 32 lines of 32 k at a time. */
enum { SIDE = 32, HEIGHT = 8 };
typedef float tile_row[SIDE + 1]; /* 33, so that columns lie in 32 banks */

struct line_tile {
    int64_t matrix, line, k; /* the first ones */
};

/* The tiles of lines that are filled up with zeros to `padded` k, which the blocks of a
 * grid of any extent share: this block's first one, and the next. */
inline struct line_tile first_tile(void)
{
    const struct line_tile t = {blockIdx.z, (int64_t)blockIdx.y * SIDE,
                           (int64_t)blockIdx.x * SIDE};
    return t;
}

inline bool is_tile(struct strided_operand x, struct line_tile t)
{
    return t.matrix < x.count;
}

inline struct line_tile next_tile(struct strided_operand x, int64_t padded,
                                  struct line_tile t)
{
    t.k += (int64_t)gridDim.x * SIDE;
    if (t.k >= padded) {
        t.k = (int64_t)blockIdx.x * SIDE;
        t.line += (int64_t)gridDim.y * SIDE;
    }
    if (t.line >= x.lines) {
        t.line = (int64_t)blockIdx.y * SIDE;
        t.matrix += gridDim.z;
    }
    return t;
}

inline int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

/* numbers[line][k] of a tile, zeros where there are none. All of the block meet. */
inline void read_tile(struct strided_operand x, struct line_tile t, tile_row *numbers)
{
    /* Neighbouring threads read what is closest in memory. */
    const bool lines_are_close = distance(x.line) < distance(x.step);
    __syncthreads();
    for (int i = threadIdx.y; i < SIDE; i += HEIGHT) {
        const int r = lines_are_close ? (int)threadIdx.x : i;
        const int c = lines_are_close ? i : (int)threadIdx.x;
        const int64_t line = t.line + r, k = t.k + c;
        const bool is_there = line < x.lines && k < x.k;
        numbers[r][c] =
            is_there ? x.data[t.matrix * x.matrix + line * x.line + k * x.step] : 0;
    }
    __syncthreads();
}

#endif
