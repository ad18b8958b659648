/* Elements of a format as numbers, on a GPU. The facts are compile-time constants where
 * kernels are compiled for a format, so that what it does not need disappears.
 *
 * An item is what lies in memory: a code shifted left by f.shift.
 */
#ifndef TF32DTYPE_CUDA_NUMBERS_H
#define TF32DTYPE_CUDA_NUMBERS_H

#include "common.h"
#include "codec.h"

/* The number that an item is; all of them are exact in float32. */
inline float number_of(struct tf_format f, uint32_t item)
{
    const uint32_t code = item >> f.shift & (tf_magnitude_mask(f) | tf_sign_mask(f));
    return (float)__longlong_as_double((int64_t)tf_double_bits(tf_decode(f, code)));
}

/* The item nearest to a number, ties to even, as the CPU's casts have it: NaN keeps its
 * sign. */
inline uint32_t item_of_double(struct tf_format f, double x)
{
    unsigned flags = 0;
    const uint64_t bits = (uint64_t)__double_as_longlong(x);
    return tf_encode(f, tf_value_from_double_bits(bits), TF_TIES_TO_EVEN,
                     TF_OVERFLOW_IEEE, 0, &flags)
           << f.shift;
}

inline uint32_t item_of_single(struct tf_format f, float x)
{
    return item_of_double(f, (double)x);
}

#endif
