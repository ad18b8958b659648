#include "tensor_core/elements.h"

#include "formats/float_bits.h"
#include "runtime/asserts.h"
#include "tensor_core/kernels.h"

float tf_rounded_element(const struct tf_rounded_model *model, const float *a,
                         const float *b, size_t step, size_t count, float c)
{
    uint32_t x[TF_MMA_DEPTH], y[TF_MMA_DEPTH];
    TF_ASSERT(count <= TF_MMA_DEPTH);
    for (size_t k = 0; k < count; k++) {
        x[k] = tf_bits_of(a[k]);
        y[k] = tf_bits_of(b[k * step]);
    }
    return tf_float_of(
        tf_rounded_accumulate(model, x, 1, y, 1, (int64_t)count, tf_bits_of(c), 0));
}

float tf_scaled_element(const struct tf_scaled_model *model, const uint32_t *a,
                        const uint8_t *scales_a, const uint32_t *b,
                        const uint8_t *scales_b, size_t count, float c)
{
    return tf_float_of(tf_scaled_instruction(model, a, 1, scales_a, b, 1, scales_b,
                                             (int32_t)count, tf_bits_of(c), 0));
}
