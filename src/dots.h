/* Many products of two short vectors. */
#ifndef TF32DTYPE_DOTS_H
#define TF32DTYPE_DOTS_H

#include "matmul.h"
#include "pack.h"

/* Whether `count` rows of a and columns of b, of k numbers each, are worth it. */
int tf_are_short_dots(struct tf_matrix a, struct tf_matrix b, ptrdiff_t k,
                      ptrdiff_t count);

/* Their products, with the bits and flags of tf_matmul. -1 if the call is stopped. */
int tf_short_dots(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                  ptrdiff_t k, ptrdiff_t count);

/* The chains of TF_DOT_CHAINS lines of a and of b, of up to TF_DEPTH numbers, where
 * they lie in memory. 0 where that has no kernel. The buffer has room for all numbers. */
int tf_dot_lines(struct tf_lines a, struct tf_lines b, size_t depth, uint16_t *buffer,
                 float *sums);

/* The same of lines of a and the same numbers for each, with zeros behind up to a
 * multiple of TF_DOT_WHOLE. */
int tf_dot_vector(struct tf_lines a, const float *numbers, size_t depth,
                  uint16_t *buffer, float *sums);

#endif
