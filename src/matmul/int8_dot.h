/* Products of formats whose numbers are small integers times a power of two. They are
 * exact: see kernels/int8_dot.c. */
#ifndef TF32DTYPE_MATMUL_INT8_DOT_H
#define TF32DTYPE_MATMUL_INT8_DOT_H

#include "matmul/operand.h"

/* Returns whether two operands can be packed as quads where they are in memory; then they
 * are. */
int tf_has_quads(struct tf_operand a, struct tf_operand b);

/* Returns the value of a product of 1 and 1, as integers of the two formats. */
float tf_quad_unit(struct tf_operand a, struct tf_operand b);

/* Returns the number of packed words of `depth` k, with a first word for each chain. */
size_t tf_quad_words(size_t depth);

/* Pack operands as tf_pack_a and tf_pack_b do, as quads. `lines` has room for the words of
 * A, in rows of `width`, or for a panel of B. */
void tf_pack_quads_a(struct tf_operand a, size_t rows, size_t depth, size_t width,
                     float *lines, float *out, size_t lda);
void tf_pack_quads_b(struct tf_operand b, size_t columns, size_t depth, size_t width,
                     float *lines, float *out);

#endif
