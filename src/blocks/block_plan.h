/* The plan of a call: facts that all blocks of an array share. */
#ifndef TF32DTYPE_BLOCKS_BLOCK_PLAN_H
#define TF32DTYPE_BLOCKS_BLOCK_PLAN_H

#include "blocks/element_rounding.h"
#include "runtime/asserts.h"

enum { TF_BLOCK_MOST = 128 }; /* numbers of a block */

struct tf_block_format {
    int element;  /* index of tf_elements */
    int residual; /* index of tf_elements, or -1 for none */
    int scale;    /* index of tf_scales */
    int block;    /* numbers: 16, 32, 64 or 128 */
    float tensor_scale; /* multiplies all scales */
};

enum tf_block_rule {
    TF_RULE_AMAX,
    TF_RULE_FLOOR,
    TF_RULE_EVEN,
    TF_RULE_NF,
    TF_RULE_MSE,
    TF_RULE_PUBLISHED,
    TF_RULE_COUNT
};

enum { TF_SCALE_ROOM = 256 + 48 }; /* all codes of a scale, and a window after the last */

struct tf_block_plan {
    struct tf_block_format layout;
    int rule, rounding;
    int nan_on_special; /* an Inf or NaN makes the scale NaN; else only itself */
    int32_t least, top; /* codes of scales of blocks that are not zero */
    float element_max;  /* M, the largest number of the element */
    float residual_min, residual_max;
    float search_limit; /* L: the largest first code that the search allows */
    /* S and R of every code. Entries after the last code repeat it. */
    float scales[TF_SCALE_ROOM], residual_scales[TF_SCALE_ROOM];
};
TF_STATIC_ASSERT(sizeof(struct tf_block_plan) == 2488 &&
                     TF_OFFSETOF(struct tf_block_plan, scales) == 56,
                 "the CPU fills a plan, and a GPU reads its bytes");

TF_NOINLINE void tf_block_plan_fill(struct tf_block_plan *plan,
                                struct tf_block_format layout, int rule, int rounding,
                                int nan_on_special)
{
    const struct tf_element e = tf_elements[layout.element];
    const struct tf_scale s = tf_scales[layout.scale];
    const int two = layout.residual >= 0;
    const struct tf_element lo = tf_elements[two ? layout.residual : layout.element];
    plan->layout = layout;
    plan->rule = rule;
    plan->rounding = rounding;
    plan->nan_on_special = nan_on_special;
    plan->least = s.kind == TF_SCALE_POWERS ? 0 : 1;
    plan->top = s.kind == TF_SCALE_POWERS ? 254 : s.kind == TF_SCALE_E4M3 ? 0x7E : 255;
    plan->element_max = tf_element_greatest(e);
    /* Up to half a unit above the largest number, quotients still round to it. If numbers
     * have equal distances, a little less range is worth some precision. */
    const int mantissa = tf_element_mantissa(e);
    const int wide = e.format >= 0 && tf_format_rows[e.format]->exponent_bits > 2;
    const int exponent = (int)(tf_bits_of(plan->element_max) >> 23) - 127;
    plan->search_limit = wide ? plan->element_max + tf_power_of_two(exponent - mantissa - 1)
                       : 1.25f * plan->element_max;
    plan->residual_max = tf_element_greatest(lo);
    plan->residual_min = lo.format >= 0 || rule == TF_RULE_PUBLISHED
                       ? -plan->residual_max
                       : (float)lo.least * tf_power_of_two(-lo.fraction);
    for (int c = 0; c < TF_SCALE_ROOM; c++) {
        const uint32_t code = (uint32_t)(c < plan->top ? c : plan->top);
        plan->scales[c] = tf_block_scale(s, layout.tensor_scale, code);
        plan->residual_scales[c] = tf_residual_scale(s, lo, code);
    }
}

#endif
