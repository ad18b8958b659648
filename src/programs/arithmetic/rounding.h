/* Rounds float32 or float64 values to a format, and keeps them in their own type. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_ROUNDING_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_ROUNDING_H

#include <stddef.h>

/* The number of values per call, small enough for buffers on the stack. */
enum { TF_ROUNDED_AT_ONCE = 512 };

/* Rounds n aligned, contiguous values (n <= TF_ROUNDED_AT_ONCE) once, to nearest with ties
 * to even; overflow becomes the format's own result. `format` is an enum tf_number_kind:
 * one of our formats, TF_FLOAT16 or TF_FLOAT32. `type` is 'f' or 'd'; `out` may be `in`.
 * Returns the floating-point flags that this raises. */
unsigned tf_round_numbers(int format, char type, const void *in, void *out, size_t n);

#endif
