/* Which products of components are summed, and in which order. */
#include "matmul/split_schedule.h"

#include "matmul/int8_dot.h"
#include "matmul/workspace.h"

const struct tf_split_schedule tf_one_term = {{{0, 0, 1}}, 1, TF_KC};

struct tf_split_schedule tf_split_schedule_of(const struct tf_precision *precision, int p,
                                              int swapped, int pairs)
{
    const int parts = precision->parts;
    const int split_orders = parts > 1 ? precision->split_orders : 1;
    struct tf_split_schedule terms = {{{0, 0, 1}}, 0, parts > 1 ? TF_SPLIT_KC : TF_KC};
    for (int order = split_orders - 1; order >= 0; order--) {
        const int first = order < parts ? 0 : order - parts + 1;
        for (int i = first; i <= order - first; i++) {
            const int scales = i == first && terms.count && !pairs;
            const int j = order - i;
            terms.terms[terms.count++] = (struct tf_split_product){
                (size_t)(swapped ? j : i) * TF_PACKED_A,
                (size_t)(swapped ? i : j) * TF_PACKED_B,
                scales ? 1.0f / (float)(1 << p) : 1,
            };
        }
    }
    return terms;
}

struct tf_split_schedule tf_terms_of_quads(struct tf_operand a, struct tf_operand b)
{
    return (struct tf_split_schedule){{{0, 0, tf_quad_unit(a, b)}}, 1, TF_KC};
}
