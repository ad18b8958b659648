/* Tiles of C as a tensor core would compute them. */
#ifndef TF32DTYPE_TENSOR_H
#define TF32DTYPE_TENSOR_H

#include "matmul/macro_kernel.h"

/* How the elements of a product are chained on a device; the terms are those of its
 * parts. `swapped`: A and B have changed places. */
struct tf_mma_plan tf_plan_of(const struct tf_precision *precision,
                                 const struct tf_split_schedule *terms, int swapped);

/* The accumulators of a tile after all of k, in work->sums. */
void tf_mma_tile(struct tf_workspace *work, const struct tf_tile *tile,
                           ptrdiff_t k);

/* Up to TF_CHUNK accumulators to where they belong, as tf_store_sums does; a NaN is the
 * device's. */
int tf_store_accumulators(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                          unsigned *flags);

#endif
