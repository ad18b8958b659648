/* One instruction of a tensor core whose operands have a scale for each block of k.
 *
 * This header is freestanding and integer-only, and has the steps of mma_model.h. Only the
 * terms differ:
 *
 *      group 1    one product each. Its exponent is the sum of the exponents of a, of b and
 *                 of both scales
 *      group 16   the exact sum of 16 products, times both scales' significands. Its
 *                 exponent is the sum of both scales' exponents, or none if all products
 *                 are zero
 *
 * All terms of an instruction, and c, are one sum. Source: microsoft/MMA-Sim 2.1.
 *
 * Elements are the bits of float32 numbers with at most four significant bits. Scales are
 * codes.
 */
#ifndef TF32DTYPE_TENSOR_CORE_SCALED_MMA_MODEL_H
#define TF32DTYPE_TENSOR_CORE_SCALED_MMA_MODEL_H

#include "tensor_core/mma_model.h"

#if defined(__CUDACC_RTC__)
typedef unsigned char uint8_t;
#endif

struct tf_scaled_model {
    int32_t depth;    /* products of an instruction */
    int32_t block;    /* k that share a scale; divides the depth */
    int32_t group;    /* products added to one term; divides `block` */
    int32_t fraction; /* bits kept below the largest exponent */
    int32_t powers;   /* scales are 2^(code - 127); else E4M3 numbers without a sign */
    int32_t least_a, least_b; /* exponents of the operands' subnormal numbers */
    /* Rules that no recording settles, as in struct tf_mma_model. */
    int32_t floor;
    int32_t zero_c;
    int32_t zero_terms; /* which terms of zero have an exponent */
    int32_t negative_zero;
};

/* Which terms of zero have the exponent of their scales: none, terms whose products cancel,
 * or all. With TF_ALWAYS a zero element or scale has the exponent -126. */
enum { TF_NEVER, TF_IF_CANCELLED, TF_ALWAYS };

enum {
    TF_SCALED_BITS = 3, /* fraction bits of elements and scales */
    TF_SCALED_UNIT = 4 * TF_SCALED_BITS, /* fraction bits of a term */
    TF_NAN_POWER = 0xFF,
    TF_NAN_E4M3 = 0x7F
};

/* -- scales ------------------------------------------------------------------------ */

TF_HOST_AND_DEVICE int tf_scaled_is_nan(const struct tf_scaled_model *model,
                                        uint32_t code)
{
    return model->powers ? code == TF_NAN_POWER : (code & 0x7Fu) == TF_NAN_E4M3;
}

/* Returns the scale significand * 2^(exponent - TF_SCALED_BITS). Subnormal numbers keep the
 * smallest exponent. */
TF_HOST_AND_DEVICE struct tf_mma_number
tf_scaled_scale(const struct tf_scaled_model *model, uint32_t code)
{
    struct tf_mma_number scale;
    if (model->powers) {
        scale.significand = 1u << TF_SCALED_BITS;
        scale.exponent = (int32_t)code - 127;
        return scale;
    }
    const uint32_t field = code >> 3 & 15u, mantissa = code & 7u;
    scale.significand = mantissa | (field ? 8u : 0u);
    scale.exponent = (int32_t)(field ? field : 1u) - 7;
    if (model->zero_terms == TF_ALWAYS && scale.significand == 0) {
        scale.exponent = TF_LEAST_SINGLE;
    }
    return scale;
}

/* -- terms ------------------------------------------------------------------------- */

/* The term significand * 2^(exponent - TF_SCALED_UNIT). */
struct tf_scaled_term {
    int64_t significand;
    int32_t exponent;
};

/* Returns the term of n elements, which are a group or the rest of one. */
TF_HOST_AND_DEVICE struct tf_scaled_term
tf_scaled_group(const struct tf_scaled_model *model, const uint32_t *a, int64_t step_a,
                const uint32_t *b, int64_t step_b, int32_t n, uint32_t scale_a,
                uint32_t scale_b)
{
    const struct tf_mma_number s = tf_scaled_scale(model, scale_a);
    const struct tf_mma_number t = tf_scaled_scale(model, scale_b);
    const int32_t cut = 23 - TF_SCALED_BITS;
    /* Groups of several products have E2M1 elements, which count as fixed point. */
    const int32_t fixed = model->group > 1;
    const int32_t least_a = fixed ? 0 : model->least_a;
    const int32_t least_b = fixed ? 0 : model->least_b;
    struct tf_scaled_term term = {0, s.exponent + t.exponent};
    uint32_t some = 0; /* bits that are 0 if all products are zero */
    for (int32_t k = 0; k < n; k++) {
        const uint32_t p = a[k * step_a], q = b[k * step_b];
        const struct tf_mma_number x = tf_mma_decode(p, least_a);
        const struct tf_mma_number y = tf_mma_decode(q, least_b);
        const int32_t shift = fixed ? (x.exponent + y.exponent) & 7 : 0;
        if (!fixed) {
            term.exponent += x.significand ? x.exponent : TF_LEAST_SINGLE;
            term.exponent += y.significand ? y.exponent : TF_LEAST_SINGLE;
        }
        const int64_t product =
            (int64_t)((x.significand >> cut) * (y.significand >> cut) << shift);
        some |= (uint32_t)product;
        term.significand += (p ^ q) >> 31 ? -product : product;
    }
    const uint32_t scale = s.significand * t.significand;
    term.significand *= (int64_t)scale;
    const int canceled = model->zero_terms == TF_IF_CANCELLED && some && scale;
    if (term.significand == 0 && !canceled && model->zero_terms != TF_ALWAYS) {
        term.exponent = TF_NO_EXPONENT;
    }
    return term;
}

/* -- an instruction ---------------------------------------------------------------- */

/* Returns c + the products of up to model->depth elements, which are `step_a` and `step_b`
 * apart. Zeros follow them. Each block has one scale. */
TF_HOST_AND_DEVICE uint32_t tf_scaled_instruction(
    const struct tf_scaled_model *model, const uint32_t *a, int64_t step_a,
    const uint8_t *scales_a, const uint32_t *b, int64_t step_b, const uint8_t *scales_b,
    int32_t n, uint32_t c, struct tf_mma_trace *trace)
{
    struct tf_scaled_term terms[TF_DEEPEST];
    int32_t count = 0, nan = 0;
    /* 1. Compute the terms and the largest exponent. */
    const struct tf_mma_number z = tf_mma_decode(c, TF_LEAST_SINGLE);
    const int32_t exponent_z = z.significand ? z.exponent : model->zero_c;
    int32_t greatest = exponent_z;
    greatest = greatest > model->floor ? greatest : model->floor;
    for (int32_t k = 0; k < n; k += model->group) {
        const uint32_t s = scales_a[k / model->block], t = scales_b[k / model->block];
        const int32_t here = n - k < model->group ? n - k : model->group;
        const struct tf_scaled_term term = tf_scaled_group(
            model, a + k * step_a, step_a, b + k * step_b, step_b, here, s, t);
        nan |= tf_scaled_is_nan(model, s) || tf_scaled_is_nan(model, t);
        greatest = term.exponent > greatest ? term.exponent : greatest;
        terms[count++] = term;
    }
    const uint32_t special = tf_mma_special(0, a, step_a, b, step_b, n, c);
    if (nan || special) {
        return nan ? tf_mma_nan(0) : special;
    }
    /* 2. and 3. Align and add. */
    const int32_t unit = greatest - model->fraction;
    int64_t sum = tf_mma_align(
        z.significand, z.significand ? z.exponent - 23 - unit : 0, c >> 31);
    tf_mma_tell(trace, TF_TOLD_TERM, -1, c >> 31, z.significand, z.exponent - 23, exponent_z,
                sum);
    for (int32_t i = 0; i < count; i++) {
        const int64_t x = terms[i].significand;
        const int32_t shift = x ? terms[i].exponent - TF_SCALED_UNIT - unit : 0;
        const uint64_t term = (uint64_t)(x < 0 ? -x : x);
        const int64_t kept = tf_mma_align(term, shift, x < 0);
        sum += kept;
        tf_mma_tell(trace, TF_TOLD_TERM, i, x < 0, term, shift + unit, terms[i].exponent,
                    kept);
    }
    /* 4. Round. */
    const uint64_t magnitude = sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum;
    tf_mma_tell(trace, TF_TOLD_SUM, 0, sum < 0, magnitude, unit, greatest, sum);
    return tf_mma_round(magnitude, unit, sum < 0, 23, 0, 0, model->negative_zero, trace);
}

/* Returns c + the products of n elements, instruction after instruction. */
TF_HOST_AND_DEVICE uint32_t tf_scaled_chain(const struct tf_scaled_model *model,
                                            const uint32_t *a, int64_t step_a,
                                            const uint8_t *scales_a, const uint32_t *b,
                                            int64_t step_b, const uint8_t *scales_b,
                                            int64_t n, uint32_t c,
                                            struct tf_mma_trace *trace)
{
    for (int64_t k = 0; k < n; k += model->depth) {
        const int64_t rest = n - k, block = k / model->block;
        const int32_t here = (int32_t)(rest < model->depth ? rest : model->depth);
        const uint32_t before = c;
        tf_mma_tell_ks(trace, a, step_a, b, step_b, k, here);
        c = tf_scaled_instruction(model, a + k * step_a, step_a, scales_a + block,
                                  b + k * step_b, step_b, scales_b + block, here, c,
                                  trace);
        tf_mma_tell(trace, TF_TOLD_GROUP, 0, 0, before, 0, 0, c);
    }
    return c;
}

#endif
