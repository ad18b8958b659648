/* The table of this build's kernels for block-scaled arrays. */
#include "blocks/kernels.h"

extern const struct tf_block_loops TF_PLAIN_NAME(tf_block_loops)[];
extern const struct tf_block_product TF_NAME(tf_block_product);

const struct tf_block_kernels TF_NAME(tf_block_kernels) = {
    .loops = TF_PLAIN_NAME(tf_block_loops),
    .product = &TF_NAME(tf_block_product),
};
