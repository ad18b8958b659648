/* Products of block arrays: codes are decoded on their way to a tile. */
#ifndef TF32DTYPE_BLOCKS_BLOCK_MATMUL_H
#define TF32DTYPE_BLOCKS_BLOCK_MATMUL_H

#include "blocks/code_tables.h"
#include "matmul/matmul.h"
#include "matmul/pack.h"

enum { TF_BLOCK_LEVELS = 2, TF_LEAST_BLOCK = 16 };

/* Packed codes of the first matrix: those of a line one after the other. */
struct tf_block_level {
    const uint8_t *codes;
    ptrdiff_t line, step; /* bytes to the next line, and matrix */
    int element;
};

/* An operand of a product, as lines along k: rows of A, columns of B. */
struct tf_block_operand {
    int levels; /* of codes; 0: numbers, which have no scales */
    struct tf_block_level level[TF_BLOCK_LEVELS];
    /* As many codes a block as there are levels. */
    const uint8_t *scales;
    ptrdiff_t scales_line, scales_step;
    int scale;    /* kind */
    float tensor_scale; /* what its scales are multiplied by */
    /* Instead of codes: */
    const char *numbers;
    ptrdiff_t stride, along, step; /* from line to line, k to k, matrix to matrix */
    int kind;                      /* a format, TF_FLOAT16 or TF_FLOAT32 */
};

/* C = A @ B for `count` times m and n lines of k numbers in blocks of `block`, 16 to
 * 128.
 *
 * For each block of k, and each of up to `terms` products hi*hi, hi*lo, lo*hi, lo*lo of
 * levels (without the last if `terms` is 3), c = fma(RN32(s t), p, c) from +0, where p
 * is the chain of fused multiply-adds from +0 and s, t are the scales of both levels.
 * One rounding to the kind of C. On as many threads as OpenMP offers, which change no
 * bit. What floating-point flags it raises is added to *flags. Returns -1, with C
 * untouched, if memory is short; or, with C undefined, if it was stopped (stops.h). */
int tf_block_matmul(const struct tf_block_operand *a, const struct tf_block_operand *b,
                    struct tf_matrix c, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                    ptrdiff_t count, ptrdiff_t block, int terms, unsigned *flags);

#endif
