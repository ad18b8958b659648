/* Compute single elements, which the fast loops leave to the integer models. Compiled once,
 * not for each instruction set. */
#ifndef TF32DTYPE_TENSOR_CORE_ELEMENTS_H
#define TF32DTYPE_TENSOR_CORE_ELEMENTS_H

#include <stddef.h>

#include "tensor_core/rounded_model.h"
#include "tensor_core/scaled_mma_model.h"

/* Returns c + the products of `count` elements, at most TF_MMA_DEPTH. The elements of b are
 * `step` apart. */
float tf_rounded_element(const struct tf_rounded_model *model, const float *a,
                         const float *b, size_t step, size_t count, float c);

/* Returns c + the products of an instruction's `count` elements; each block has a scale. */
float tf_scaled_element(const struct tf_scaled_model *model, const uint32_t *a,
                        const uint8_t *scales_a, const uint32_t *b,
                        const uint8_t *scales_b, size_t count, float c);

#endif
