/* Comparisons and bounds of a format's numbers with any others, as if these were exact.
 *
 * The other operand holds float32 numbers that were rounded to odd (IEEE 754 has no such
 * mode; see Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). A
 * format's numbers have at most 11 significant bits, and float32 reaches further at both
 * ends: so such a number lies on the same side of all of them as the exact one, and
 * rounding it to the format gives what rounding the exact one would have given. */
#ifndef TF32DTYPE_UFUNCS_EXACT_COMPARE_H
#define TF32DTYPE_UFUNCS_EXACT_COMPARE_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* To odd; `more` if the exact number is larger in magnitude by less than an ulp of x. */
float tf_exact_from_double(double x, int more);

/* As tf_compare(), but the operand of index `exact`, 0 or 1, holds exact numbers. */
void tf_exact_compare(int format, enum tf_compare_op op, int exact, char *const data[3],
                      const ptrdiff_t strides[3], ptrdiff_t n);

/* As tf_binary() for maximum, minimum, fmax and fmin. Exact numbers within the format's
 * range are rounded to it first. One beyond it is compared as it is, and overflows where
 * it is the result. */
void tf_exact_extreme(int format, enum tf_binary_op op, int exact, char *const data[3],
                      const ptrdiff_t strides[3], ptrdiff_t n);

/* As the operation TF_NEXTAFTER toward exact numbers. One beyond the range is the way to
 * the greatest or least number, and what an overflow is after that. */
void tf_exact_nextafter(int format, char *const data[3], const ptrdiff_t strides[3],
                        ptrdiff_t n);

/* As tf_clip(): low and high hold exact numbers, and so does x if x_is_exact. */
void tf_exact_clip(int format, int x_is_exact, char *const data[4],
                   const ptrdiff_t strides[4], ptrdiff_t n);

#endif
