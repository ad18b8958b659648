/* The kernel for products of vectors of float32 and tf32. No instruction for bfloat16 makes it
 * faster. The preconditions are those that kernels/dot.c lists. */
#include "matmul/kernels/dot_chains.h"

#if HAS_CHAINS
INSTANCE(singles, SINGLES)

tf_dot_fn TF_PLAIN_NAME(tf_dot_singles);

void TF_PLAIN_NAME(tf_dot_singles)(const struct tf_dot_operands *in, size_t depth,
                                   size_t count, float *sums)
{
    singles(in, depth, count, sums);
}
#endif
