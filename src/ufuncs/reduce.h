/* Sums and products: reductions as if exact, rounded once. */
#ifndef TF32DTYPE_UFUNCS_REDUCE_H
#define TF32DTYPE_UFUNCS_REDUCE_H

#include <stddef.h>

#include "ufuncs/kernels.h"

enum tf_reduction { TF_SUM, TF_PROD };

/* The partial results of one ufunc call.
 *
 * NumPy reduces an outer axis by calling the loop once a row, with the running
 * result in the output array, which has too few bits to hold it. So each
 * output element has a slot here, with a float64 sum (or a product with an
 * exponent beside it), found by the element's distance from the first one
 * seen, in pages made when touched. */
struct tf_partials;

/* `is_reduction`: NumPy asked for the initial value, so this is no in-place
 * operation, which would otherwise look the same at first. */
struct tf_partials *tf_partials_new(int is_reduction);
void tf_partials_free(struct tf_partials *partials);

/* float32 in place of a format's index: for sums left unrounded. */
enum { TF_REDUCE_FLOAT32 = -1 };

/* e8m0 has no zero: where NumPy asks for what a sum begins with it is given NaN, which
 * counts as nothing then, and stays where nothing is added. */
int tf_sum_begins_with_nan(int format);

/* add or multiply, whatever NumPy means by the call: elementwise, a step of a
 * reduction, or an accumulation. Returns -1 if memory is short. */
int tf_reduce(int format, enum tf_reduction op, struct tf_partials *partials,
              char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n);

/* Sums over the middle axis of an array of three, C-contiguous: with the bits of
 * tf_reduce, row after row, but rounded once. What that raises is or-ed into *flags. 0 if
 * tf_reduce has to do it, since infinities may have made NaN. */
int tf_sum_rows(int format, const char *in, char *out, ptrdiff_t outer, ptrdiff_t rows,
                ptrdiff_t columns, unsigned *flags);

#endif
