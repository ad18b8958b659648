/* Binary operations, comparisons and predicates on strided arrays. */
#ifndef TF32DTYPE_BINARY_H
#define TF32DTYPE_BINARY_H

#include <stddef.h>

#include "loops/isa.h"

/* data and strides: two operands and the result, all of one format. A result
 * that is the next item's first operand (reduce, accumulate) is respected. */
void tf_binary(int format, enum tf_binary_op op, char *const data[3],
               const ptrdiff_t strides[3], ptrdiff_t n);

/* The result is NumPy's bool. */
void tf_compare(int format, enum tf_compare_op op, char *const data[3],
                const ptrdiff_t strides[3], ptrdiff_t n);
/* The same of two kinds: formats, or TF_FLOAT32. */
void tf_compare_kinds(int a_kind, int b_kind, enum tf_compare_op op,
                      char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n);
void tf_predicate(int format, enum tf_predicate_op op, char *const data[2],
                  const ptrdiff_t strides[2], ptrdiff_t n);

/* Two results: floor_divide and remainder. */
void tf_divmod(int format, char *const data[4], const ptrdiff_t strides[4],
               ptrdiff_t n);

/* x, low, high -> minimum(maximum(x, low), high). */
void tf_clip(int format, char *const data[4], const ptrdiff_t strides[4], ptrdiff_t n);

#endif
