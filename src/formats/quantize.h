/* Explicit rounding of any kind of number to a format, float16 or float32, in any mode. */
#ifndef TF32DTYPE_FORMATS_QUANTIZE_H
#define TF32DTYPE_FORMATS_QUANTIZE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/codec.h"
#include "formats/number_kinds.h"

/* Rounds n contiguous items of a kind (or of a format, by index) to n contiguous items of
 * a format, float16 or float32. `draws` are the random numbers of stochastic rounding, or
 * NULL. Returns the exceptions raised. */
unsigned tf_quantize(int from, int to, const char *in, char *out, ptrdiff_t n,
                     enum tf_rounding rounding, enum tf_overflow overflow,
                     const uint64_t *draws);

/* Returns the code of significand * 2^exponent with a sign, and a little more if
 * `sticky`, rounded once to nearest. It serves numbers that have no C type. */
uint32_t tf_code_from_integer(struct tf_format f, int negative, uint64_t significand,
                              int exponent, int sticky, unsigned *flags);

#endif
