/* modf, frexp and ldexp on strided arrays. */
#ifndef TF32DTYPE_PARTS_H
#define TF32DTYPE_PARTS_H

#include "formats/scalar_ops.h"

/* Returns what the results raise. */
unsigned tf_modf(int format, char *const data[3], const ptrdiff_t strides[3],
                 ptrdiff_t n);
unsigned tf_frexp(int format, char *const data[3], const ptrdiff_t strides[3],
                  ptrdiff_t n);
/* Exponents are int32 or int64. */
unsigned tf_ldexp(int format, size_t exponent_size, char *const data[3],
                  const ptrdiff_t strides[3], ptrdiff_t n);

#endif
