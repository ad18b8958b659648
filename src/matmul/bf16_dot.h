/* Where products of pairs are exact. VDPBF16PS takes subnormal numbers for zero and gives
 * zero for them (DAZ and FTZ). If the lowest exponents of the operands are e_a and e_b,
 * all products and sums are multiples of 2^(e_a + e_b - 14): where that is at least
 * 2^-126 nothing in between is subnormal, and the instruction is exact. */
#ifndef TF32DTYPE_MATMUL_BF16_DOT_H
#define TF32DTYPE_MATMUL_BF16_DOT_H

#include "matmul/kernels.h"
#include "matmul/operand.h"

struct tf_magnitude_range tf_no_range(void);

/* The exponents of the least and of the greatest numbers of a range. Those of subnormal
 * numbers, and of Inf and NaN, are beyond what any product stands. */
struct tf_exponents {
    int least, greatest;
};

struct tf_exponents tf_exponents_of(struct tf_magnitude_range *range);

/* Whether no product of such numbers meets a subnormal one: numbers as they are, and
 * numbers that are split, whose parts meet no Inf either. */
int tf_bf16_dot_is_exact(struct tf_exponents a, struct tf_exponents b);
int tf_bf16_split_dot_is_exact(struct tf_exponents a, struct tf_exponents b);

/* Whether that is so for all numbers of two formats. */
int tf_always_normal(struct tf_operand a, struct tf_operand b);

/* What multiplies pairs, of which the one in the upper half comes first, where that pays;
 * else nothing. */
struct tf_kernel tf_pairs_kernel(void);

/* Tries once whether this processor's instruction is what it should be. */
void tf_probe_bf16_dot(void);

#endif
