/* Copies items byte for byte between arrays of any strides. */
#ifndef TF32DTYPE_RUNTIME_COPIES_H
#define TF32DTYPE_RUNTIME_COPIES_H

#include <stddef.h>

/* Copies n items of any size, aligned or not. Output items that overlap each other get the
 * bytes that a loop over the items, one after the other, leaves. */
void tf_copy(size_t itemsize, char *out, ptrdiff_t out_stride, const char *in,
             ptrdiff_t in_stride, size_t n);

/* Reverses the bytes of each of n items of 1, 2 or 4 bytes, in place. */
void tf_swap_bytes(size_t itemsize, char *items, ptrdiff_t stride, size_t n);

#endif
