/* The table of this build's kernels on numbers of a format. */
#include "formats/kernels/decls.h"

const struct tf_format_kernels TF_NAME(tf_format_kernels) = {
    .conversions = TF_NAME(tf_conversions),
    .loads = TF_PLAIN_NAME(tf_loads),
    .stores = TF_PLAIN_NAME(tf_stores),
    .narrow = TF_NAME(tf_narrow),
    .widen = TF_NAME(tf_widen),
    .predicate = TF_NAME(tf_predicate),
    .byte_predicate = TF_NAME(tf_byte_predicate),
    .canonical_nans = TF_NAME(tf_canonical_nans),
    .bounds = TF_NAME(tf_bounds),
    .lookup = TF_NAME(tf_lookup),
    .lookup_any = TF_NAME(tf_lookup_any),
#if defined(__AVX512VBMI__)
    .bf16_of_bytes = TF_NAME(tf_bf16_of_bytes),
#endif
};
