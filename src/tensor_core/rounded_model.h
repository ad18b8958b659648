/* One group of a matrix unit that rounds differently from NVIDIA's tensor cores
 * (mma_model.h), and the chain of groups that an instruction is. Such units are AMD's
 * matrix cores, the dot products of CPUs, and chains of fused multiply-adds.
 *
 * This header is freestanding and integer-only, as mma_model.h is, and the reference for
 * the fast loops. It has three kinds of arithmetic:
 *
 *      TF_FUSED       round the exact sum of the accumulator and the group's products once.
 *                     With one product this is a fused multiply-add
 *      TF_STEPWISE    round each product, then each sum of two neighbors, and last the sum
 *                     with the accumulator
 *      TF_TWO_STAGES  truncate the products to a unit set by their largest exponent, and
 *                     add them. Bring this sum and the accumulator to the larger exponent of
 *                     the two, rounding downward, and add them. Round the total downward
 *                     to 31 fraction bits, then to nearest
 *
 * Numbers are the bits of float32, in which all operand formats are exact. Sources:
 * arXiv:2511.10909 and microsoft/MMA-Sim for AMD; Intel's and Arm's manuals for CPUs.
 * docs/benchmarks/verification.md lists the devices on which each rule was seen.
 */
#ifndef TF32DTYPE_TENSOR_CORE_ROUNDED_MODEL_H
#define TF32DTYPE_TENSOR_CORE_ROUNDED_MODEL_H

#include "tensor_core/mma_model.h"

enum { TF_FUSED, TF_STEPWISE, TF_TWO_STAGES };

enum { TF_KEEP_SUBNORMAL, TF_FLUSH_TO_PLUS_ZERO, TF_FLUSH_TO_SIGNED_ZERO };

struct tf_rounded_model {
    int32_t arithmetic;
    int32_t depth;             /* products of a group */
    int32_t instruction_depth; /* k of whole groups, filled up with zeros */
    /* Number of sums side by side: lane l has k = l, l + lanes and so on. TF_TWO_STAGES
     * truncates and adds a group's products in each lane. TF_FUSED has one chain per lane,
     * which begins at `start`, and adds the lanes' sum to the accumulator. 0: no lanes, and
     * the accumulator goes through all groups. */
    int32_t lanes;
    uint32_t start;
    int32_t odd_first; /* the odd k of each two first; groups are one product */
    int32_t to_odd;    /* round to odd, and flush results; else to nearest even */
    /* Whether subnormal operands and accumulators are flushed, and whether subnormal
     * results become zeros of their sign (never in two stages). */
    int32_t flush_operands, flush_results;
    int32_t least_a, least_b; /* exponents of the operands' smallest normal numbers */
};

enum {
    /* Fraction bits in two stages: kept of each term below the largest exponent, and kept
     * of the total. */
    TF_TWO_STAGES_FRACTION = 24,
    TF_TWO_STAGES_KEPT = 31,
    TF_DEEPEST_ROUNDED = 16 /* most products of a group */
};

/* -- exact sums -------------------------------------------------------------------- */

enum {
    TF_EXACT_UNIT = -298, /* exponent of the smallest product of two float32 numbers */
    TF_EXACT_LIMBS = 19   /* of 32 bits: up to 2^256, with room for carries */
};

/* An exact sum, whose value is that of all limb[i] * 2^(32 i + TF_EXACT_UNIT). */
struct tf_exact_sum {
    int64_t limb[TF_EXACT_LIMBS];
    int32_t minus_zeros; /* whether all added terms were -0 */
};

TF_HOST_AND_DEVICE struct tf_exact_sum tf_exact_nothing(void)
{
    struct tf_exact_sum sum;
    for (int32_t i = 0; i < TF_EXACT_LIMBS; i++) {
        sum.limb[i] = 0;
    }
    sum.minus_zeros = 1;
    return sum;
}

/* Adds significand * 2^unit; the significand has 48 bits or fewer. */
TF_HOST_AND_DEVICE void tf_exact_add(struct tf_exact_sum *sum, uint64_t significand,
                                     int32_t unit, int negative)
{
    sum->minus_zeros &= negative && significand == 0;
    if (significand == 0) {
        return;
    }
    const int32_t place = unit - TF_EXACT_UNIT, at = place / 32, shift = place % 32;
    const uint64_t low = (significand & 0xFFFFFFFFu) << shift;
    const uint64_t high = (significand >> 32) << shift; /* for the next limb: 48 bits */
    const int64_t parts[3] = {(int64_t)(low & 0xFFFFFFFFu),
                              (int64_t)((low >> 32) + (high & 0xFFFFFFFFu)),
                              (int64_t)(high >> 32)};
    for (int32_t i = 0; i < 3 && at + i < TF_EXACT_LIMBS; i++) {
        sum->limb[at + i] += negative ? -parts[i] : parts[i];
    }
}

/* Returns the magnitude of a sum in units of 2^unit, or 0, and its sign in *negative. The
 * first of the 64 bits is one. The last bit is one, too, if lower bits are lost. */
TF_HOST_AND_DEVICE uint64_t tf_exact_magnitude(struct tf_exact_sum sum, int32_t *unit,
                                               int *negative)
{
    int64_t carry = 0;
    for (int32_t i = 0; i < TF_EXACT_LIMBS; i++) {
        carry += sum.limb[i];
        sum.limb[i] = carry & 0xFFFFFFFF;
        carry >>= 32; /* rounds downward with all compilers */
    }
    *negative = carry < 0;
    int64_t one = 1;
    for (int32_t i = 0; *negative && i < TF_EXACT_LIMBS; i++) { /* two's complement */
        one += sum.limb[i] ^ 0xFFFFFFFF;
        sum.limb[i] = one & 0xFFFFFFFF;
        one >>= 32;
    }
    int32_t top = TF_EXACT_LIMBS - 1;
    while (top > 0 && sum.limb[top] == 0) {
        top--;
    }
    if (sum.limb[top] == 0) {
        return 0;
    }
    const int32_t room = 31 - tf_mma_top((uint64_t)sum.limb[top]);
    const uint64_t next = top > 0 ? (uint64_t)sum.limb[top - 1] : 0;
    const uint64_t last = (top > 1 ? (uint64_t)sum.limb[top - 2] : 0) << room;
    uint64_t lost = last & 0xFFFFFFFFu;
    for (int32_t i = 0; i < top - 2; i++) {
        lost |= (uint64_t)sum.limb[i];
    }
    *unit = 32 * (top - 1) + TF_EXACT_UNIT - room;
    return ((uint64_t)sum.limb[top] << 32 | next) << room | last >> 32 | (lost != 0);
}

/* -- one number -------------------------------------------------------------------- */

/* Returns a number as the unit reads it. 2^least is its format's smallest normal number. */
TF_HOST_AND_DEVICE uint32_t tf_rounded_read(const struct tf_rounded_model *model,
                                            uint32_t bits, int32_t least)
{
    const uint32_t normal = (uint32_t)(least + 127) << 23;
    if (model->flush_operands == TF_KEEP_SUBNORMAL ||
        (bits & TF_MAGNITUDE_BITS) >= normal) {
        return bits;
    }
    return model->flush_operands == TF_FLUSH_TO_SIGNED_ZERO ? bits & TF_SIGN_BIT : 0;
}

/* Returns magnitude * 2^unit as float32; the first of the magnitude's 64 bits is one. */
TF_HOST_AND_DEVICE uint32_t tf_rounded_result(const struct tf_rounded_model *model,
                                              uint64_t magnitude, int32_t unit,
                                              int negative, struct tf_mma_trace *trace)
{
    const uint32_t sign = negative ? TF_SIGN_BIT : 0;
    const int32_t exponent = unit + 63;
    if (model->flush_results && exponent < TF_LEAST_SINGLE) {
        /* A result that rounds up to 2^-126 with 24 bits is normal. */
        const int becomes_normal = exponent == TF_LEAST_SINGLE - 1 && !model->to_odd &&
                                   magnitude >> 39 == 0x1FFFFFF;
        return becomes_normal ? sign | 1u << 23 : sign;
    }
    if (model->to_odd) {
        const uint64_t rest = magnitude & ((1ull << 40) - 1);
        magnitude = (magnitude >> 40 | (rest != 0)) << 40;
    }
    /* Drop two bits but keep their OR in the last bit: rounding needs no more. */
    return tf_mma_round(magnitude >> 2 | ((magnitude & 3) != 0), unit + 2, negative, 23, 0,
                        1, 1, trace);
}

/* -- fused groups ------------------------------------------------------------------ */

TF_HOST_AND_DEVICE void tf_exact_add_product(struct tf_exact_sum *sum, uint32_t x,
                                             uint32_t y, struct tf_mma_trace *trace)
{
    const struct tf_mma_number p = tf_mma_decode(x & TF_MAGNITUDE_BITS, TF_LEAST_SINGLE);
    const struct tf_mma_number q = tf_mma_decode(y & TF_MAGNITUDE_BITS, TF_LEAST_SINGLE);
    const uint64_t product = (uint64_t)p.significand * q.significand;
    const int32_t unit = p.exponent + q.exponent - 46;
    tf_exact_add(sum, product, unit, (int)((x ^ y) >> 31));
    tf_mma_tell(trace, TF_TOLD_TERM, 0, (x ^ y) >> 31, product, unit, 0, 0);
}

enum { TF_ONE = 0x3F800000 };

/* Returns the exact sum of c and the products of n elements, rounded once. */
TF_HOST_AND_DEVICE uint32_t tf_rounded_fused(const struct tf_rounded_model *model,
                                             const uint32_t *a, const uint32_t *b,
                                             int32_t n, uint32_t c,
                                             struct tf_mma_trace *trace)
{
    const uint32_t special = tf_mma_special(0, a, 1, b, 1, n, c);
    if (special) {
        return special;
    }
    struct tf_exact_sum sum = tf_exact_nothing();
    for (int32_t k = 0; k < n; k++) {
        tf_exact_add_product(&sum, a[k], b[k], trace);
    }
    tf_exact_add_product(&sum, c, TF_ONE, trace);
    int32_t unit;
    int negative;
    const uint64_t magnitude = tf_exact_magnitude(sum, &unit, &negative);
    if (magnitude == 0) {
        return sum.minus_zeros ? TF_SIGN_BIT : 0;
    }
    return tf_rounded_result(model, magnitude, unit, negative, trace);
}

TF_HOST_AND_DEVICE uint32_t tf_rounded_add(const struct tf_rounded_model *model,
                                           uint32_t x, uint32_t y,
                                           struct tf_mma_trace *trace)
{
    const uint32_t one = TF_ONE;
    const uint32_t sum = tf_rounded_fused(model, &x, &one, 1, y, trace);
    tf_mma_tell(trace, TF_TOLD_ADDITION, 0, 0, x, y, 0, sum);
    return sum;
}

/* -- groups whose every step is rounded ---------------------------------------------- */

TF_HOST_AND_DEVICE uint32_t tf_rounded_steps(const struct tf_rounded_model *model,
                                             const uint32_t *a, const uint32_t *b,
                                             uint32_t c, struct tf_mma_trace *trace)
{
    uint32_t sums[TF_DEEPEST_ROUNDED];
    for (int32_t k = 0; k < model->depth; k++) {
        /* Adding -0 changes no product, not even one of zeros. */
        sums[k] = tf_rounded_fused(model, a + k, b + k, 1, TF_SIGN_BIT, trace);
        tf_mma_tell(trace, TF_TOLD_GROUP, 0, 0, TF_SIGN_BIT, 0, 0, sums[k]);
    }
    for (int32_t n = model->depth; n > 1; n /= 2) {
        for (int32_t k = 0; k < n / 2; k++) {
            sums[k] = tf_rounded_add(model, sums[2 * k], sums[2 * k + 1], trace);
        }
    }
    return tf_rounded_add(model, c, sums[0], trace);
}

/* -- groups in two stages ------------------------------------------------------------ */

/* Returns x * 2^shift, rounded downward. */
TF_HOST_AND_DEVICE int64_t tf_rounded_down(int64_t x, int32_t shift)
{
    const int32_t right = shift < -63 ? 63 : -shift;
    return shift > 0 ? x * ((int64_t)1 << shift) : x >> right;
}

/* A sum of products, of the value significand * 2^(exponent - TF_TWO_STAGES_FRACTION). */
struct tf_rounded_sum {
    int64_t significand;
    int32_t exponent; /* the largest of the products that are not zero */
};

TF_HOST_AND_DEVICE uint64_t tf_rounded_magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* Returns the significand of a sum, rounded downward, in units of
 * 2^(exponent - TF_TWO_STAGES_FRACTION - more). */
TF_HOST_AND_DEVICE int64_t tf_rounded_bring(struct tf_rounded_sum sum, int32_t exponent,
                                            int32_t more, struct tf_mma_trace *trace)
{
    const int64_t kept =
        tf_rounded_down(sum.significand, sum.exponent - exponent + more);
    tf_mma_tell(trace, TF_TOLD_BROUGHT, 0, sum.significand < 0,
                tf_rounded_magnitude(sum.significand),
                sum.exponent - TF_TWO_STAGES_FRACTION, exponent, kept);
    return kept;
}

/* Truncates and adds the products of one lane: k = first, first + lanes and so on. */
TF_HOST_AND_DEVICE struct tf_rounded_sum
tf_rounded_cut_products(const struct tf_rounded_model *model, const uint32_t *a,
                        const uint32_t *b, int32_t first, struct tf_mma_trace *trace)
{
    struct tf_rounded_sum sum = {0, TF_NO_EXPONENT};
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t k = first; k < model->depth; k += model->lanes) {
            const struct tf_mma_number x =
                tf_mma_decode(a[k] & TF_MAGNITUDE_BITS, model->least_a);
            const struct tf_mma_number y =
                tf_mma_decode(b[k] & TF_MAGNITUDE_BITS, model->least_b);
            const uint64_t product = (uint64_t)x.significand * y.significand;
            const int32_t exponent = x.exponent + y.exponent;
            if (product == 0) {
                continue;
            }
            if (pass == 1) {
                const int64_t kept = tf_mma_align(
                    product, exponent - 46 - sum.exponent + TF_TWO_STAGES_FRACTION,
                    (a[k] ^ b[k]) >> 31);
                sum.significand += kept;
                tf_mma_tell(trace, TF_TOLD_TERM, k, (a[k] ^ b[k]) >> 31, product,
                            exponent - 46, exponent, kept);
            } else if (exponent > sum.exponent) {
                sum.exponent = exponent;
            }
        }
    }
    return sum;
}

/* Returns the Inf or NaN that a group in two stages becomes, or 0. Products out of
 * float32's range are Inf. */
TF_HOST_AND_DEVICE uint32_t tf_rounded_two_stage_special(
    const struct tf_rounded_model *model, const uint32_t *a, const uint32_t *b, uint32_t c)
{
    uint32_t p[TF_DEEPEST_ROUNDED], ones[TF_DEEPEST_ROUNDED];
    for (int32_t k = 0; k < model->depth; k++) {
        const struct tf_rounded_model plain = {.arithmetic = TF_FUSED};
        p[k] = tf_rounded_fused(&plain, a + k, b + k, 1, TF_SIGN_BIT, 0);
        ones[k] = TF_ONE;
    }
    return tf_mma_special(0, p, 1, ones, 1, model->depth, c);
}

TF_HOST_AND_DEVICE uint32_t tf_rounded_two_stages(const struct tf_rounded_model *model,
                                                  const uint32_t *a, const uint32_t *b,
                                                  uint32_t c, struct tf_mma_trace *trace)
{
    const uint32_t special = tf_rounded_two_stage_special(model, a, b, c);
    if (special) {
        return special;
    }
    /* 1. Add the products. */
    struct tf_rounded_sum sum = tf_rounded_cut_products(model, a, b, 0, trace);
    for (int32_t lane = 1; lane < model->lanes; lane++) {
        const struct tf_rounded_sum other =
            tf_rounded_cut_products(model, a, b, lane, trace);
        const int32_t greatest =
            other.exponent > sum.exponent ? other.exponent : sum.exponent;
        sum.significand = tf_rounded_bring(sum, greatest, 0, trace) +
                          tf_rounded_bring(other, greatest, 0, trace);
        sum.exponent = greatest;
    }
    /* 2. Add the accumulator, in units of 2^unit. */
    const struct tf_mma_number z = tf_mma_decode(c, TF_LEAST_SINGLE);
    const int32_t greatest = sum.exponent > z.exponent ? sum.exponent : z.exponent;
    const int32_t more = TF_TWO_STAGES_KEPT + 1 - TF_TWO_STAGES_FRACTION;
    int32_t unit = greatest - TF_TWO_STAGES_FRACTION - more;
    int64_t total = tf_rounded_bring(sum, greatest, more, trace);
    const int64_t signed_c = c >> 31 ? -(int64_t)z.significand : (int64_t)z.significand;
    const int32_t below = greatest - z.exponent;
    const int dropped = model->lanes > 1 && below > TF_TWO_STAGES_FRACTION + 1;
    const int64_t kept_c =
        dropped ? 0 : tf_rounded_down(signed_c, 1 - below) * ((int64_t)1 << more);
    total += kept_c;
    tf_mma_tell(trace, TF_TOLD_BROUGHT, dropped, signed_c < 0, z.significand, z.exponent - 23,
                greatest, kept_c);
    tf_mma_tell(trace, TF_TOLD_SUM, 0, total < 0, tf_rounded_magnitude(total), unit,
                greatest, total);
    if (total == 0) {
        return 0;
    }
    /* 3. Round twice: downward, then to nearest. */
    const int32_t top = tf_mma_top(tf_rounded_magnitude(total)) + unit;
    const int32_t last =
        (top > TF_LEAST_SINGLE ? top : TF_LEAST_SINGLE) - TF_TWO_STAGES_KEPT;
    if (last > unit) {
        total = tf_rounded_down(total, unit - last);
        unit = last;
    }
    return tf_mma_round(tf_rounded_magnitude(total), unit, total < 0, 23, 0, 1, 1, trace);
}

/* -- chains ------------------------------------------------------------------------ */

TF_HOST_AND_DEVICE uint32_t tf_rounded_group(const struct tf_rounded_model *model,
                                             const uint32_t *a, const uint32_t *b,
                                             uint32_t c, struct tf_mma_trace *trace)
{
    if (model->arithmetic == TF_STEPWISE) {
        return tf_rounded_steps(model, a, b, c, trace);
    }
    const uint32_t result =
        model->arithmetic == TF_FUSED
            ? tf_rounded_fused(model, a, b, model->depth, c, trace)
            : tf_rounded_two_stages(model, a, b, c, trace);
    tf_mma_tell(trace, TF_TOLD_GROUP, 0, 0, c, 0, 0, result);
    return result;
}

/* Adds groups of an instruction of n elements, with k = first, first + by and so on. */
TF_HOST_AND_DEVICE uint32_t tf_rounded_groups(const struct tf_rounded_model *model,
                                              const uint32_t *a, int64_t step_a,
                                              const uint32_t *b, int64_t step_b,
                                              int64_t n, int32_t first, int32_t by,
                                              uint32_t c, struct tf_mma_trace *trace)
{
    uint32_t x[TF_DEEPEST_ROUNDED], y[TF_DEEPEST_ROUNDED];
    int32_t count = 0;
    for (int32_t i = first; i < model->instruction_depth; i += by) {
        const int32_t k = model->odd_first ? i ^ 1 : i;
        x[count] = k < n ? tf_rounded_read(model, a[k * step_a], model->least_a) : 0;
        y[count] = k < n ? tf_rounded_read(model, b[k * step_b], model->least_b) : 0;
        tf_mma_tell_k(trace, k, x[count], y[count]);
        if (++count == model->depth) {
            c = tf_rounded_group(model, x, y, c, trace);
            count = 0;
        }
    }
    return c;
}

/* Returns c + the products of n elements, instruction after instruction. */
TF_HOST_AND_DEVICE uint32_t tf_rounded_accumulate(const struct tf_rounded_model *model,
                                                  const uint32_t *a, int64_t step_a,
                                                  const uint32_t *b, int64_t step_b,
                                                  int64_t n, uint32_t c,
                                                  struct tf_mma_trace *trace)
{
    const int chains = model->arithmetic == TF_FUSED && model->lanes;
    for (int64_t k = 0; k < n; k += model->instruction_depth) {
        const uint32_t *x = a + k * step_a, *y = b + k * step_b;
        if (trace && k > 0) {
            trace->first += model->instruction_depth;
        }
        c = tf_rounded_read(model, c, TF_LEAST_SINGLE);
        if (!chains) {
            c = tf_rounded_groups(model, x, step_a, y, step_b, n - k, 0, 1, c,
                                  trace);
            continue;
        }
        uint32_t sum = 0;
        for (int32_t lane = 0; lane < model->lanes; lane++) {
            const uint32_t more = tf_rounded_groups(model, x, step_a, y, step_b, n - k,
                                                    lane, model->lanes, model->start,
                                                    trace);
            sum = lane ? tf_rounded_add(model, sum, more, trace) : more;
        }
        c = tf_rounded_add(model, c, sum, trace);
    }
    return c;
}

#endif
