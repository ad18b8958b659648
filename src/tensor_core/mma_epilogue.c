/* Copy finished accumulators, which are already rounded, to C. */
#include "tensor_core/mma_epilogue.h"

#include <string.h>

#include "formats/casts.h"
#include "matmul/epilogue.h"
#include "runtime/strided.h"
#include "tensor_core/mma_model.h"

void tf_mma_canonical_nans(const float *x, float *out, size_t n, int half)
{
    const uint32_t nan = tf_mma_nan(half);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits = tf_mma_is_nan(bits) ? nan : bits;
        memcpy(out + i, &bits, sizeof bits);
    }
}

int tf_mma_store(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                 unsigned *flags)
{
    TF_BUFFER(buffer);
    const size_t itemsize = tf_kind_size(kind);
    if (kind != TF_FLOAT32 && kind != TF_FLOAT16) {
        return tf_store_sums(kind, sums, out, stride, n, flags);
    }
    void *items = tf_target(out, stride, itemsize, buffer);
    const struct tf_conversions *conversions =
        &tf_isa->formats->conversions[kind == TF_FLOAT16 ? TF_FLOAT16 : tf_bfloat16_index];
    const int beyond = flags && conversions->suspect(sums, n).beyond;
    if (kind == TF_FLOAT32) {
        tf_mma_canonical_nans(sums, items, n, 0);
    } else { /* exact, but the payload of a NaN is lost */
        uint16_t *halves = items;
        conversions->from_float32(sums, items, n);
        for (size_t i = 0; i < n; i++) {
            const int is_nan = (halves[i] & TF_F16_MAGNITUDE_BITS) > TF_F16_INF_BITS;
            halves[i] = is_nan ? TF_F16_MAGNITUDE_BITS : halves[i]; /* all ones */
        }
    }
    tf_scatter(items, out, stride, itemsize, n);
    return beyond;
}
