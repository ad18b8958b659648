/* Comparisons, the larger or the smaller of two, and predicates on strided arrays. */
#ifndef TF32DTYPE_UFUNCS_COMPARE_H
#define TF32DTYPE_UFUNCS_COMPARE_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* As tf_binary() for maximum, minimum, fmax and fmin, which raise nothing. */
void tf_extreme(int format, enum tf_binary_op op, char *const data[3],
                const ptrdiff_t strides[3], ptrdiff_t n);

/* Writes minimum(maximum(x, low), high); data has x, low, high and the result. */
void tf_clip(int format, char *const data[4], const ptrdiff_t strides[4], ptrdiff_t n);

/* Writes the first operand with the sign bit of the second, also for NaN. */
void tf_copysign_items(int format, char *const data[3], const ptrdiff_t strides[3],
                       ptrdiff_t n);
/* Changes the sign bit of items, also of NaN, but not of an item that is only a sign bit
 * and NaN. The format must have a sign. */
void tf_change_sign(int format, enum tf_sign_op op, char *const data[2],
                    const ptrdiff_t strides[2], ptrdiff_t n);

/* a op b equals b tf_mirrored[op] a. */
extern const enum tf_compare_op tf_mirrored[TF_COMPARE_COUNT];

/* Compares the items of two operands. The result is NumPy's bool. */
void tf_compare(int format, enum tf_compare_op op, char *const data[3],
                const ptrdiff_t strides[3], ptrdiff_t n);
/* As tf_compare, for operands of two kinds: formats, or TF_FLOAT32. */
void tf_compare_kinds(int a_kind, int b_kind, enum tf_compare_op op,
                      char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n);
/* Writes np.isclose() as NumPy's bools and raises nothing. data has x, y, the relative and
 * the absolute tolerance (float64) and equal_nan (NumPy's bool), these three the same for
 * all n, and the result. No number or tolerance may leave float64's normal range. */
void tf_is_close(int format, char *const data[6], const ptrdiff_t strides[6],
                 ptrdiff_t n);
void tf_predicate(int format, enum tf_predicate_op op, char *const data[2],
                  const ptrdiff_t strides[2], ptrdiff_t n);

#endif
