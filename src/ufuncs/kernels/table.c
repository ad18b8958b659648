/* This build's table of kernels of operations on elements. */
#include "ufuncs/kernels/decls.h"

const struct tf_ufunc_kernels TF_NAME(tf_ufunc_kernels) = {
    .binary_f32 = TF_NAME(tf_binary_f32),
    .binary_f64 = TF_NAME(tf_binary_f64),
    .binary_near = TF_NAME(tf_binary_near),
    .doubtful = TF_NAME(tf_doubtful),
    .fused = TF_NAME(tf_fused),
    .quick = TF_PLAIN_NAME(tf_quick),
    .quick_near = TF_PLAIN_NAME(tf_quick_near),
    .parts = &TF_PLAIN_NAME(tf_parts),
    .compare = TF_NAME(tf_compare),
    .are_near = TF_NAME(tf_are_near),
    .extreme = TF_NAME(tf_extreme),
    .compare_items = TF_NAME(tf_compare_items),
    .sign = TF_NAME(tf_sign),
    .exceptions = TF_NAME(tf_exceptions),
    .compress_index = TF_NAME(tf_compress_index),
    .expand_result = TF_NAME(tf_expand_result),
    .add_wide = TF_NAME(tf_add_wide),
    .times_wide = TF_NAME(tf_times_wide),
    .makes_nan = TF_NAME(tf_makes_nan),
    .mark_beyond = TF_NAME(tf_mark_beyond),
    .sum = TF_NAME(tf_sum),
    .bf16_bounds = TF_NAME(tf_bf16_bounds),
    .byte_bounds = TF_NAME(tf_byte_bounds),
    .moments = &TF_PLAIN_NAME(tf_moment_loops),
};
