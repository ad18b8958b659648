/* Blocks of numbers with a common scale: from float32 to codes and back, one block.
 *
 * Which scale a block takes (every rule), which codes its numbers become, and what those
 * are worth. block.h says what codes are; this is plain C in loops over 16 lanes, which
 * compilers make vectors of, freestanding, so that C and CUDA compile the same text.
 * Nothing may be contracted: `tf_fma` is written where one rounding is meant.
 *
 * A block is first normalised: xs = x 2^-e and Ss = S 2^-e, so that its greatest number
 * lies in [1, 2) (below 2^-126 as far as e = -126 goes). What is below 2^-149 then is
 * lost for the search and the residual, but not for the codes.
 */
#ifndef TF32DTYPE_BLOCK_ROUND_H
#define TF32DTYPE_BLOCK_ROUND_H

#include "block.h"

struct tf_block_layout {
    int element;  /* of tf_elements */
    int residual; /* another one; -1: none */
    int scale;    /* of tf_scales */
    int block;    /* numbers: 16, 32, 64 or 128 */
    float tensor; /* the scale of all scales */
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

enum {
    TF_BLOCK_LANES = 16,
    TF_BLOCK_MOST = 128,    /* numbers of a block */
    TF_SCALE_ROOM = 256 + 48, /* codes of a scale, and a window beyond the last one */
};

/* All that blocks of one array have in common. */
struct tf_block_plan {
    struct tf_block_layout layout;
    int rule, rounding, poison;
    int32_t least, top;           /* codes of scales of blocks that are not zero */
    float greatest, lowest;       /* M; the least number of a residual */
    float limit;                  /* L: what the search lets the first code reach */
    float residual_greatest;
    /* S and R of every code; the last one's beyond it. */
    float scales[TF_SCALE_ROOM], residual_scales[TF_SCALE_ROOM];
};

/* Kernels on a GPU are compiled for these. */
#ifndef TF_PLAN_RESIDUAL
#define TF_PLAN_RESIDUAL(plan) ((plan)->layout.residual)
#define TF_PLAN_SEARCHES(plan) ((plan)->rule == TF_RULE_MSE)
#endif

/* What a block becomes. The numbers of both levels lie on the element's grid, or are
 * such that rounding them to it, to nearest, is what is wanted. */
struct tf_block {
    uint32_t code, residual_code; /* of the scales */
    uint32_t special;             /* some number is not finite */
    float hi[TF_BLOCK_MOST], lo[TF_BLOCK_MOST];
};

/* What is rare, and is not to be part of every loop. */
#if defined(__CUDACC__)
#define TF_RARE static __noinline__
#else
#define TF_RARE static __attribute__((noinline, unused))
#endif

/* Before a loop over lanes: a vector each, not sixteen numbers one by one. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define TF_LANES_OF _Pragma("GCC unroll 1")
#else
#define TF_LANES_OF
#endif

TF_INLINE float tf_fma(float x, float y, float z)
{
#if defined(__CUDACC__)
    return __fmaf_rn(x, y, z);
#else
    return __builtin_fmaf(x, y, z);
#endif
}

TF_INLINE double tf_square_root(double x)
{
#if defined(__CUDACC__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

TF_INLINE float tf_magnitude_of(float x)
{
    return tf_float_of(tf_bits_of(x) & UINT32_C(0x7FFFFFFF));
}

TF_INLINE float tf_with_sign(float magnitude, float sign)
{
    return tf_float_of(tf_bits_of(magnitude) | (tf_bits_of(sign) & UINT32_C(0x80000000)));
}

TF_INLINE float tf_power_of_two(int exponent) /* from -149 to 127 */
{
    return tf_float_of(exponent < -126 ? UINT32_C(1) << (exponent + 149)
                                       : (uint32_t)(exponent + 127) << 23);
}

/* The greatest magnitude of n numbers, as bits. */
TF_INLINE uint32_t tf_greatest_magnitude(const float *x, int n)
{
    uint32_t most = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t magnitude = tf_bits_of(x[i]) & UINT32_C(0x7FFFFFFF);
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

/* -- elements ---------------------------------------------------------------------- */

TF_INLINE float tf_element_greatest(struct tf_element e)
{
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        return tf_float_of(tf_single_of_item(f, tf_maximum_magnitude(f)));
    }
    return (float)e.greatest * tf_power_of_two(-e.fraction);
}

/* Bits of the fraction beside the leading one. */
TF_INLINE int tf_element_mantissa(struct tf_element e)
{
    return e.format >= 0 ? tf_format_rows[e.format]->mantissa_bits : e.width - 2;
}

/* The nearest number of the element, ties to even; of one within its range. */
TF_INLINE float tf_nearest_within(struct tf_element e, float x)
{
    /* A sum beside 3/2 2^23 units is rounded to units. */
    float magic = 12582912.0f * tf_power_of_two(-e.fraction);
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        const uint32_t exponent = tf_bits_of(x) & UINT32_C(0x7F800000);
        const uint32_t normal = tf_least_normal(f);
        const uint32_t unit = exponent > normal ? exponent : normal;
        magic = tf_float_of(unit + ((uint32_t)tf_cut(f) << 23 | UINT32_C(0x00400000)));
    }
    return x + magic - magic;
}

TF_INLINE float tf_between(float least, float x, float greatest)
{
    x = x < greatest ? x : greatest;
    return x > least ? x : least;
}

/* With the sign that a zero has, where the element has it. */
TF_INLINE float tf_nearest_signed(struct tf_element e, float x)
{
    const float nearest = tf_nearest_within(e, x);
    return e.format >= 0 ? tf_with_sign(nearest, x) : nearest;
}

/* The number that follows q, one of the element's, upward or downward; q at the end. */
TF_INLINE float tf_next_element(struct tf_element e, float greatest, float q, int up)
{
    float next = up ? q + tf_power_of_two(-e.fraction) : q - tf_power_of_two(-e.fraction);
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        const uint32_t sign = tf_bits_of(q) & UINT32_C(0x80000000);
        const uint32_t bits = tf_bits_of(q) ^ sign, normal = tf_least_normal(f);
        const uint32_t one = UINT32_C(1) << tf_cut(f);
        const uint32_t inward = (sign >> 31) ^ (uint32_t)!up;
        const float unit = tf_power_of_two(tf_least_exponent(f));
        const float moved = tf_float_of((inward ? bits - one : bits + one) | sign);
        const float stepped = up ? q + unit : q - unit;
        next = bits < normal + inward ? stepped : moved;
    }
    return tf_magnitude_of(next) > greatest ? q : next;
}

/* The code of a number of the grid, or the nearest one's; NaN's, where there is one. */
TF_INLINE uint32_t tf_element_code(struct tf_element e, float x)
{
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        return tf_code_of_number(f, tf_bits_of(x));
    }
    const float units = tf_nearest_within(e, x) * (float)(1 << e.fraction);
    return (uint32_t)(int32_t)units & ((UINT32_C(1) << e.width) - 1);
}

/* A float32 as an integer of 24 bits, the first of them set, times a power of two. */
TF_INLINE uint32_t tf_significand(float x, int *exponent)
{
    uint32_t bits = tf_bits_of(x) & UINT32_C(0x7FFFFFFF);
    *exponent = -150;
    if (bits < UINT32_C(0x00800000)) {
        bits = tf_bits_of(tf_float_of(bits) * 16777216.0f); /* 2^24 */
        *exponent -= 24;
    }
    *exponent += (int)(bits >> 23);
    return (bits & UINT32_C(0x007FFFFF)) | UINT32_C(0x00800000);
}

/* x / s, rounded once to the element by any rounding, saturated: the truth. s > 0.
 * Whether zero is downward or upward from here is what `below_zero` tells: it is the
 * sign of the whole number that a residual x belongs to. */
TF_RARE float tf_round_quotient(struct tf_element e, float lowest, float greatest,
                                float x, float s, enum tf_rounding rounding,
                                uint64_t draw, int below_zero)
{
    const int negative = (int)(tf_bits_of(x) >> 31);
    if (x == 0) {
        return e.format >= 0 ? x : 0;
    }
    int ex, es;
    const uint64_t p = tf_significand(x, &ex), q = tf_significand(s, &es);
    /* 1. The unit in the last place that the result has. */
    const int top = ex - es - (p < q);
    int unit = -e.fraction;
    if (e.format >= 0) {
        const struct tf_format f = *tf_format_rows[e.format];
        const int least = tf_least_exponent(f);
        unit = top - f.mantissa_bits < least ? least : top - f.mantissa_bits;
    }
    const float bound = negative ? -lowest : greatest;
    if (top > 20) {
        return negative ? -bound : bound;
    }
    /* 2. Quotient and fraction: 64 bits of it, and whether that is all. */
    const int shift = ex - es - unit;
    const uint64_t dividend = shift > 0 ? p << shift : p;
    uint64_t kept = dividend / q, rest = dividend % q, fraction = 0;
    for (int i = 0; i < 2; i++) {
        fraction = fraction << 32 | (rest << 32) / q;
        rest = (rest << 32) % q;
    }
    int more = rest != 0;
    if (shift < -64) {
        kept = fraction = 0;
        more = 1;
    } else if (shift < 0) {
        more |= shift > -64 ? fraction << (64 + shift) != 0 : fraction != 0;
        fraction = kept << (64 + shift) | (shift > -64 ? fraction >> -shift : 0);
        kept = 0;
    }
    /* 3. Round. */
    int up = tf_rounds_up(rounding, negative, kept, fraction, more, draw);
    if (negative != below_zero) { /* toward zero is away from this zero */
        const uint64_t half = UINT64_C(1) << 63;
        up = rounding == TF_TOWARD_ZERO    ? fraction != 0 || more
             : rounding == TF_TIES_TO_AWAY ? fraction > half || (fraction == half && more)
                                           : up;
    }
    kept += (uint64_t)up;
    float magnitude = (float)kept * tf_power_of_two(unit);
    magnitude = magnitude < bound ? magnitude : bound;
    return negative && (e.format >= 0 || kept) ? -magnitude : magnitude;
}

/* x / s rounded to odd: what a later rounding to an element takes for the quotient
 * itself. Where that is not below 2^-100, nor s beyond 2^+-100. */
TF_INLINE float tf_quotient_to_odd(float x, float s)
{
    const float q = x / s;
    const float rest = tf_fma(-q, s, x);
    const uint32_t bits = tf_bits_of(q);
    const uint32_t below = (bits ^ tf_bits_of(rest)) >> 31; /* q is too great */
    return rest == 0 ? q : tf_float_of((bits - below) | 1);
}

/* -- the plan ---------------------------------------------------------------------- */

TF_RARE void tf_block_plan_fill(struct tf_block_plan *plan,
                                  struct tf_block_layout layout, int rule, int rounding,
                                  int poison)
{
    const struct tf_element e = tf_elements[layout.element];
    const struct tf_scale s = tf_scales[layout.scale];
    const int two = layout.residual >= 0;
    const struct tf_element lo = tf_elements[two ? layout.residual : layout.element];
    plan->layout = layout;
    plan->rule = rule;
    plan->rounding = rounding;
    plan->poison = poison;
    plan->least = s.kind == TF_SCALE_POWERS ? 0 : 1;
    plan->top = s.kind == TF_SCALE_POWERS ? 254 : s.kind == TF_SCALE_E4M3 ? 0x7E : 255;
    plan->greatest = tf_element_greatest(e);
    /* Half a unit beyond the greatest still becomes it. Where the numbers lie evenly, a
     * little less range is worth some precision. */
    const int mantissa = tf_element_mantissa(e);
    const int wide = layout.element == tf_element_float8_e4m3fn ||
                     layout.element == tf_element_float8_e5m2 ||
                     layout.element == tf_element_float6_e3m2fn;
    const int exponent = (int)(tf_bits_of(plan->greatest) >> 23) - 127;
    plan->limit = wide ? plan->greatest + tf_power_of_two(exponent - mantissa - 1)
                       : 1.25f * plan->greatest;
    plan->residual_greatest = tf_element_greatest(lo);
    plan->lowest = lo.format >= 0 || rule == TF_RULE_PUBLISHED
                       ? -plan->residual_greatest
                       : (float)lo.least * tf_power_of_two(-lo.fraction);
    for (int c = 0; c < TF_SCALE_ROOM; c++) {
        const uint32_t code = (uint32_t)(c < plan->top ? c : plan->top);
        plan->scales[c] = tf_block_scale(s, layout.tensor, code);
        plan->residual_scales[c] = tf_residual_scale(s, lo, code);
    }
}

/* -- scales of blocks -------------------------------------------------------------- */

/* The least code with t <= limit * factor * scale, product by product rounded to float32
 * but the last; the greatest one, if none is. */
TF_RARE int32_t tf_least_code(const struct tf_block_plan *plan, const float *scales,
                                float factor, double limit, float t)
{
    int32_t least = plan->least, top = plan->top;
    while (least < top) {
        const int32_t middle = (least + top) >> 1;
        if ((double)t <= limit * (double)(factor * scales[middle])) {
            top = middle;
        } else {
            least = middle + 1;
        }
    }
    return least;
}

/* 2^(floor(log2 a) - floor(log2 M)), a rounded before to so many bits after the first;
 * 23 leave it. */
TF_INLINE int32_t tf_floor_code(const struct tf_block_plan *plan, float a, int bits)
{
    int exponent;
    const uint32_t significand = tf_significand(a, &exponent);
    const int cut = 23 - bits;
    const uint32_t half_less_one = cut > 0 ? (UINT32_C(1) << (cut - 1)) - 1 : 0;
    const uint32_t last = cut > 0 ? significand >> cut & 1 : 0;
    exponent += 23 + (int)((significand + half_less_one + last) >> 24);
    const int greatest = (int)(tf_bits_of(plan->greatest) >> 23) - 127;
    const int code = exponent - greatest + 127;
    return code < 0 ? 0 : code > plan->top ? plan->top : code;
}

/* The code nearest to a / (M t), ties to even: 0 among them. */
TF_RARE int32_t tf_nearest_code(const struct tf_block_plan *plan, float a)
{
    const struct tf_scale s = tf_scales[plan->layout.scale];
    const double unit = (double)plan->greatest * (double)plan->layout.tensor;
    int32_t below = 0, top = plan->top;
    while (below < top) { /* the greatest code that is not above */
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

/* Mean and deviation of a block. */
TF_RARE double tf_block_deviation(const float *x, int n, double *mean)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)x[i];
    }
    *mean = sum / n;
    for (int i = 0; i < n; i++) {
        const double d = (double)x[i] - *mean;
        squares += d * d;
    }
    return tf_square_root(squares / n);
}

/* The scale's code by every rule but the search; a > 0 is the greatest magnitude. */
TF_RARE int32_t tf_scale_code(const struct tf_block_plan *plan, const float *x, float a)
{
    const struct tf_element e = tf_elements[plan->layout.element];
    const int powers = tf_scales[plan->layout.scale].kind == TF_SCALE_POWERS;
    float t = a;
    double mean;
    switch (plan->rule) {
    case TF_RULE_FLOOR: return powers ? tf_floor_code(plan, a, 23) : tf_nearest_code(plan, a);
    case TF_RULE_EVEN:
        return powers ? tf_floor_code(plan, a, tf_element_mantissa(e))
                      : tf_nearest_code(plan, a);
    case TF_RULE_NF: {
        const double sigma = tf_block_deviation(x, plan->layout.block, &mean);
        const float three = (float)(3 * sigma);
        const int centred = (mean < 0 ? -mean : mean) <= sigma / 2;
        const int light = (double)a <= 4 * sigma;
        const int varies = sigma > (double)a * 9.5367431640625e-7; /* 2^-20 */
        t = centred && light && varies && three < a ? three : a;
        break;
    }
    case TF_RULE_PUBLISHED:
        if (TF_PLAN_RESIDUAL(plan) < 0) {
            const double sigma = tf_block_deviation(x, plan->layout.block, &mean);
            t = sigma < 1e-6 ? a : (float)(3 * sigma);
            t = t < 3.40282347e+38f ? t : 3.40282347e+38f;
        }
        t = t > 1e-12f ? t : 1e-12f;
        break;
    default: break;
    }
    if (powers) {
        const float m = plan->greatest;
        const uint32_t bits = tf_bits_of(t), top = tf_bits_of(m);
        if (bits >= UINT32_C(0x00800000)) {
            const uint32_t fraction = UINT32_C(0x007FFFFF);
            const int32_t code = (int32_t)(bits >> 23) - (int32_t)(top >> 23) + 127 +
                                 ((bits & fraction) > (top & fraction));
            return code < 0 ? 0 : code > plan->top ? plan->top : code;
        }
    }
    return tf_least_code(plan, plan->scales, 1.0f, (double)plan->greatest, t);
}

/* -- the search -------------------------------------------------------------------- */

/* What S is in a normalised block. */
TF_INLINE float tf_scale_within(float scale, float normal)
{
    return tf_between(1.17549435e-38f, scale * normal, 3.40282347e+38f);
}

/* The sum of 16 lanes of each of 16 candidates, in one order. */
TF_INLINE void tf_add_lanes(float sums[TF_BLOCK_LANES][TF_BLOCK_LANES])
{
    for (int h = TF_BLOCK_LANES / 2; h > 0; h >>= 1) {
        for (int l = 0; l < h; l++) {
            TF_LANES_OF
            for (int v = 0; v < TF_BLOCK_LANES; v++) {
                sums[l][v] += sums[l + h][v];
            }
        }
    }
}

/* Normalised magnitudes of a block; a block of 16 has zeros after it, which add
 * nothing. */
struct tf_magnitudes {
    float x[TF_BLOCK_MOST];
    int n; /* 32 or more */
};

/* What is left of a magnitude by a scale. */
TF_INLINE float tf_first_error(struct tf_element e, float greatest, float x, float scale,
                               float inverse)
{
    const float y = x * inverse;
    const float q = tf_nearest_within(e, y < greatest ? y : greatest);
    return tf_fma(-scale, q, x);
}

/* Costs of 16 scales side by side: squared errors, or the greatest error. */
TF_INLINE void tf_scale_costs(struct tf_element e, float greatest,
                              const struct tf_magnitudes *block, const float *candidates,
                              float normal, int extremes, float *cost)
{
    float sums[TF_BLOCK_LANES][TF_BLOCK_LANES];
    float scale[TF_BLOCK_LANES], inverse[TF_BLOCK_LANES];
    TF_LANES_OF
    for (int v = 0; v < TF_BLOCK_LANES; v++) {
        scale[v] = tf_scale_within(candidates[v], normal);
        inverse[v] = 1.0f / scale[v];
    }
    for (int l = 0; l < TF_BLOCK_LANES; l++) {
        TF_LANES_OF
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            sums[l][v] = 0;
        }
    }
    for (int k = 0; k < block->n; k += 2 * TF_BLOCK_LANES) {
        for (int l = 0; l < TF_BLOCK_LANES; l++) {
            float *sum = sums[l];
            const float x = block->x[k + l], y = block->x[k + l + TF_BLOCK_LANES];
            TF_LANES_OF
            for (int v = 0; v < TF_BLOCK_LANES; v++) {
                const float d = tf_first_error(e, greatest, x, scale[v], inverse[v]);
                const float f = tf_first_error(e, greatest, y, scale[v], inverse[v]);
                if (extremes) {
                    const float a = tf_magnitude_of(d), b = tf_magnitude_of(f);
                    const float more = a > b ? a : b;
                    sum[v] = more > sum[v] ? more : sum[v];
                } else {
                    sum[v] = tf_fma(f, f, tf_fma(d, d, sum[v]));
                }
            }
        }
    }
    if (extremes) {
        for (int l = 1; l < TF_BLOCK_LANES; l++) {
            TF_LANES_OF
            for (int v = 0; v < TF_BLOCK_LANES; v++) {
                sums[0][v] = sums[l][v] > sums[0][v] ? sums[l][v] : sums[0][v];
            }
        }
    } else {
        tf_add_lanes(sums);
    }
    TF_LANES_OF
    for (int v = 0; v < TF_BLOCK_LANES; v++) {
        cost[v] = sums[0][v];
    }
}

/* The cost of one scale. */
TF_INLINE float tf_scale_cost(struct tf_element e, float greatest,
                              const struct tf_magnitudes *block, float candidate,
                              float normal, int extremes)
{
    const float scale = tf_scale_within(candidate, normal), inverse = 1.0f / scale;
    float sum[TF_BLOCK_LANES];
    for (int l = 0; l < TF_BLOCK_LANES; l++) {
        sum[l] = 0;
    }
    for (int k = 0; k < block->n; k += TF_BLOCK_LANES) {
        for (int l = 0; l < TF_BLOCK_LANES; l++) {
            const float d = tf_first_error(e, greatest, block->x[k + l], scale, inverse);
            const float a = tf_magnitude_of(d);
            sum[l] = !extremes ? tf_fma(d, d, sum[l]) : a > sum[l] ? a : sum[l];
        }
    }
    for (int h = TF_BLOCK_LANES / 2; h > 0; h >>= 1) {
        for (int l = 0; l < h; l++) {
            sum[l] = !extremes           ? sum[l] + sum[l + h]
                     : sum[l + h] > sum[l] ? sum[l + h]
                                           : sum[l];
        }
    }
    return sum[0];
}

/* Where the least of 16 costs, none of them negative, is: the first of equals. */
TF_INLINE int tf_first_least(const float *cost)
{
    uint32_t least = UINT32_MAX, first = UINT32_MAX;
    TF_LANES_OF
    for (uint32_t v = 0; v < TF_BLOCK_LANES; v++) {
        const uint32_t bits = tf_bits_of(cost[v]);
        least = bits < least ? bits : least;
    }
    TF_LANES_OF
    for (uint32_t v = 0; v < TF_BLOCK_LANES; v++) {
        const uint32_t place = tf_bits_of(cost[v]) == least ? v : UINT32_MAX;
        first = place < first ? place : first;
    }
    return (int)first;
}

/* The first codes, by cost or by greatest error: two of them, the better one first. */
struct tf_kept {
    float cost[2];
    int32_t code[2];
};

TF_INLINE void tf_keep(struct tf_kept *kept, float cost, int32_t code)
{
    if (cost < kept->cost[0]) {
        kept->cost[1] = kept->cost[0];
        kept->code[1] = kept->code[0];
        kept->cost[0] = cost;
        kept->code[0] = code;
    } else if (cost < kept->cost[1]) {
        kept->cost[1] = cost;
        kept->code[1] = code;
    }
}

TF_INLINE struct tf_kept tf_search_scale(struct tf_element e,
                                         const struct tf_block_plan *plan,
                                         const struct tf_magnitudes *block, float a,
                                         float normal, int two, int extremes)
{
    const float infinite = tf_float_of(UINT32_C(0x7F800000));
    struct tf_kept kept = {{infinite, infinite}, {-1, -1}};
    const int32_t first = tf_least_code(plan, plan->scales, 1.0f, (double)plan->limit, a);
    int32_t last = first + (1 << tf_scales[plan->layout.scale].mantissa_bits);
    last = last < plan->top ? last : plan->top;
    int32_t code = first;
    for (; last - code >= 4; code += TF_BLOCK_LANES) {
        float cost[TF_BLOCK_LANES];
        tf_scale_costs(e, plan->greatest, block, plan->scales + code, normal, extremes,
                       cost);
        TF_LANES_OF
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            cost[v] = v <= last - code ? cost[v] : infinite;
        }
        const int least = tf_first_least(cost);
        tf_keep(&kept, cost[least], code + least);
        if (two) {
            cost[least] = infinite;
            const int second = tf_first_least(cost);
            tf_keep(&kept, cost[second], code + second);
        }
    }
    for (; code <= last; code++) {
        const float cost =
            tf_scale_cost(e, plan->greatest, block, plan->scales[code], normal, extremes);
        tf_keep(&kept, cost, code);
    }
    return kept;
}

/* What a kept scale leaves of n numbers for the residual: of the nearest number of the
 * first level, and of the one beyond it. Returns the greatest of the first ones. */
struct tf_remainders {
    float hi[TF_BLOCK_MOST], beside[TF_BLOCK_MOST];
    float rest[TF_BLOCK_MOST], rest_beside[TF_BLOCK_MOST];
};

TF_INLINE float tf_remainders_of(struct tf_element e, float greatest, const float *xs,
                                 int n, float scale, struct tf_remainders *r)
{
    const float inverse = 1.0f / scale;
    for (int i = 0; i < n; i++) {
        const float y = xs[i] * inverse;
        const float hi = tf_nearest_signed(e, tf_between(-greatest, y, greatest));
        const float beside = tf_next_element(e, greatest, hi, y >= hi);
        r->hi[i] = hi;
        r->beside[i] = beside;
        r->rest[i] = tf_fma(-scale, hi, xs[i]);
        r->rest_beside[i] = tf_fma(-scale, beside, xs[i]);
    }
    return tf_float_of(tf_greatest_magnitude(r->rest, n));
}

/* The inverse of a residual's scale, which may be too small to have one. */
TF_INLINE float tf_inverse(float u)
{
    const float inverse = 1.0f / u;
    return inverse < 1.70141183e+38f ? inverse : 1.70141183e+38f; /* 2^127 */
}

/* What is left of a remainder. */
TF_INLINE float tf_second_error(struct tf_element lo, float lowest, float greatest,
                                float rest, float u, float inverse)
{
    const float l = tf_nearest_within(lo, tf_between(lowest, rest * inverse, greatest));
    return tf_fma(-u, l, rest);
}

/* Squared errors of two levels with 16 residual scales side by side. */
TF_INLINE void tf_residual_costs(struct tf_element lo, float lowest, float greatest,
                                 const struct tf_remainders *r, int n, const float *u,
                                 float *cost)
{
    float sums[TF_BLOCK_LANES][TF_BLOCK_LANES], inverse[TF_BLOCK_LANES];
    TF_LANES_OF
    for (int v = 0; v < TF_BLOCK_LANES; v++) {
        inverse[v] = tf_inverse(u[v]);
    }
    for (int l = 0; l < TF_BLOCK_LANES; l++) {
        TF_LANES_OF
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            sums[l][v] = 0;
        }
    }
    for (int i = 0; i < n; i++) {
        float *sum = sums[i % TF_BLOCK_LANES];
        const float rest = r->rest[i], beside = r->rest_beside[i];
        TF_LANES_OF
        for (int v = 0; v < TF_BLOCK_LANES; v++) {
            const float first = tf_magnitude_of(
                tf_second_error(lo, lowest, greatest, rest, u[v], inverse[v]));
            const float second = tf_magnitude_of(
                tf_second_error(lo, lowest, greatest, beside, u[v], inverse[v]));
            const float error = second < first ? second : first;
            sum[v] = tf_fma(error, error, sum[v]);
        }
    }
    tf_add_lanes(sums);
    TF_LANES_OF
    for (int v = 0; v < TF_BLOCK_LANES; v++) {
        cost[v] = sums[0][v];
    }
}

/* Two levels: scales and numbers of both. */
TF_INLINE void tf_search_residual(struct tf_element e, struct tf_element lo,
                                  const struct tf_block_plan *plan, const float *xs,
                                  const struct tf_magnitudes *magnitudes, float a,
                                  float normal,
                                  struct tf_block *block)
{
    const int n = plan->layout.block;
    const int bits = tf_scales[plan->layout.scale].mantissa_bits;
    const int whole = lo.format < 0;
    const int eighth = (1 << bits) / 8;
    const int before = whole ? (eighth > 1 ? eighth : 1) : 0;
    const int after = whole ? eighth : 1 << bits;
    const float lowest = plan->lowest, greatest = plan->residual_greatest;
    const struct tf_kept kept =
        tf_search_scale(e, plan, magnitudes, a, normal, 1, whole);
    struct tf_remainders r;
    float least = 0, scale = 0;
    block->code = (uint32_t)kept.code[0];
    block->residual_code = 0;
    int which = -1;
    for (int k = 0; k < 2 && kept.code[k] >= 0; k++) {
        const float candidate = tf_scale_within(plan->scales[kept.code[k]], normal);
        const float most =
            tf_remainders_of(e, plan->greatest, xs, n, candidate, &r);
        if (most == 0) {
            if (which < 0 || 0 < least) {
                which = k;
                least = 0;
                scale = candidate;
                block->code = (uint32_t)kept.code[k];
                block->residual_code = 0;
            }
            continue;
        }
        const int32_t middle = tf_least_code(plan, plan->residual_scales, candidate,
                                             whole ? 7.5 : 448.0, most);
        int32_t from = middle - before;
        const int32_t to = middle + after < plan->top ? middle + after : plan->top;
        from = from > plan->least ? from : plan->least;
        for (; from <= to; from += TF_BLOCK_LANES) {
            float u[TF_BLOCK_LANES], cost[TF_BLOCK_LANES];
            TF_LANES_OF
            for (int v = 0; v < TF_BLOCK_LANES; v++) {
                u[v] = candidate * plan->residual_scales[from + v];
            }
            tf_residual_costs(lo, lowest, greatest, &r, n, u, cost);
            TF_LANES_OF
            for (int v = 0; v < TF_BLOCK_LANES; v++) {
                cost[v] = v <= to - from ? cost[v] : tf_float_of(UINT32_C(0x7F800000));
            }
            const int v = tf_first_least(cost);
            if (which < 0 || cost[v] < least) {
                which = k;
                least = cost[v];
                scale = candidate;
                block->code = (uint32_t)kept.code[k];
                block->residual_code = (uint32_t)(from + v);
            }
        }
    }
    /* What has won, once more. */
    const float most = tf_remainders_of(e, plan->greatest, xs, n, scale, &r);
    const float u = scale * plan->residual_scales[block->residual_code];
    const float inverse = tf_inverse(u);
    if (most == 0) {
        for (int i = 0; i < n; i++) {
            block->hi[i] = r.hi[i];
            block->lo[i] = 0;
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        const float y = r.rest[i] * inverse, z = r.rest_beside[i] * inverse;
        const float l = tf_nearest_signed(lo, tf_between(lowest, y, greatest));
        const float m = tf_nearest_signed(lo, tf_between(lowest, z, greatest));
        const float first = tf_magnitude_of(tf_fma(-u, l, r.rest[i]));
        const float second = tf_magnitude_of(tf_fma(-u, m, r.rest_beside[i]));
        block->hi[i] = second < first ? r.beside[i] : r.hi[i];
        block->lo[i] = second < first ? m : l;
    }
}

/* -- codes ------------------------------------------------------------------------- */

/* x / s for n numbers of a level, by any rounding; s = S, or 0, which nothing fits. The
 * signs are those of `numbers`. */
TF_RARE void tf_round_numbers(struct tf_element e, float lowest, float greatest,
                              const float *x, int n, float s, enum tf_rounding rounding,
                              const uint64_t *draws, const float *numbers, float *out)
{
    for (int i = 0; i < n; i++) {
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
    if (!(s >= 7.888609e-31f && s <= 1.2676506e+30f)) { /* 2^-100, 2^100 */
        tf_round_numbers(e, lowest, greatest, x, n, s, TF_TIES_TO_EVEN, 0, x, out);
        return;
    }
    for (int i = 0; i < n; i++) {
        out[i] = tf_between(lowest, tf_quotient_to_odd(x[i], s), greatest);
    }
}

/* The residual of numbers whose first level is there, and its scale. */
TF_RARE void tf_round_residual(const struct tf_block_plan *plan, const float *xs,
                                 float scale, int searched, const uint64_t *draws,
                                 struct tf_block *block)
{
    const struct tf_element lo = tf_elements[TF_PLAN_RESIDUAL(plan)];
    const int n = plan->layout.block;
    float rest[TF_BLOCK_MOST], most = 0;
    for (int i = 0; i < n; i++) {
        rest[i] = tf_fma(-scale, block->hi[i], xs[i]);
        const float magnitude = tf_magnitude_of(rest[i]);
        most = magnitude > most ? magnitude : most;
    }
    if (searched) {
        /* The scale is there too. */
    } else if (plan->rule == TF_RULE_PUBLISHED) {
        const float r = most / scale; /* a power of two */
        block->residual_code =
            (uint32_t)tf_least_code(plan, plan->residual_scales, 1.0f,
                                    (double)plan->residual_greatest,
                                    r > 1e-12f ? r : 1e-12f);
    } else {
        block->residual_code =
            most == 0 ? 0
                      : (uint32_t)tf_least_code(plan, plan->residual_scales, scale,
                                                (double)plan->residual_greatest, most);
    }
    const float u = scale * plan->residual_scales[block->residual_code];
    if (plan->rounding == TF_TIES_TO_EVEN) {
        tf_divide_numbers(lo, plan->lowest, plan->residual_greatest, rest, n, u, block->lo);
        for (int i = 0; i < n; i++) {
            block->lo[i] = tf_nearest_signed(lo, block->lo[i]);
        }
    } else {
        tf_round_numbers(lo, plan->lowest, plan->residual_greatest, rest, n, u,
                         (enum tf_rounding)plan->rounding, draws, xs, block->lo);
    }
}

/* One block of finite numbers: everything. `a` is the greatest magnitude, > 0. */
TF_INLINE void tf_round_finite(struct tf_element e, const struct tf_block_plan *plan,
                               const float *x, float a, const uint64_t *draws,
                               struct tf_block *block)
{
    const int n = plan->layout.block, two = TF_PLAN_RESIDUAL(plan) >= 0;
    const int exponent = (int)(tf_bits_of(a) >> 23) - 127;
    const float normal = tf_power_of_two(exponent < -126 ? 126 : -exponent);
    const float greatest = plan->greatest;
    const int searches = TF_PLAN_SEARCHES(plan);
    float xs[TF_BLOCK_MOST];
    for (int i = 0; i < n; i++) {
        xs[i] = x[i] * normal;
    }
    if (searches) {
        struct tf_magnitudes magnitudes;
        magnitudes.n = n > 2 * TF_BLOCK_LANES ? n : 2 * TF_BLOCK_LANES;
        for (int i = 0; i < TF_BLOCK_LANES; i++) {
            magnitudes.x[TF_BLOCK_LANES + i] = 0;
        }
        for (int i = 0; i < n; i++) {
            magnitudes.x[i] = tf_magnitude_of(xs[i]);
        }
        if (!two) {
            block->code =
                (uint32_t)tf_search_scale(e, plan, &magnitudes, a, normal, 0, 0).code[0];
        } else if (e.format != tf_float8_e4m3fn_index) {
            return; /* no such format */
        } else if (TF_PLAN_RESIDUAL(plan) == tf_element_int4) {
            tf_search_residual(e, tf_elements[tf_element_int4], plan, xs, &magnitudes,
                               a, normal, block);
        } else {
            tf_search_residual(e, tf_elements[tf_element_float8_e4m3fn], plan, xs,
                               &magnitudes, a, normal, block);
        }
    } else {
        block->code = (uint32_t)tf_scale_code(plan, x, a);
    }
    const float whole = plan->scales[block->code];
    const float scale = tf_scale_within(whole, normal);
    if (!two) {
        if (plan->rounding != TF_TIES_TO_EVEN || whole == 0 || scale < 7.888609e-31f) {
            tf_round_numbers(e, -greatest, greatest, x, n, whole,
                             (enum tf_rounding)plan->rounding, draws, x, block->hi);
        } else {
            tf_divide_numbers(e, -greatest, greatest, xs, n, scale, block->hi);
        }
        return;
    }
    if (whole == 0) { /* a rule that may take scale 0 */
        for (int i = 0; i < n; i++) {
            block->hi[i] = block->lo[i] = 0;
        }
        block->residual_code = 0;
        return;
    }
    if (searches && plan->rounding == TF_TIES_TO_EVEN) {
        return;
    }
    if (!searches) {
        tf_divide_numbers(e, -greatest, greatest, xs, n, scale, block->hi);
        for (int i = 0; i < n; i++) {
            block->hi[i] = tf_nearest_signed(e, block->hi[i]);
        }
    }
    tf_round_residual(plan, xs, scale, searches, draws, block);
}

TF_INLINE void tf_round_zeros(struct tf_block *block, int n)
{
    block->code = block->residual_code = 0;
    for (int i = 0; i < n; i++) {
        block->hi[i] = block->lo[i] = 0;
    }
}

/* One block, whatever it holds; `e` is the plan's element. */
TF_INLINE void tf_round_block(struct tf_element e, const struct tf_block_plan *plan,
                              const float *x, const uint64_t *draws,
                              struct tf_block *block)
{
    const int n = plan->layout.block;
    const uint32_t infinite = UINT32_C(0x7F800000);
    uint32_t most = tf_greatest_magnitude(x, n);
    block->special = 0;
    if (most - 1 < infinite - 1) {
        tf_round_finite(e, plan, x, tf_float_of(most), draws, block);
        return;
    }
    if (most == 0) {
        tf_round_zeros(block, n);
        return;
    }
    block->special = 1;
    if (plan->poison) {
        tf_round_zeros(block, n);
        block->code = tf_scales[plan->layout.scale].kind == TF_SCALE_E4M3 ? 0x7F : 0xFF;
        return;
    }
    /* What is not finite counts as zero, takes no part of the residual, and becomes NaN
     * or the greatest number. */
    float finite[TF_BLOCK_MOST];
    int infinities = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t magnitude = tf_bits_of(x[i]) & UINT32_C(0x7FFFFFFF);
        infinities |= magnitude == infinite;
        finite[i] = magnitude < infinite ? x[i] : 0;
    }
    most = tf_greatest_magnitude(finite, n);
    if (most == 0 && !infinities) {
        tf_round_zeros(block, n);
    } else {
        const float a = tf_float_of(most ? most : infinite - 1);
        tf_round_finite(e, plan, finite, a, draws, block);
    }
    for (int i = 0; i < n; i++) {
        const uint32_t bits = tf_bits_of(x[i]), magnitude = bits & UINT32_C(0x7FFFFFFF);
        if (magnitude >= infinite) {
            block->hi[i] = magnitude == infinite ? tf_with_sign(plan->greatest, x[i])
                                                 : tf_float_of(UINT32_C(0x7FC00000));
            block->lo[i] = 0;
        }
    }
}

/* The code of a number of a block, special ones among them. */
TF_INLINE uint32_t tf_code_in_block(struct tf_element e, float x)
{
    if (x != x) {
        return e.format >= 0 ? tf_nan_code(*tf_format_rows[e.format]) : 0;
    }
    return tf_element_code(e, x);
}

/* -- numbers ----------------------------------------------------------------------- */

/* The scale of a residual: S R rounded to float32's 24 bits; where float32 has fewer,
 * all of them. */
TF_INLINE double tf_second_scale(float scale, float residual)
{
    const float product = scale * residual;
    return product >= 1.17549435e-38f ? (double)product
                                      : (double)scale * (double)residual;
}

/* a + b to odd, which a later rounding to float32 takes for the sum itself. */
TF_INLINE double tf_sum_to_odd(double a, double b)
{
    const double sum = a + b, part = sum - a;
    const double rest = (a - (sum - part)) + (b - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (rest != 0 && !(bits & 1)) {
        const int below = (rest < 0) != (sum < 0); /* the exact magnitude is less */
        bits += below ? UINT64_MAX : 1;
        double odd;
        memcpy(&odd, &bits, sizeof odd);
        return odd;
    }
    return sum;
}

/* S hi (+ S2 lo), exact but for what double lacks; `odd`: that is rounded to odd. */
TF_INLINE double tf_block_number(int two, float scale, double second, float hi, float lo,
                                 int odd)
{
    const double a = (double)scale * (double)hi;
    if (!two) {
        return a;
    }
    const double b = second * (double)lo;
    return odd && a - a == 0 && b - b == 0 ? tf_sum_to_odd(a, b) : a + b;
}

/* As float32, to nearest or to odd; what is finite stays finite. */
TF_RARE float tf_block_single(int two, float scale, double second, float hi, float lo,
                                int odd)
{
    const double number = tf_block_number(two, scale, second, hi, lo, 1);
    const double most = 3.4028234663852886e38;
    const int beyond = number > most || number < -most;
    if (beyond && scale <= (float)most && tf_magnitude_of(hi) <= (float)most) {
        return number < 0 ? (float)-most : (float)most;
    }
    const float single = (float)number;
    const double rest = number - (double)single;
    const uint32_t bits = tf_bits_of(single);
    if (odd && rest != 0 && rest == rest && !(bits & 1)) {
        /* Of 0, which has been rounded to, no magnitude is below. */
        const uint32_t below = (rest < 0) != (number < 0);
        return tf_float_of((bits - below) | 1);
    }
    return single;
}

/* Is S * hi, for all numbers of the element, a float32, if there is something to add, and
 * nothing beyond its range? Then one operation gives what tf_block_single gives. */
TF_INLINE int tf_scale_is_plain(int two, float scale, float residual)
{
    const int exact = !two || (!(tf_bits_of(scale) & 0xF) &&
                               scale * residual >= 1.17549435e-38f);
    return exact && scale >= 7.888609e-31f && scale <= 1.2676506e+30f; /* 2^+-100 */
}

#endif
