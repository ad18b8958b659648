/* The products that one chain of fused multiply-adds sums: a single product for each k, or
 * several products of components if operands are split. */
#ifndef TF32DTYPE_MATMUL_SPLIT_SCHEDULE_H
#define TF32DTYPE_MATMUL_SPLIT_SCHEDULE_H

#include "matmul/kernels.h"
#include "matmul/operand.h"
#include "matmul/operand_split.h"
#include "matmul/precisions.h"

enum {
    TF_SPLIT_KC = 32,    /* k of a chain of products of components */
    TF_SPLIT_SUM = 4096, /* k of a sum of 256-sums, if operands are split */
};

struct tf_split_schedule {
    struct tf_split_product terms[TF_PARTS * TF_PARTS];
    size_t count;
    size_t depth; /* k of a chain */
};

/* Returns the order of the products of components with p significant bits. Products with
 * the largest split order i + j (component i of A times component j of B) come first: these
 * are the smallest ones. Within an order, i increases, or j if A and B were `swapped`: so
 * transposing a product changes no bit. `pairs`: the components are packed pairs of
 * bfloat16, and the sums are not scaled between split orders. */
struct tf_split_schedule tf_split_schedule_of(const struct tf_precision *precision, int p,
                                              int swapped, int pairs);

/* The single product of numbers that are not split. */
extern const struct tf_split_schedule tf_one_term;

/* Returns the single product of operands that are packed as small integers. */
struct tf_split_schedule tf_terms_of_quads(struct tf_operand a, struct tf_operand b);

#endif
