/* Finds the format of scales and the tensor scale, a float32 that multiplies all scales, as
 * tf32dtype/blocks/quantization.py does before it quantizes blocks. */
#ifndef EXPLORER_TENSOR_SCALE_H
#define EXPLORER_TENSOR_SCALE_H

#include "blocks/block_formats.h"

struct tensor_scale {
    int format; /* index in tf_scales */
    float scale;
};

/* Returns the tensor scale for a given format of scales. The second argument, `most`, is
 * the largest element, and the third is the largest magnitude of the tensor. */
float tensor_scale_of(int format, float most, float greatest);

/* Returns the finest format with a normal scale for every block, or float8_e8m0fnu, with
 * its tensor scale. `least` is the smallest of the largest magnitudes of the blocks that
 * are not zero. */
struct tensor_scale finest_tensor_scale(float most, float greatest, float least);

#endif
