/* Operands of products of blocks on their way to packed words, and their scales. */
#ifndef TF32DTYPE_BLOCKS_BLOCK_PACK_H
#define TF32DTYPE_BLOCKS_BLOCK_PACK_H

#include "blocks/block_operand.h"
#include "matmul/bf16_dot.h"
#include "matmul/operand.h"
#include "matmul/workspace.h"

enum {
    TF_BLOCKS = TF_KC / TF_LEAST_BLOCK, /* of a line that are packed at a time */
    /* Where scales lie in a workspace's a and b, which are made for one part more than
     * there are levels; and from those of a level to the next. */
    TF_SCALES_OF_A = TF_BLOCK_LEVELS * TF_PACKED_A,
    TF_SCALES_OF_B = TF_BLOCK_LEVELS * TF_PACKED_B,
    TF_LEVEL_OF_A = TF_BLOCKS * TF_MC,
    TF_LEVEL_OF_B = TF_BLOCKS * TF_NC,
};
_Static_assert((int)TF_BLOCK_LEVELS < (int)TF_PARTS &&
                   TF_BLOCK_LEVELS * TF_LEVEL_OF_A <= (int)TF_PACKED_A &&
                   TF_BLOCK_LEVELS * TF_LEVEL_OF_B <= (int)TF_PACKED_B,
               "scales fit");

/* An operand of one product, with what its scales' codes are worth. */
struct tf_packed_block_operand {
    struct tf_block_operand x;
    const float *values;    /* S by its code */
    const float *residuals; /* R by its code */
    ptrdiff_t block;
};

/* Matrix number `number`, from a line on. */
struct tf_packed_block_operand
tf_block_operand_from(struct tf_packed_block_operand operand, ptrdiff_t number,
                      ptrdiff_t line);

/* What an operand's numbers are when they are multiplied: to ask whether they may be
 * pairs, or are finite. Only of those that are no codes does it say where they lie. */
struct tf_operand tf_numbers_of(const struct tf_block_operand *x, ptrdiff_t k);

/* The exponents of the least and the greatest numbers: as for pairs, at worst. */
struct tf_exponents tf_block_exponents(const struct tf_block_operand *x);

/* Some k, from `k` on, of rows of A, up to an MC panel, and of columns of B: words to
 * parts of the workspace, level by level, and scales behind them. The magnitudes of
 * numbers that are no codes are noted. */
void tf_pack_block_rows(struct tf_workspace *work, const struct tf_packed_block_operand *a,
                        size_t rows, ptrdiff_t k, size_t depth, int pairs,
                        struct tf_magnitude_range *range);
void tf_pack_block_columns(struct tf_workspace *work, const struct tf_packed_block_operand *b,
                           size_t columns, ptrdiff_t k, size_t depth, int pairs,
                           struct tf_magnitude_range *range);

/* Which lines hold what is not finite, as tf_flag_specials_rows does. */
void tf_mark_block_lines(struct tf_workspace *work, const struct tf_packed_block_operand *lines,
                         size_t count, ptrdiff_t k, uint8_t *marks);

#endif
