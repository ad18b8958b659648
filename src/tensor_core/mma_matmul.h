/* Tiles of C as a tensor core would compute them. */
#ifndef TF32DTYPE_TENSOR_CORE_MMA_MATMUL_H
#define TF32DTYPE_TENSOR_CORE_MMA_MATMUL_H

#include "matmul/tile_path.h"
#include "tensor_core/mma_model.h"
#include "tensor_core/rounded_model.h"

/* A matrix unit that computes a product: by tf_matmul(&device.precision, ...), where
 * precision.path is &tf_mma_path. */
struct tf_device {
    struct tf_precision precision; /* the first member: tf_mma_path finds the others by it */
    struct tf_mma_model model;
    struct tf_rounded_model rounded; /* instead, if its depth is not 0 */
    int scales_inside; /* exponent of the scale between split orders, or 0 */
};

/* Of parts each chain from zero of 16 k is added in k order; of whole numbers the chain
 * of MMA groups goes over all of k. */
extern const struct tf_tile_path tf_mma_path;

#endif
