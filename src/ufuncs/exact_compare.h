/* Comparisons and bounds of a format's numbers with arbitrary ones, as if these were exact.
 *
 * The other operand holds float32 numbers that were rounded to odd (IEEE 754 has no such
 * mode; see Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). A
 * format's numbers have at most 11 significant bits, and float32's range is wider at both
 * ends. A number rounded to odd is therefore on the same side of all of them as the exact
 * one, and both round alike. */
#ifndef TF32DTYPE_UFUNCS_EXACT_COMPARE_H
#define TF32DTYPE_UFUNCS_EXACT_COMPARE_H

#include <stddef.h>

#include "ufuncs/kernels.h"

/* Rounds x to odd. If `more`, the exact magnitude is larger by less than an ulp of x. */
float tf_exact_from_double(double x, int more);

/* As tf_compare(), but the operand of index `exact`, 0 or 1, holds exact numbers. */
void tf_exact_compare(int format, enum tf_compare_op op, int exact, char *const data[3],
                      const ptrdiff_t strides[3], ptrdiff_t n);

/* As tf_binary() for maximum, minimum, fmax and fmin. Exact numbers within the format's
 * range are rounded to the format first. A number out of range is compared exactly, and
 * overflows if it is the result. */
void tf_exact_extreme(int format, enum tf_binary_op op, int exact, char *const data[3],
                      const ptrdiff_t strides[3], ptrdiff_t n);

/* As the operation TF_NEXTAFTER, toward exact numbers. Toward a number out of range, the
 * largest or smallest number comes first, and then the result of an overflow. */
void tf_exact_nextafter(int format, char *const data[3], const ptrdiff_t strides[3],
                        ptrdiff_t n);

/* As tf_clip(), but low and high hold exact numbers, and if x_is_exact, x does, too. */
void tf_exact_clip(int format, int x_is_exact, char *const data[4],
                   const ptrdiff_t strides[4], ptrdiff_t n);

#endif
