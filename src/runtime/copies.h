/* Copies of items, byte for byte, between places any distance apart. */
#ifndef TF32DTYPE_RUNTIME_COPIES_H
#define TF32DTYPE_RUNTIME_COPIES_H

#include <stddef.h>

/* n items of any size, aligned or not, one after the other: a copy into places that
 * overlap is what such a loop makes of it. */
void tf_copy(size_t itemsize, char *out, ptrdiff_t out_stride, const char *in,
             ptrdiff_t in_stride, size_t n);

/* The bytes of each of n items, of 1, 2 or 4 bytes, in the other order. */
void tf_swap_bytes(size_t itemsize, char *items, ptrdiff_t stride, size_t n);

#endif
