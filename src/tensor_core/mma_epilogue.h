/* What happens to a tensor core's accumulators before and when they are stored. */
#ifndef TF32DTYPE_TENSOR_CORE_MMA_EPILOGUE_H
#define TF32DTYPE_TENSOR_CORE_MMA_EPILOGUE_H

#include <stddef.h>

/* Turns every NaN of n accumulators into the device's, of float16 or of float32. */
void tf_mma_canonical_nans(const float *x, float *out, size_t n, int half);

/* As tf_store_sums does, but a NaN is the device's. */
int tf_mma_store(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                 unsigned *flags);

#endif
