/* One block of numbers with a common scale: float32 numbers to codes.
 *
 * block_formats.h defines the codes, scale_rules.h the scale that a rule gives a block,
 * scale_search.h the scale that a search finds, and dequantize.h the values of codes. These
 * headers are freestanding: C and CUDA compile the same source.
 */
#ifndef TF32DTYPE_BLOCKS_QUANTIZE_BLOCK_H
#define TF32DTYPE_BLOCKS_QUANTIZE_BLOCK_H

#include "blocks/scale_search.h"

/* Writes for each of n quotients the fraction of a unit above which its magnitude is
 * rounded up. It is 0.5 to nearest, the draw for stochastic rounding, 0 away from zero, and
 * 2 (never) toward zero. Exact quotients stay, since only larger fractions are rounded up.
 * For ties away from zero, the threshold is therefore the float32 below 0.5. */
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

/* Writes x / s for n numbers of a level, by any rounding except to nearest even. s must be
 * from 2^-100 to 2^100. Sets open[i] for each number that tf_round_quotient has to round,
 * and returns whether there is one. */
TF_INLINE uint32_t tf_round_most(struct tf_element e, float lowest, float greatest,
                                 const float *x, int n, float s,
                                 enum tf_rounding rounding, const float *threshold,
                                 uint32_t *open, float *out)
{
    /* A quotient's unit is that of its exponent, but at least the smallest unit of the
     * format. Integers always have the same unit. */
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
        /* Less than a unit in the last place of q decides, or its rest may be lost. */
        const float gap = tf_magnitude_of(part - from);
        const uint32_t small = tf_magnitude_of(x[i]) < TF_SMALL;
        open[i] = small | (uint32_t)(gap <= unsure * (units + 1));
        open[i] &= rounding == TF_STOCHASTIC ? 1 : small;
        any |= open[i];
    }
    return any;
}

/* Writes x / s for n numbers of a level, by any rounding, or zeros if s is 0. `numbers` has
 * the signs that directions refer to. */
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

/* Writes x / s for n numbers, to nearest. Results may be quotients that have yet to be
 * rounded to the element's grid. */
TF_INLINE void tf_divide_numbers(struct tf_element e, float lowest, float greatest,
                                 const float *x, int n, float s, float *out)
{
    if (!tf_is_moderate(s)) {
        tf_round_numbers(e, lowest, greatest, x, n, s, TF_TIES_TO_EVEN, 0, x, out);
        return;
    }
    tf_divide_moderate(x, n, s, lowest, greatest, out);
}

/* Returns the power of two that normalizes a block with the largest magnitude a. */
TF_INLINE float tf_normal_of(float a)
{
    const int exponent = (int)(tf_bits_of(a) >> 23) - 127;
    return tf_power_of_two(exponent < -126 ? 126 : -exponent);
}

/* Returns x times a power of two, rounded to odd. Directed roundings need it for numbers so
 * small next to their block's largest one that normalization leaves nothing of them. */
TF_INLINE float tf_normalised_to_odd(float x, float normal)
{
    const float scaled = x * normal, back = scaled / normal;
    const uint32_t beyond = tf_magnitude_of(back) > tf_magnitude_of(x);
    return back == x ? scaled : tf_float_of((tf_bits_of(scaled) - beyond) | 1);
}

/* Returns the scale code of a residual with the largest magnitude `most`, by every rule
 * except the search. */
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

/* Rounds the residual of numbers whose first level is known, and sets its scale unless it
 * is searched. */
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

/* Writes the scale code that the plan's rule gives a block of x, which is normalized to xs.
 * A search of two levels writes the whole block, rounded to nearest. */
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

/* Rounds the numbers of a block with one level. */
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

/* Rounds a block of finite numbers, with the largest magnitude a > 0. Threads that share a
 * block find such values together, and therefore take the same branches. */
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
    /* Some rules may take the scale 0, which leaves no number. Use 1 in its place. */
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
    if (!searches || plan->rounding != TF_TIES_TO_EVEN) { /* else the search did it */
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

/* Rounds a block of any numbers; `e` is the plan's element. `finite`, which is called at
 * two call sites, is tf_round_finite or a call of it. */
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
        block->code = 0xFF; /* the NaN of float8_e8m0fnu */
        return;
    }
    /* Inf and NaN count as zero and have no residual. Inf becomes the largest number, and
     * NaN stays NaN. */
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
