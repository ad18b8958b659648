/* An operand of a matrix multiplication of block arrays. */
#ifndef TF32DTYPE_BLOCKS_BLOCK_OPERAND_H
#define TF32DTYPE_BLOCKS_BLOCK_OPERAND_H

#include <stddef.h>
#include <stdint.h>

enum { TF_BLOCK_LEVELS = 2, TF_LEAST_BLOCK = 16 };

/* Packed codes of the first matrix. The codes of a line are one after the other. */
struct tf_block_level {
    const uint8_t *codes;
    ptrdiff_t line, step; /* bytes to the next line, and to the next matrix */
    int element;
};

/* An operand as lines along k: rows of A, columns of B. */
struct tf_block_operand {
    int levels; /* levels of codes, or 0 for numbers without scales */
    struct tf_block_level level[TF_BLOCK_LEVELS];
    /* One code per level for each block. */
    const uint8_t *scales;
    ptrdiff_t scales_line, scales_step;
    int scale;    /* index of tf_scales */
    float tensor_scale; /* multiplies all scales */
    /* The fields below describe numbers, if there are no codes. */
    const char *numbers;
    ptrdiff_t stride, along, step; /* bytes from line to line, k to k, matrix to matrix */
    int kind;                      /* a format's index, TF_FLOAT16 or TF_FLOAT32 */
};

#endif
