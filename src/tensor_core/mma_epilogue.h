/* Give a tensor core's accumulators the device's NaN, and store them. */
#ifndef TF32DTYPE_TENSOR_CORE_MMA_EPILOGUE_H
#define TF32DTYPE_TENSOR_CORE_MMA_EPILOGUE_H

#include <stddef.h>

/* Copies n accumulators, with the device's NaN (float16 or float32) for every NaN. */
void tf_mma_canonical_nans(const float *x, float *out, size_t n, int half);

/* Stores n sums as tf_store_sums does, but with the device's NaN. */
int tf_mma_store(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                 unsigned *flags);

#endif
