/* Multiplies numbers of any format by powers of two: one array of items, one of int64. */
#include "cuda/formats/numbers.h"
#include "cuda/common/strides.h"

/* The options FORMAT and ITEM are the format and the type of its items. */
extern "C" __global__ void __launch_bounds__(256)
    by_power(const tf_walk<3> walk, ITEM *out, const ITEM *items,
             const int64_t *exponents)
{
#pragma unroll 1
    for (int64_t i = tf_thread(); i < walk.size; i += tf_threads()) {
        const tf_offsets<3> at = tf_offsets_at(walk, i);
        const int64_t exponent = tf_at<int64_t>(exponents, at.of[2]);
        /* Exponents out of +-600 overflow or underflow in every format. */
        const int bounded = exponent > 600    ? 600
                            : exponent < -600 ? -600
                                              : (int)exponent;
        const double x = number_of(FORMAT, tf_at<ITEM>(items, at.of[1]));
        /* PTX leaves the sign of fabs(NaN) open, so NaN becomes the positive one. */
        const uint32_t item = x != x
                                  ? item_of_single(FORMAT, tf_float_of(TF_QUIET_NAN_BITS))
                                  : item_of_double(FORMAT, ldexp(x, bounded));
        tf_at<ITEM>(out, at.of[0]) = (ITEM)item;
    }
}
