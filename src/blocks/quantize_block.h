/* Blocks of numbers with a common scale: from float32 to codes and back, one block.
 *
 * block_formats.h says what codes are, scale_rules.h which scale a block takes by a rule,
 * scale_search.h by a search, dequantize.h what codes are worth. Here numbers become
 * codes. All of it is freestanding: C and CUDA compile the same text.
 */
#ifndef TF32DTYPE_BLOCKS_QUANTIZE_BLOCK_H
#define TF32DTYPE_BLOCKS_QUANTIZE_BLOCK_H

#include "blocks/scale_search.h"

/* Writes for each of n quotients the fraction of a unit above which its magnitude is
 * rounded up: 0.5 to nearest, the draw of stochastic rounding, 0 away from zero, 2 (never)
 * toward it. Above, not from it on: what is exact stays, and so that ties go away from
 * zero their threshold is the float32 below 0.5. */
TF_INLINE void tf_thresholds(const float *x, const float *numbers, int n,
                             enum tf_rounding rounding, const uint64_t *draws,
                             float *threshold)
{
    for (int i = 0; i < n; i++) {
        const int negative = (int)(tf_bits_of(x[i]) >> 31);
        const int below_zero = (int)(tf_bits_of(numbers[i]) >> 31);
        const int never = rounding == TF_TOWARD_ZERO       ? negative == below_zero
                          : rounding == TF_TOWARD_POSITIVE ? negative
                          : rounding == TF_TOWARD_NEGATIVE ? !negative
                                                           : 0;
        const float middle = negative == below_zero ? 0.49999997f : 0.5f;
        threshold[i] = rounding == TF_TIES_TO_AWAY ? middle : never ? 2.0f : 0.0f;
    }
    if (rounding == TF_STOCHASTIC) {
        for (int i = 0; i < n; i++) {
            threshold[i] = (float)(int32_t)(draws[i] >> 40) * 0x1p-24f;
        }
    }
}

/* x / s for n numbers of a level, by any rounding but to nearest even, where s
 * is within 2^+-100. Tells of each whether that takes a longer way, and returns
 * whether of any. */
TF_INLINE uint32_t tf_round_most(struct tf_element e, float lowest, float greatest,
                                 const float *x, int n, float s,
                                 enum tf_rounding rounding, const float *threshold,
                                 uint32_t *open, float *out)
{
    /* A quotient's unit is that of its exponent, but not less than the least one;
     * that of integers is always the same. */
    uint32_t normal = UINT32_C(254) << 23, mantissa = 127 + (uint32_t)e.fraction;
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        normal = tf_least_normal(f);
        mantissa = f.mantissa_bits;
    }
    const int odd = rounding == TF_TO_ODD;
    const float unsure = rounding == TF_STOCHASTIC ? 0x1p-23f : 0.0f;
    uint32_t any = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t sign = tf_bits_of(x[i]) & TF_SIGN_BIT;
        const float bound = sign ? -lowest : greatest;
        float q = tf_magnitude_of(tf_quotient_to_odd(x[i], s));
        q = q < 2 * bound ? q : 2 * bound;
        const uint32_t exponent = tf_bits_of(q) & TF_INF_BITS;
        const uint32_t unit =
            (exponent > normal ? exponent : normal) - (mantissa << 23);
        const float units = q * tf_float_of((UINT32_C(254) << 23) - unit);
        const int32_t whole = (int32_t)units;
        const float part = units - (float)whole;
        const float from = odd && (whole & 1) ? 2.0f : threshold[i];
        const int32_t kept = whole + (part > from);
        float magnitude = (float)kept * tf_float_of(unit);
        magnitude = magnitude < bound ? magnitude : bound;
        const uint32_t bits = tf_bits_of(magnitude);
        out[i] = tf_float_of(e.format >= 0 || kept ? bits | sign : bits);
        /* Less than a unit in the last place of the quotient decides, or its rest may
         * be lost. */
        const float gap = tf_magnitude_of(part - from);
        const uint32_t small = tf_magnitude_of(x[i]) < TF_SMALL;
        open[i] = small | (uint32_t)(gap <= unsure * (units + 1));
        open[i] &= rounding == TF_STOCHASTIC ? 1 : small;
        any |= open[i];
    }
    return any;
}

/* x / s for n numbers of a level, by any rounding; s = S, or 0, which nothing
 * fits. The signs are those of `numbers`. */
TF_RARE_OF_ARRAYS void tf_round_numbers(struct tf_element e, float lowest, float greatest,
                                        const float *x, int n, float s,
                                        enum tf_rounding rounding, const uint64_t *draws,
                                        const float *numbers, float *out)
{
    uint32_t open[TF_BLOCK_SHARE], any = 1;
    if (rounding != TF_TIES_TO_EVEN && tf_is_moderate(s)) {
        float threshold[TF_BLOCK_SHARE];
        tf_thresholds(x, numbers, n, rounding, draws, threshold);
        any =
            tf_round_most(e, lowest, greatest, x, n, s, rounding, threshold, open, out);
    } else {
        for (int i = 0; i < n; i++) {
            open[i] = 1;
        }
    }
    for (int i = 0; any && i < n; i++) {
        if (!open[i]) {
            continue;
        }
        out[i] = s == 0 ? 0
                        : tf_round_quotient(e, lowest, greatest, x[i], s, rounding,
                                            draws ? draws[i] : 0,
                                            (int)(tf_bits_of(numbers[i]) >> 31));
    }
}

/* The same to nearest, as far as rounding the quotients does not undo it. */
TF_INLINE void tf_divide_numbers(struct tf_element e, float lowest, float greatest,
                                 const float *x, int n, float s, float *out)
{
    if (!tf_is_moderate(s)) {
        tf_round_numbers(e, lowest, greatest, x, n, s, TF_TIES_TO_EVEN, 0, x, out);
        return;
    }
    tf_divide_moderate(x, n, s, lowest, greatest, out);
}

/* What a block with the greatest magnitude a is normalized by. */
TF_INLINE float tf_normal_of(float a)
{
    const int exponent = (int)(tf_bits_of(a) >> 23) - 127;
    return tf_power_of_two(exponent < -126 ? 126 : -exponent);
}

/* x times a power of two, to odd: what a direction needs to know of a number that its
 * block's greatest leaves nothing of. */
TF_INLINE float tf_normalised_to_odd(float x, float normal)
{
    const float scaled = x * normal, back = scaled / normal;
    const uint32_t beyond = tf_magnitude_of(back) > tf_magnitude_of(x);
    return back == x ? scaled : tf_float_of((tf_bits_of(scaled) - beyond) | 1);
}

/* The scale of a residual whose greatest magnitude is `most`, by every rule but the
 * search. */
TF_INLINE uint32_t tf_residual_code(const struct tf_block_plan *plan, float scale,
                                    float most)
{
    const double limit = (double)plan->residual_max;
    if (plan->rule == TF_RULE_PUBLISHED) {
        const float r = most / scale; /* a power of two */
        return (uint32_t)tf_least_code(plan, plan->residual_scales, 1.0f, limit,
                                       r > 1e-12f ? r : 1e-12f);
    }
    if (most == 0) {
        return 0;
    }
    if (tf_scales[plan->layout.scale].kind == TF_SCALE_POWERS && most >= TF_SMALL &&
        tf_is_moderate(scale)) {
        return (uint32_t)tf_least_power(plan, scale, plan->residual_max, most);
    }
    return (uint32_t)tf_least_code(plan, plan->residual_scales, scale, limit, most);
}

/* The residual of numbers whose first level is there, and its scale. */
TF_RARE_OF_ARRAYS void tf_round_residual(const struct tf_block_plan *plan,
                                         const float *xs, float scale, int searched,
                                         const uint64_t *draws, struct tf_block *block)
{
    const struct tf_element lo = tf_elements[tf_plan_residual(plan)];
    const int n = tf_block_size(plan);
    float rest[TF_BLOCK_SHARE];
    for (int i = 0; i < n; i++) {
        rest[i] = tf_fma(-scale, block->hi[i], xs[i]);
    }
    if (!searched) {
        const float most = tf_float_of(tf_greatest_of_block(rest, n));
        block->residual_code = tf_residual_code(plan, scale, most);
    }
    const float u = scale * plan->residual_scales[block->residual_code];
    if (plan->rounding == TF_TIES_TO_EVEN) {
        tf_divide_numbers(lo, plan->residual_min, plan->residual_max, rest, n, u,
                          block->lo);
        for (int i = 0; i < n; i++) {
            block->lo[i] = tf_nearest_signed(lo, block->lo[i]);
        }
    } else {
        tf_round_numbers(lo, plan->residual_min, plan->residual_max, rest, n, u,
                         (enum tf_rounding)plan->rounding, draws, xs, block->lo);
    }
}

/* Writes the code of the scale that the plan's rule gives a block of x, normalized to xs;
 * the search of two levels writes all of the block, as to nearest. */
TF_INLINE void tf_take_scale(struct tf_element e, const struct tf_block_plan *plan,
                             const float *x, const float *xs, float a, float normal,
                             struct tf_block *block)
{
    if (tf_plan_searches(plan)) {
        tf_search_block(e, plan, xs, a, normal, block);
        return;
    }
    struct tf_spread spread = {0, 0};
    if (tf_rule_needs_spread(plan)) {
        spread = tf_block_spread(x, tf_block_size(plan));
    }
    block->code = (uint32_t)tf_scale_code(plan, a, spread);
}

/* The numbers of a block of one level. */
TF_INLINE void tf_round_one_level(struct tf_element e, const struct tf_block_plan *plan,
                                  const float *x, const float *xs, float whole,
                                  float scale, const uint64_t *draws,
                                  struct tf_block *block)
{
    const int n = tf_block_size(plan);
    const float greatest = plan->element_max;
    if (plan->rounding != TF_TIES_TO_EVEN || whole == 0 || scale < TF_SMALL) {
        tf_round_numbers(e, -greatest, greatest, x, n, whole,
                         (enum tf_rounding)plan->rounding, draws, x, block->hi);
    } else {
        tf_divide_numbers(e, -greatest, greatest, xs, n, scale, block->hi);
    }
}

/* One block of finite numbers: everything. `a` is the greatest magnitude, > 0. Threads
 * that have a share of it meet in what they find together, and go the same way there. */
TF_INLINE void tf_round_finite(struct tf_element e, const struct tf_block_plan *plan,
                               const float *x, float a, const uint64_t *draws,
                               struct tf_block *block)
{
    const int n = tf_block_size(plan), two = tf_plan_residual(plan) >= 0;
    const float normal = tf_normal_of(a), greatest = plan->element_max;
    const int searches = tf_plan_searches(plan);
    float xs[TF_BLOCK_SHARE];
    for (int i = 0; i < n; i++) {
        xs[i] = x[i] * normal;
    }
    tf_take_scale(e, plan, x, xs, a, normal, block);
    const float whole = plan->scales[block->code];
    /* Of scale 0, which some rules may take, no number is left; 1 stands for it. */
    const float scale = whole == 0 ? 1.0f : tf_scale_within(whole, normal);
    if (!two) {
        tf_round_one_level(e, plan, x, xs, whole, scale, draws, block);
        return;
    }
    if (!searches) {
        tf_divide_numbers(e, -greatest, greatest, xs, n, scale, block->hi);
        for (int i = 0; i < n; i++) {
            block->hi[i] = tf_nearest_signed(e, block->hi[i]);
        }
    }
    if (plan->rounding != TF_TIES_TO_EVEN && plan->rounding != TF_TIES_TO_AWAY &&
        plan->rounding != TF_STOCHASTIC) {
        for (int i = 0; i < n; i++) {
            xs[i] = tf_normalised_to_odd(x[i], normal);
        }
    }
    if (!searches || plan->rounding != TF_TIES_TO_EVEN) { /* else the search has it */
        tf_round_residual(plan, xs, scale, searches, draws, block);
    }
    if (whole == 0) {
        for (int i = 0; i < n; i++) {
            block->hi[i] = block->lo[i] = 0;
        }
        block->residual_code = 0;
    }
}

TF_INLINE void tf_round_zeros(struct tf_block *block, int n)
{
    block->code = block->residual_code = 0;
    for (int i = 0; i < n; i++) {
        block->hi[i] = block->lo[i] = 0;
    }
}

typedef void tf_round_finite_fn(struct tf_element e, const struct tf_block_plan *plan,
                                const float *x, float a, const uint64_t *draws,
                                struct tf_block *block);

/* One block, whatever it holds; `e` is the plan's element. Finite numbers are rounded in two
 * places by `finite`: tf_round_finite, or a call of it. */
TF_INLINE void tf_round_block_by(tf_round_finite_fn *finite, struct tf_element e,
                                 const struct tf_block_plan *plan, const float *x,
                                 const uint64_t *draws, struct tf_block *block)
{
    const int n = tf_block_size(plan);
    const uint32_t infinite = TF_INF_BITS;
    uint32_t most = tf_greatest_magnitude(x, n);
    block->special = 0;
    if (most - 1 < infinite - 1) {
        finite(e, plan, x, tf_float_of(most), draws, block);
        return;
    }
    if (most == 0) {
        tf_round_zeros(block, n);
        return;
    }
    block->special = 1;
    if (plan->nan_on_special) {
        tf_round_zeros(block, n);
        block->code = 0xFF; /* float8_e8m0fnu alone is poisoned */
        return;
    }
    /* What is not finite counts as zero, takes no part of the residual, and becomes NaN
     * or the greatest number. */
    float numbers[TF_BLOCK_SHARE];
    int infinities = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t magnitude = tf_bits_of(x[i]) & TF_MAGNITUDE_BITS;
        infinities |= magnitude == infinite;
        numbers[i] = magnitude < infinite ? x[i] : 0;
    }
    most = tf_greatest_magnitude(numbers, n);
    if (most == 0 && !infinities) {
        tf_round_zeros(block, n);
    } else {
        const float a = tf_float_of(most ? most : infinite - 1);
        finite(e, plan, numbers, a, draws, block);
    }
    for (int i = 0; i < n; i++) {
        const uint32_t bits = tf_bits_of(x[i]), magnitude = bits & TF_MAGNITUDE_BITS;
        if (magnitude >= infinite) {
            block->hi[i] = magnitude == infinite ? tf_with_sign(plan->element_max, x[i])
                                                 : tf_float_of(TF_QUIET_NAN_BITS);
            block->lo[i] = 0;
        }
    }
}

TF_INLINE void tf_round_block(struct tf_element e, const struct tf_block_plan *plan,
                              const float *x, const uint64_t *draws,
                              struct tf_block *block)
{
    tf_round_block_by(tf_round_finite, e, plan, x, draws, block);
}

#endif
