/* Products of small integers: what the numbers of some formats are, times a power of
 * two. kernels/int8_dot.c says how they are exact. */
#ifndef TF32DTYPE_MATMUL_INT8_DOT_H
#define TF32DTYPE_MATMUL_INT8_DOT_H

#include "matmul/operand.h"

/* Whether two operands, as they lie in memory, are multiplied as quads: wherever that is
 * possible. */
int tf_has_quads(struct tf_operand a, struct tf_operand b);

/* What one product of their integers stands for. */
float tf_quad_unit(struct tf_operand a, struct tf_operand b);

/* Packed words of so many k. */
size_t tf_quad_words(size_t depth);

/* tf_pack_a and tf_pack_b as quads; `lines` has room for those of A, in rows of `width`,
 * or for a panel of B. */
void tf_pack_quads_a(struct tf_operand a, size_t rows, size_t depth, size_t width,
                     float *lines, float *out, size_t lda);
void tf_pack_quads_b(struct tf_operand b, size_t columns, size_t depth, size_t width,
                     float *lines, float *out);

#endif
