/* What tf32dtype/blocks/quantization.py finds for a whole tensor before its blocks are
 * quantized: the format of scales, and the float32 that multiplies all of them. */
#ifndef EXPLORER_TENSOR_SCALE_H
#define EXPLORER_TENSOR_SCALE_H

#include "blocks/block_formats.h"

struct tensor_scale {
    int format; /* of tf_scales */
    float scale;
};

/* With scales of a given format; `greatest` is the tensor's greatest magnitude and
 * `most` the element's. */
float tensor_scale_of(int format, float most, float greatest);

/* With the finest that has a normal scale for the least block, whose greatest magnitude
 * is given too. */
struct tensor_scale finest_tensor_scale(float most, float greatest, float least);

#endif
