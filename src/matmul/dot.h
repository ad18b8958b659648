/* Products of vectors: chains along lines where they lie in memory. */
#ifndef TF32DTYPE_MATMUL_DOT_H
#define TF32DTYPE_MATMUL_DOT_H

#include "matmul/matrix.h"
#include "matmul/operand.h"
#include "matmul/workspace.h"

/* Whether `count` rows of a and columns of b, of k numbers each, are worth it. */
int tf_are_short_dots(struct tf_matrix a, struct tf_matrix b, ptrdiff_t k,
                      ptrdiff_t count);

/* Their products, with the bits and flags of tf_matmul. -1 if the call is stopped. */
int tf_short_dots(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                  ptrdiff_t k, ptrdiff_t count);

/* Where items that do not adjoin are gathered. */
struct tf_dot_room {
    _Alignas(64) char items[2][TF_DOT_LINES * TF_KC * sizeof(float)];
};

static inline struct tf_dot_room *tf_dot_room(struct tf_workspace *work)
{
    _Static_assert(sizeof(struct tf_dot_room) <= sizeof work->lines, "it fits");
    return (struct tf_dot_room *)(void *)work->lines;
}

/* The chains of up to TF_DOT_LINES lines of a and of b, of up to TF_KC numbers each.
 * 0 where there is no kernel. Room for TF_DOT_LINES sums. */
int tf_dot_of_operands(struct tf_operand a, struct tf_operand b, size_t count,
                       size_t depth, struct tf_dot_room *room, float *sums);

/* Whether that takes them for integers, at a fraction of the time. */
int tf_have_integers(struct tf_operand a, struct tf_operand b);

/* The same of lines of a and the same numbers for each, with -0 behind up to a multiple
 * of TF_DOT_WHOLE. */
int tf_dot_vector(struct tf_operand a, const float *numbers, size_t count, size_t depth,
                  struct tf_dot_room *room, float *sums);

/* The chains of one line of a and one of b, each over TF_KC of up to TF_DOT_LONG
 * numbers, or of what is left for the last one. How many, or 0 where there is no
 * kernel. */
enum { TF_DOT_LONG = TF_DOT_LINES * TF_KC };
size_t tf_dot_depths(struct tf_operand a, struct tf_operand b, size_t n,
                     struct tf_dot_room *room, float *sums);

#endif
