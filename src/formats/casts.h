/* Casts between any two kinds of numbers, at least one of them a format of this project. */
#ifndef TF32DTYPE_FORMATS_CASTS_H
#define TF32DTYPE_FORMATS_CASTS_H

#include <stddef.h>

#include "formats/number_kinds.h"
#include "formats/kernels.h"

struct tf_cast {
    int from, to; /* enum tf_number_kind or a format's index */
    int from_complex, to_complex;
};

/* Casts n items, each with one rounding to nearest, ties to even. Numbers out of an
 * integer's range become its minimum (0 if unsigned) and raise invalid. A cast from
 * complex to real drops the imaginary part; a cast from real to complex sets it to +0. */
void tf_cast_items(struct tf_cast cast, const char *in, ptrdiff_t in_stride,
                   char *out, ptrdiff_t out_stride, ptrdiff_t n);

/* Returns 1 if casts from a kind to another, one of them a format, never raise anything. */
int tf_cast_is_quiet(int from, int to);

size_t tf_kind_size(int kind);

/* Returns the exceptions of rounding n numbers to a format's items, which gave these hints.
 * If underflow is `known`, it may be missing. */
unsigned tf_rounding_flags(int format, struct tf_flag_hints hints, const float *in,
                           const void *items, size_t n, unsigned known);

#endif
