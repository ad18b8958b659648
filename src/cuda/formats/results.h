/* float64 numbers as results of a kind: one rounding, and the canonical NaN. */
#ifndef TF32DTYPE_CUDA_FORMATS_RESULTS_H
#define TF32DTYPE_CUDA_FORMATS_RESULTS_H

#include "cuda/formats/stored.h"

/* Returns the item of a format, float32 or float64. */
template <int kind> __forceinline__ tf_word<kind> tf_result(double x)
{
    const int nan = x != x;
    if constexpr (kind == TF_FLOAT64) {
        return nan ? UINT64_C(0x7FF8) << 48 : (uint64_t)__double_as_longlong(x);
    } else if constexpr (kind == TF_FLOAT32) {
        return nan ? TF_QUIET_NAN_BITS : tf_bits_of((float)x);
    } else {
        const struct tf_format f = tf_row_of<kind>();
        const uint32_t item = nan ? tf_nan_code(f) << f.shift : item_of_double(f, x);
        return (tf_word<kind>)item;
    }
}

#endif
