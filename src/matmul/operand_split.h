/* Splits a float32 into components of fewer bits: x = x0 + 2^-p x1 + 2^-2p x2. Each
 * component has p significant bits (8 for bfloat16, 11 for tf32) and float32's range of
 * exponents.
 *
 * "Exceeding the Numerical and Performance Characteristics of IEEE-754 SGEMM with BFloat16
 * Tensor Cores" (arXiv 2605.16617), section 4, equation 4. Every component is rounded to
 * nearest, ties to even, with saturation. Therefore three components of 8 bits recompose
 * every finite float32. Above 0x7F7F0000, the largest bfloat16, the later components hold
 * the rest, and below 2^-126 the scales make the later components large enough. Inf has the
 * components of the largest float32; the components of NaN are NaN.
 */
#ifndef TF32DTYPE_MATMUL_OPERAND_SPLIT_H
#define TF32DTYPE_MATMUL_OPERAND_SPLIT_H

#include <stdint.h>

#include "runtime/bit_masks.h"

enum { TF_PARTS = 3 };

/* Returns float32 bits rounded to p significant bits: the last 24 - p bits are zero.
 *
 *     s eeeeeeee fffffff|ffffffffffffffff      p = 8
 */
static inline uint32_t tf_split_round(uint32_t bits, int p)
{
    const int drop = 24 - p;
    const uint32_t magnitude = bits & TF_MAGNITUDE_BITS;
    const uint32_t greatest = TF_INF_BITS - (UINT32_C(1) << drop);
    const uint32_t half_less_one = (UINT32_C(1) << (drop - 1)) - 1;
    const uint32_t last = magnitude >> drop & 1;
    uint32_t rounded = (magnitude + half_less_one + last) >> drop << drop;
    rounded = rounded > greatest ? greatest : rounded;
    rounded = magnitude > TF_INF_BITS ? TF_QUIET_NAN_BITS : rounded;
    return rounded | (bits & TF_SIGN_BIT);
}

/* Returns the rest of x after a component, times 2^p: the next component is the rest
 * rounded. The subtraction and the multiplication are exact. */
static inline float tf_split_rest(float x, float part, int p)
{
    return (x - part) * (float)(1 << p);
}

#endif
