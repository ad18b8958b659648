/* Handle Inf and NaN among the operands of a tensor core separately from its chains. */
#ifndef TF32DTYPE_TENSOR_CORE_MMA_SPECIALS_H
#define TF32DTYPE_TENSOR_CORE_MMA_SPECIALS_H

#include "matmul/tile_path.h"

/* Lines along k packed in panels of `width` lines; rows of A have a width of 1. */
struct tf_packed_lines {
    float *numbers;
    size_t width, count, depth;
};

/* Returns whether one of n numbers is Inf or NaN. */
int tf_has_specials(const float *x, size_t n);

/* Returns the largest finite magnitude of n numbers, or 0. */
float tf_greatest_finite(const float *x, size_t n);

/* Notes where lines have Inf, NaN, zeros and signs, and replaces Inf and NaN by zeros. The
 * unit reads a magnitude with bits below `normal` as zero. */
void tf_take_specials(const struct tf_packed_lines *lines, uint32_t normal,
                      struct tf_special_lines *noted);

/* Adds one k-step to the outcomes of `rows` rows from row i on, from the noted lines. */
void tf_add_outcomes(struct tf_workspace *work, size_t i, size_t rows, size_t columns,
                     size_t depth);

/* Writes the outcomes to the sums of a tile, and discards the outcomes. */
void tf_settle_outcomes(struct tf_workspace *work, size_t rows, size_t columns,
                        float *sums);

#endif
