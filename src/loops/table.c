/* This build's entry in the table of instruction sets: see isa.h. */
#include "blocks.h"

const struct tf_isa TF_NAME(tf_isa) = {
    .formats = TF_NAME(tf_conversions),
    .binary_f32 = TF_NAME(tf_binary_f32),
    .binary_f64 = TF_NAME(tf_binary_f64),
    .fused = TF_NAME(tf_fused),
    .compare = TF_NAME(tf_compare),
    .fused_compare = TF_NAME(tf_fused_compare),
    .predicate = TF_NAME(tf_predicate),
    .narrow = TF_NAME(tf_narrow),
    .widen = TF_NAME(tf_widen),
    .canonical_nans = TF_NAME(tf_canonical_nans),
    .vanished = TF_NAME(tf_vanished),
    .lookup = TF_NAME(tf_lookup),
    .squeeze = TF_NAME(tf_squeeze),
    .unsqueeze = TF_NAME(tf_unsqueeze),
    .sum = TF_NAME(tf_sum),
    .bounds = TF_NAME(tf_bounds),
    .half_bounds = TF_NAME(tf_half_bounds),
    .product = &TF_NAME(tf_product),
    .block_product = &TF_NAME(tf_block_product),
    .tensor = &TF_NAME(tf_tensor),
    .block = TF_NAME(tf_block_loops),
    .scaled = &TF_NAME(tf_scaled),
};
