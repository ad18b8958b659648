/* This build's entry in the table of instruction sets. It has one table per subject, which
 * the subject's own kernel files define.
 *
 * The preloaded library only multiplies matrices of float32 and float64. With
 * TF_PRODUCTS_ALONE its entry has only the tables that these products need, and the linker
 * drops other kernels. */
#include "runtime/kernels/common.h"

extern const struct tf_copy_kernels TF_NAME(tf_copy_kernels);
extern const struct tf_format_kernels TF_NAME(tf_format_kernels);
extern const struct tf_ufunc_kernels TF_NAME(tf_ufunc_kernels);
extern const struct tf_matmul_kernels TF_NAME(tf_matmul_kernels);
extern const struct tf_gemv_kernels TF_NAME(tf_gemv_kernels), TF_NAME(tf_gemv_of_singles);
extern const struct tf_dot TF_NAME(tf_dot), TF_NAME(tf_dot_of_singles);
extern const struct tf_int8_kernels TF_NAME(tf_int8_kernels), TF_NAME(tf_no_int8_kernels);
extern const struct tf_mma_kernels TF_PLAIN_NAME(tf_mma_kernels);
extern const struct tf_scaled_mma_kernels TF_PLAIN_NAME(tf_scaled_mma_kernels);
extern const struct tf_rounded_kernels TF_PLAIN_NAME(tf_rounded_kernels);
extern const struct tf_fma_kernels TF_PLAIN_NAME(tf_fma_kernels);
extern const struct tf_exact_kernels TF_PLAIN_NAME(tf_exact_kernels);
extern const struct tf_block_kernels TF_NAME(tf_block_kernels);
extern const struct tf_arithmetic_kernels TF_PLAIN_NAME(tf_arithmetic_kernels);

const struct tf_isa TF_NAME(tf_isa) = {
    .copies = &TF_NAME(tf_copy_kernels),
    .formats = &TF_NAME(tf_format_kernels),
    .matmul = &TF_NAME(tf_matmul_kernels),
#if defined(TF_PRODUCTS_ALONE)
    .gemv = &TF_NAME(tf_gemv_of_singles),
    .dot = &TF_NAME(tf_dot_of_singles),
    .quads = &TF_NAME(tf_no_int8_kernels),
#else
    .gemv = &TF_NAME(tf_gemv_kernels),
    .dot = &TF_NAME(tf_dot),
    .quads = &TF_NAME(tf_int8_kernels),
    .ufuncs = &TF_NAME(tf_ufunc_kernels),
    .mma = &TF_PLAIN_NAME(tf_mma_kernels),
    .scaled_mma = &TF_PLAIN_NAME(tf_scaled_mma_kernels),
    .rounded = &TF_PLAIN_NAME(tf_rounded_kernels),
    .fma = &TF_PLAIN_NAME(tf_fma_kernels),
    .exact = &TF_PLAIN_NAME(tf_exact_kernels),
    .blocks = &TF_NAME(tf_block_kernels),
    .arithmetic = &TF_PLAIN_NAME(tf_arithmetic_kernels),
#endif
};
