/* Comparisons, the greater or the lesser of two, and predicates on strided arrays. */
#ifndef TF32DTYPE_UFUNCS_COMPARE_H
#define TF32DTYPE_UFUNCS_COMPARE_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* As tf_binary() for maximum, minimum, fmax and fmin, which raise nothing. */
void tf_extreme(int format, enum tf_binary_op op, char *const data[3],
                const ptrdiff_t strides[3], ptrdiff_t n);

/* x, low, high -> minimum(maximum(x, low), high). */
void tf_clip(int format, char *const data[4], const ptrdiff_t strides[4], ptrdiff_t n);

/* Changes of the sign bit, of NaN too. */
void tf_copysign_items(int format, char *const data[3], const ptrdiff_t strides[3],
                       ptrdiff_t n);
/* Of bfloat16 or tf32. */
void tf_change_sign(int format, enum tf_sign_op op, char *const data[2],
                    const ptrdiff_t strides[2], ptrdiff_t n);

/* The result is NumPy's bool. */
void tf_compare(int format, enum tf_compare_op op, char *const data[3],
                const ptrdiff_t strides[3], ptrdiff_t n);
/* The same of two kinds: formats, or TF_FLOAT32. */
void tf_compare_kinds(int a_kind, int b_kind, enum tf_compare_op op,
                      char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n);
/* x, y, relative and absolute tolerance (float64), equal_nan (NumPy's bool), these three
 * the same for all n -> NumPy's bool: np.isclose() of numbers and tolerances of which
 * none leaves the normal range of float64. Raises nothing. */
void tf_is_close(int format, char *const data[6], const ptrdiff_t strides[6],
                 ptrdiff_t n);
void tf_predicate(int format, enum tf_predicate_op op, char *const data[2],
                  const ptrdiff_t strides[2], ptrdiff_t n);

#endif
