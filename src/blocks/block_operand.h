/* An operand of a product of block arrays. */
#ifndef TF32DTYPE_BLOCKS_BLOCK_OPERAND_H
#define TF32DTYPE_BLOCKS_BLOCK_OPERAND_H

#include <stddef.h>
#include <stdint.h>

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

#endif
