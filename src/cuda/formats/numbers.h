/* Elements of a format as numbers, on a GPU. The facts are compile-time constants
 * where kernels are compiled for a format, so that what it does not need disappears.
 *
 * An item is what lies in memory: a code shifted left by f.shift.
 */
#ifndef TF32DTYPE_CUDA_FORMATS_NUMBERS_H
#define TF32DTYPE_CUDA_FORMATS_NUMBERS_H

#include "cuda/common/common.h"
#include "formats/fast_codec.h"

/* The number that an item is; all of them are exact in float32. */
__forceinline__ float number_of(struct tf_format f, uint32_t item)
{
    return tf_float_of(tf_single_of_item(f, item));
}

/* The item nearest to a number, ties to even, as the CPU's casts have it: NaN keeps its
 * sign. */
__forceinline__ uint32_t item_of_single(struct tf_format f, float x)
{
    return tf_code_of_single(f, tf_bits_of(x)) << f.shift;
}

/* float32 bits of a double rounded to odd, from which the formats, which have 11
 * significant bits at most, are rounded as if from the double. */
__forceinline__ uint32_t tf_narrowed(double x)
{
    const float cut = __double2float_rz(x);
    const uint32_t sign = (uint32_t)(__double_as_longlong(x) >> 63) << 31;
    const uint32_t inexact = (double)cut != x;
    /* A conversion's NaN has no sign. */
    return (tf_bits_of(cut) & TF_MAGNITUDE_BITS) | inexact | sign;
}

__forceinline__ uint32_t item_of_double(struct tf_format f, double x)
{
    return tf_code_of_single(f, tf_narrowed(x)) << f.shift;
}

#endif
