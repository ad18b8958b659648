/* Conditions for exact products of pairs of bfloat16. VDPBF16PS replaces subnormal operands
 * and results by zero (DAZ and FTZ). If the lowest exponents of the operands are e_a and
 * e_b, all products and sums are multiples of 2^(e_a + e_b - 14). If this is at least
 * 2^-126, no product or sum is subnormal, and the instruction gives the bits of fused
 * multiply-adds. */
#ifndef TF32DTYPE_MATMUL_BF16_DOT_H
#define TF32DTYPE_MATMUL_BF16_DOT_H

#include "matmul/kernels.h"
#include "matmul/operand.h"

/* Returns the range of no numbers. */
struct tf_magnitude_range tf_no_range(void);

/* The exponents of the smallest and the largest magnitude of a range. Subnormal numbers
 * count as -1000, and Inf and NaN as 1000, out of the bounds of the functions below. */
struct tf_exponents {
    int least, greatest;
};

struct tf_exponents tf_exponents_of(struct tf_magnitude_range *range);

/* Return whether products of such numbers, and their sums, are never subnormal: of bfloat16
 * numbers, and of the components of numbers that are split. Sums of components do not come
 * near Inf, either. */
int tf_bf16_dot_is_exact(struct tf_exponents a, struct tf_exponents b);
int tf_bf16_split_dot_is_exact(struct tf_exponents a, struct tf_exponents b);

/* Returns whether no product or sum of unsplit numbers of these formats is subnormal. */
int tf_always_normal(struct tf_operand a, struct tf_operand b);

/* Returns the kernel that multiplies pairs, the number in the upper half first. Its
 * `multiply` is NULL if pairs do not pay or the instruction rounds in another way. */
struct tf_kernel tf_pairs_kernel(void);

/* Checks once whether this processor's instruction gives the bits of fused
 * multiply-adds. */
void tf_probe_bf16_dot(void);

#endif
