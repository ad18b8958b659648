/* The table of kernels of exact products. */
#include "exact/kernels/plain/decls.h"

const struct tf_exact_kernels TF_PLAIN_NAME(tf_exact_kernels) = {
    .load = TF_PLAIN_NAME(tf_load_rows),
    .facts = TF_PLAIN_NAME(tf_facts_of_rows),
    .slice = TF_PLAIN_NAME(tf_slice_row),
    .dot = TF_PLAIN_NAME(tf_compensated_dot),
    .products = TF_PLAIN_NAME(tf_split_products),
    .sum = TF_PLAIN_NAME(tf_compensated_sum),
    .round = TF_PLAIN_NAME(tf_round_sums),
};
