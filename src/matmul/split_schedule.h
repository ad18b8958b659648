/* The products that one chain of fused multiply-adds sums for each k: one of whole
 * numbers, several of numbers that are split into parts. */
#ifndef TF32DTYPE_MATMUL_SPLIT_SCHEDULE_H
#define TF32DTYPE_MATMUL_SPLIT_SCHEDULE_H

#include "matmul/kernels.h"
#include "matmul/operand.h"
#include "matmul/operand_split.h"
#include "matmul/precisions.h"

enum {
    TF_SPLIT_KC = 32,    /* k of a chain of parts' products */
    TF_SPLIT_SUM = 4096, /* k whose 256-sums make a sum of their own, of parts */
};

struct tf_split_schedule {
    struct tf_split_product terms[TF_PARTS * TF_PARTS];
    size_t count;
    size_t depth; /* k of a chain */
};

/* Returns the order of split products of p significant bits a part: by decreasing i + j
 * (A's part i times B's part j), the smallest first. Within one i + j the product of A's
 * leading part is first; if A and B were `swapped`, that of B's, so that transposing a
 * product changes no bit. `pairs`: of packed pairs of bfloat16, whose sums are not scaled
 * between split orders. */
struct tf_split_schedule tf_split_schedule_of(const struct tf_precision *precision, int p,
                                              int swapped, int pairs);

/* The one product of numbers that are not split. */
extern const struct tf_split_schedule tf_one_term;

/* Returns the one product of operands packed as small integers. */
struct tf_split_schedule tf_terms_of_quads(struct tf_operand a, struct tf_operand b);

#endif
