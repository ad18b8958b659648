/* Compute tiles of C as a tensor core does. */
#ifndef TF32DTYPE_TENSOR_CORE_MMA_MATMUL_H
#define TF32DTYPE_TENSOR_CORE_MMA_MATMUL_H

#include "matmul/tile_path.h"
#include "tensor_core/mma_model.h"
#include "tensor_core/rounded_model.h"

/* A matrix unit. To use it, pass &device.precision to tf_matmul, with precision.path set to
 * &tf_mma_path. */
struct tf_device {
    struct tf_precision precision; /* first member: leads to the others */
    struct tf_mma_model model;
    struct tf_rounded_model rounded; /* replaces `model` if its depth is not 0 */
    int scales_inside; /* exponent of the scale between orders of a split, or 0 */
};

/* Computes tiles with a struct tf_device. Split operands have one chain from zero for each
 * 16 k, added in the order of k; whole numbers have one chain of MMA groups over all k. */
extern const struct tf_tile_path tf_mma_path;

#endif
