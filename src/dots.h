/* Many products of two short vectors. */
#ifndef TF32DTYPE_DOTS_H
#define TF32DTYPE_DOTS_H

#include "matmul.h"

/* Whether `count` rows of a and columns of b, of k numbers each, are worth it. */
int tf_are_short_dots(struct tf_matrix a, struct tf_matrix b, ptrdiff_t k,
                      ptrdiff_t count);

/* Their products, with the bits and flags of tf_matmul. -1 if the call is stopped. */
int tf_short_dots(struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                  ptrdiff_t k, ptrdiff_t count);

#endif
