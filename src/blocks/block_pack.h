/* Pack operands of block multiplications, and their scales. */
#ifndef TF32DTYPE_BLOCKS_BLOCK_PACK_H
#define TF32DTYPE_BLOCKS_BLOCK_PACK_H

#include "blocks/block_operand.h"
#include "matmul/bf16_dot.h"
#include "matmul/operand.h"
#include "matmul/workspace.h"

enum {
    TF_BLOCKS = TF_KC / TF_LEAST_BLOCK, /* blocks of a line packed at a time */
    /* Offsets of scales in a workspace's a and b, which have room for one component more
     * than there are levels, and distances between the scales of two levels. */
    TF_SCALES_OF_A = TF_BLOCK_LEVELS * TF_PACKED_A,
    TF_SCALES_OF_B = TF_BLOCK_LEVELS * TF_PACKED_B,
    TF_LEVEL_OF_A = TF_BLOCKS * TF_MC,
    TF_LEVEL_OF_B = TF_BLOCKS * TF_NC,
};
_Static_assert((int)TF_BLOCK_LEVELS < (int)TF_PARTS &&
                   TF_BLOCK_LEVELS * TF_LEVEL_OF_A <= (int)TF_PACKED_A &&
                   TF_BLOCK_LEVELS * TF_LEVEL_OF_B <= (int)TF_PACKED_B,
               "scales fit");

/* An operand of a multiplication, with the values of its scales' codes. */
struct tf_packed_block_operand {
    struct tf_block_operand x;
    const float *values;    /* S by its code */
    const float *residuals; /* R by its code */
    ptrdiff_t block;
};

/* Returns the operand from matrix `number` and line `line` on. */
struct tf_packed_block_operand
tf_block_operand_from(struct tf_packed_block_operand operand, ptrdiff_t number,
                      ptrdiff_t line);

/* Describes an operand's numbers as they are multiplied, to find whether they can be pairs,
 * or are finite. The result has their address only if the operand has no codes. */
struct tf_operand tf_numbers_of(const struct tf_block_operand *x, ptrdiff_t k);

/* Returns exponents of an operand's smallest and largest numbers, or safe bounds. */
struct tf_exponents tf_block_exponents(const struct tf_block_operand *x);

/* Pack `depth` k from `k` on, of up to an MC panel of rows of A, or of columns of B. Write
 * words level by level to the workspace, and scales behind them. *range gets the magnitudes
 * of operands without codes. */
void tf_pack_block_rows(struct tf_workspace *work, const struct tf_packed_block_operand *a,
                        size_t rows, ptrdiff_t k, size_t depth, int pairs,
                        struct tf_magnitude_range *range);
void tf_pack_block_columns(struct tf_workspace *work, const struct tf_packed_block_operand *b,
                           size_t columns, ptrdiff_t k, size_t depth, int pairs,
                           struct tf_magnitude_range *range);

/* Marks lines with Inf or NaN, as tf_flag_specials_rows does. */
void tf_mark_block_lines(struct tf_workspace *work, const struct tf_packed_block_operand *lines,
                         size_t count, ptrdiff_t k, uint8_t *marks);

#endif
