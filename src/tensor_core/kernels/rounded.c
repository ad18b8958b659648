/* Chains of units that round in other ways than aligned sums do: what
 * tensor_core/rounded_model.h does, for many elements of C. */
#include "runtime/kernels/common.h"
#include "tensor_core/kernels.h"

static void chains(const struct tf_rounded_model *model, const float *a, size_t lda,
                   const float *b, size_t columns, size_t depth, size_t rows, float *c,
                   size_t ldc)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) {
            c[i * ldc + j] = tf_float_of(tf_rounded_accumulate(
                model, (const uint32_t *)(const void *)(a + i * lda), 1,
                (const uint32_t *)(const void *)(b + j), (int64_t)columns, (int64_t)depth,
                tf_bits_of(c[i * ldc + j])));
        }
    }
}

const struct tf_rounded_kernels TF_NAME(tf_rounded_kernels) = {
    .chains = chains,
};
