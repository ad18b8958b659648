/* Inf and NaN among operands of a tensor core, apart from its chains. */
#ifndef TF32DTYPE_TENSOR_CORE_MMA_SPECIALS_H
#define TF32DTYPE_TENSOR_CORE_MMA_SPECIALS_H

#include "matmul/tile_path.h"

/* Lines along k that are packed in panels of `width`: rows of A one by one. */
struct tf_packed_lines {
    float *numbers;
    size_t width, count, depth;
};

/* Whether one of n numbers is Inf or NaN. */
int tf_has_specials(const float *x, size_t n);

/* The greatest magnitude of n numbers that are finite. */
float tf_greatest_finite(const float *x, size_t n);

/* Notes where lines have Inf, NaN, zeros and signs, and makes zeros of Inf and NaN. A
 * magnitude below `normal`, as a bit pattern, is a zero to the unit. */
void tf_take_specials(const struct tf_packed_lines *lines, uint32_t normal,
                      struct tf_special_lines *noted);

/* Adds to the outcomes of `rows` rows from the i-th on what is noted of them. */
void tf_add_outcomes(struct tf_workspace *work, size_t i, size_t rows, size_t columns,
                     size_t depth);

/* Writes the outcomes to a tile's sums, and forgets them. */
void tf_settle_outcomes(struct tf_workspace *work, size_t rows, size_t columns,
                        float *sums);

#endif
