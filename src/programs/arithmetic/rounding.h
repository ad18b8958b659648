/* Numbers of float32 or float64 rounded to a format, and kept as what they were. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_ROUNDING_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_ROUNDING_H

#include <stddef.h>

/* Numbers at a time: what a loop needs for them lies on the stack. */
enum { TF_ROUNDED_AT_ONCE = 512 };

/* Rounds n numbers, aligned and one after the other, once, to nearest, ties to even, as
 * the format has overflow. `format` is one of enum tf_number_kind: of ours, TF_FLOAT16 or
 * TF_FLOAT32. `type` is 'f' or 'd'; `out` may be `in`. Returns what that raised. */
unsigned tf_round_numbers(int format, char type, const void *in, void *out, size_t n);

#endif
