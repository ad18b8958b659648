/* Products and quotients below float32's normal range, of bfloat16 and tf32. */
#ifndef TF32DTYPE_UFUNCS_KERNELS_TINY_RESULTS_H
#define TF32DTYPE_UFUNCS_KERNELS_TINY_RESULTS_H

#include "formats/fast_codec.h"
#include "ufuncs/common_ops.h"

#define TF_LEAST_NORMAL_BITS UINT32_C(0x00800000)

/* Returns the item, in the upper bits, of the result of x and y if that is below the normal
 * range, else `bits`, which must have its sign. Sets *under if it is inexact.
 *
 * The result is computed times 2^128, so that nothing is subnormal: some processors take
 * ten times as long for subnormal numbers. An addition rounds it, after which the lower bits
 * are the code. float32's rounding before that changes nothing: a product is exact, and a
 * quotient of numbers of p bits is farther than 2^-2p of itself from each rounding boundary
 * and from each number of p bits that it does not equal.
 *
 * Only results of which nothing is left may be subnormal or zero here. If a result is not
 * below the normal range, neither is the one computed here, but it may be Inf. */
TF_INLINE uint32_t tf_round_tiny(struct tf_format f, enum tf_binary_op op, float x, float y,
                                 uint32_t bits, uint32_t *under)
{
    const int cut = tf_cut(f);
    const float scale = 0x1p64f, least_normal = 0x1p2f; /* 2^-126 times 2^128 */
    const float other = op == TF_TRUE_DIVIDE ? 1 / scale : scale;
    const float signed_result = tf_common_result(op, x * scale, y * other);
    const float exact = tf_float_of(tf_bits_of(signed_result) & TF_MAGNITUDE_BITS);
    const uint32_t exponent = (uint32_t)(tf_least_exponent(f) + 128 + 23 + 127);
    const float magic = tf_float_of(exponent << 23);
    const float shifted = exact + magic;
    const uint32_t code = tf_bits_of(shifted) - tf_bits_of(magic);
    const uint32_t p = tf_bits_of(x) << 1, q = tf_bits_of(y) << 1;
    const uint32_t last = op == TF_TRUE_DIVIDE ? 2 * TF_INF_BITS - 1 : UINT32_MAX;
    const uint32_t vanished = (exact == 0) & (p != 0) & (q - 1 < last);
    const uint32_t is_tiny = exact < least_normal ? UINT32_MAX : 0;
    *under |= is_tiny & ((shifted - magic != exact) | vanished);
    return is_tiny ? (bits & TF_SIGN_BIT) | code << cut : bits;
}

#endif
