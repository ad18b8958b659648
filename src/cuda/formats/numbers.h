/* Elements of a format as numbers, on a GPU. In kernels that are compiled for one format,
 * its facts are constants, so that the compiler drops the steps that it does not need.
 *
 * An item is an element in memory: a code shifted left by f.shift.
 */
#ifndef TF32DTYPE_CUDA_FORMATS_NUMBERS_H
#define TF32DTYPE_CUDA_FORMATS_NUMBERS_H

#include "cuda/common/common.h"
#include "formats/fast_codec.h"

/* Returns the number in an item, which is exact in float32. */
__forceinline__ float number_of(struct tf_format f, uint32_t item)
{
    return tf_float_of(tf_single_of_item(f, item));
}

/* Returns the item nearest to a number, ties to even. NaN keeps its sign, as on the CPU. */
__forceinline__ uint32_t item_of_single(struct tf_format f, float x)
{
    return tf_code_of_single(f, tf_bits_of(x)) << f.shift;
}

/* Returns float32 bits of a double, rounded to odd. Rounding them to a format, which has
 * at most 11 significant bits, is as rounding the double. */
__forceinline__ uint32_t tf_narrowed(double x)
{
    const float cut = __double2float_rz(x);
    const uint32_t sign = (uint32_t)(__double_as_longlong(x) >> 63) << 31;
    const uint32_t inexact = (double)cut != x;
    /* The conversion loses the sign of NaN. */
    return (tf_bits_of(cut) & TF_MAGNITUDE_BITS) | inexact | sign;
}

__forceinline__ uint32_t item_of_double(struct tf_format f, double x)
{
    return tf_code_of_single(f, tf_narrowed(x)) << f.shift;
}

#endif
