/* The scale of a block, by every rule except the search. */
#ifndef TF32DTYPE_BLOCKS_SCALE_RULES_H
#define TF32DTYPE_BLOCKS_SCALE_RULES_H

#include "blocks/block_hooks.h"

/* Returns the smallest code with t <= limit * (factor * scale), or the largest code if
 * there is none. factor * scale is rounded to float32. */
TF_INLINE int32_t tf_least_code(const struct tf_block_plan *plan, const float *scales,
                                float factor, double limit, float t)
{
    /* Values of scales are almost all numbers of `mantissa_bits` bits, so a quotient almost
     * always gives the distance from the last code. */
    const struct tf_scale s = tf_scales[plan->layout.scale];
    const float top = tf_scale_value(s, (uint32_t)plan->top);
    const double unit = limit * (double)(factor * scales[plan->top]);
    const float quotient = (float)((double)t / unit * (double)top);
    const int32_t below = (int32_t)(tf_bits_of(top) - tf_bits_of(quotient));
    int32_t code = plan->top - (below >> (23 - s.mantissa_bits));
    code = code < plan->least ? plan->least : code > plan->top ? plan->top : code;
    while (code > plan->least &&
           (double)t <= limit * (double)(factor * scales[code - 1])) {
        code--;
    }
    while (code < plan->top && !((double)t <= limit * (double)(factor * scales[code]))) {
        code++;
    }
    return code;
}

/* Does the same for scales that are powers of two, by exponents. t must be normal, and
 * factor a power of two. */
TF_INLINE int32_t tf_least_power(const struct tf_block_plan *plan, float factor, float limit,
                                 float t)
{
    const uint32_t bits = tf_bits_of(t), top = tf_bits_of(limit);
    const uint32_t fraction = TF_FRACTION_BITS;
    const int32_t code = (int32_t)(bits >> 23) - (int32_t)(top >> 23) -
                         (int32_t)(tf_bits_of(factor) >> 23) + 254 +
                         ((bits & fraction) > (top & fraction));
    return code < 0 ? 0 : code > plan->top ? plan->top : code;
}

/* Returns the code of 2^(floor(log2 a) - floor(log2 M)). a is first rounded to `bits` bits
 * after its leading one; 23 bits do not change it. */
TF_INLINE int32_t tf_floor_code(const struct tf_block_plan *plan, float a, int bits)
{
    int exponent;
    const uint32_t significand = tf_significand(a, &exponent);
    const int cut = 23 - bits;
    const uint32_t half_less_one = cut > 0 ? (UINT32_C(1) << (cut - 1)) - 1 : 0;
    const uint32_t last = cut > 0 ? significand >> cut & 1 : 0;
    exponent += 23 + (int)((significand + half_less_one + last) >> 24);
    const int greatest = (int)(tf_bits_of(plan->element_max) >> 23) - 127;
    const int code = exponent - greatest + 127;
    return code < 0 ? 0 : code > plan->top ? plan->top : code;
}

/* Returns the code nearest to a / (M t), ties to even. It may be 0. t is the tensor's
 * scale. */
TF_NOINLINE int32_t tf_nearest_code(const struct tf_block_plan *plan, float a)
{
    const struct tf_scale s = tf_scales[plan->layout.scale];
    const double unit = (double)plan->element_max * (double)plan->layout.tensor_scale;
    int32_t below = 0, top = plan->top;
    while (below < top) { /* find the largest code that is not above */
        const int32_t middle = (below + top + 1) >> 1;
        if (unit * (double)tf_scale_value(s, (uint32_t)middle) <= (double)a) {
            below = middle;
        } else {
            top = middle - 1;
        }
    }
    if (below == plan->top) {
        return below;
    }
    const double sum = (double)tf_scale_value(s, (uint32_t)below) +
                       (double)tf_scale_value(s, (uint32_t)below + 1);
    const double twice = 2 * (double)a, middle = unit * sum;
    return below + (twice > middle || (twice == middle && (below & 1)));
}

TF_INLINE int tf_rule_needs_spread(const struct tf_block_plan *plan)
{
    return plan->rule == TF_RULE_NF ||
           (plan->rule == TF_RULE_PUBLISHED && tf_plan_residual(plan) < 0);
}

/* Returns the scale's code, by every rule except the search. a > 0 is the largest
 * magnitude. `spread` is used only if the rule needs it. */
TF_NOINLINE int32_t tf_scale_code(const struct tf_block_plan *plan, float a,
                              struct tf_spread spread)
{
    const struct tf_element e = tf_elements[plan->layout.element];
    const int powers = tf_scales[plan->layout.scale].kind == TF_SCALE_POWERS;
    const double mean = spread.mean, sigma = spread.deviation;
    float t = a;
    switch (plan->rule) {
    case TF_RULE_FLOOR: return powers ? tf_floor_code(plan, a, 23) : tf_nearest_code(plan, a);
    case TF_RULE_EVEN:
        return powers ? tf_floor_code(plan, a, tf_element_mantissa(e))
                      : tf_nearest_code(plan, a);
    case TF_RULE_NF: {
        const float three = (float)(3 * sigma);
        const int centered = (mean < 0 ? -mean : mean) <= sigma / 2;
        const int light = (double)a <= 4 * sigma;
        const int varies = sigma > (double)a * 0x1p-20;
        t = centered && light && varies && three < a ? three : a;
        break;
    }
    case TF_RULE_PUBLISHED:
        if (tf_plan_residual(plan) < 0) {
            t = sigma < 1e-6 ? a : (float)(3 * sigma);
            t = t < 0x1.fffffep127f ? t : 0x1.fffffep127f;
        }
        t = t > 1e-12f ? t : 1e-12f;
        break;
    default: break;
    }
    if (powers && tf_bits_of(t) >= UINT32_C(0x00800000)) {
        return tf_least_power(plan, 1.0f, plan->element_max, t);
    }
    return tf_least_code(plan, plan->scales, 1.0f, (double)plan->element_max, t);
}

#endif
