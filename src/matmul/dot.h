/* Products of vectors: chains along lines where they are in memory. */
#ifndef TF32DTYPE_MATMUL_DOT_H
#define TF32DTYPE_MATMUL_DOT_H

#include "matmul/product.h"

/* Computes a stack of products of a row and a column, as TF_SHORT_DOTS. Returns -1 if the
 * call is stopped, else 0. */
int tf_short_dots(const struct tf_plan_of_product *plan);

/* Memory where items that do not adjoin are gathered. */
struct tf_dot_room {
    _Alignas(64) char items[2][TF_DOT_LINES * TF_KC * sizeof(float)];
};

static inline struct tf_dot_room *tf_dot_room(struct tf_workspace *work)
{
    _Static_assert(sizeof(struct tf_dot_room) <= sizeof work->lines, "it fits");
    return (struct tf_dot_room *)(void *)work->lines;
}

/* Returns the kernel that multiplies lines of two operands where they are, or NULL. */
tf_dot_fn *tf_dot_kernel(struct tf_operand a, struct tf_operand b);

/* Returns whether this kernel multiplies integers, which takes a fraction of the time. */
int tf_have_integers(struct tf_operand a, struct tf_operand b);

/* Returns the kernel that multiplies lines of an operand by float32 numbers, or NULL. */
tf_dot_fn *tf_dot_kernel_of_lines(struct tf_operand x);

/* Computes, by such a kernel, the chains of up to TF_DOT_LINES lines of a and of b, of up
 * to TF_KC numbers each. `sums` has room for TF_DOT_LINES. */
void tf_dot_of_operands(tf_dot_fn *kernel, struct tf_operand a, struct tf_operand b,
                        size_t count, size_t depth, struct tf_dot_room *room,
                        float *sums);

/* Computes the chains of lines of a, each times the same numbers. -0 follows the numbers up
 * to a multiple of TF_DOT_WHOLE. */
void tf_dot_vector(tf_dot_fn *kernel, struct tf_operand a, const float *numbers,
                   size_t count, size_t depth, struct tf_dot_room *room, float *sums);

/* Computes the chains of a line of a and a line of b, of up to TF_DOT_LONG numbers. A chain
 * has TF_KC numbers; the last one may be shorter. Returns the number of chains. */
enum { TF_DOT_LONG = TF_DOT_LINES * TF_KC };
size_t tf_dot_depths(tf_dot_fn *kernel, struct tf_operand a, struct tf_operand b,
                     size_t n, struct tf_dot_room *room, float *sums);

#endif
