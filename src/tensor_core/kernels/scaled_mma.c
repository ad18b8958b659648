/* Chains of block-scaled instructions: what tensor_core/scaled_mma_model.h does, of elements that
 * were taken apart beforehand, so that an instruction is two short loops over k. */
#include "tensor_core/kernels.h"
#include "runtime/asserts.h"
#include "runtime/kernels/common.h"

/* -- group 1 ----------------------------------------------------------------------- */

enum {
    PRODUCT_UNIT = 2 * TF_SCALED_BITS,
    FITS = 16, /* products below 4 whose sum fits 32 bits, at 25 fraction bits */
};

TF_INLINE int32_t greatest_product(const int32_t *a, const int32_t *b, size_t depth)
{
    int32_t greatest = TF_NO_EXPONENT;
    for (size_t k = 0; k < depth; k++) {
        const int32_t e = a[k] + b[k];
        greatest = e > greatest ? e : greatest;
    }
    return greatest;
}

/* Products cut toward zero to units of 2^(greatest - fraction). */
TF_INLINE int64_t sum_of_products(const struct tf_scaled_line *a,
                                  const struct tf_scaled_line *b, size_t first,
                                  size_t depth, int32_t greatest, int32_t fraction)
{
    const int32_t *x = a->as.single.significands + first;
    const int32_t *y = b->as.single.significands + first;
    const int32_t *ex = a->as.single.exponents + first;
    const int32_t *ey = b->as.single.exponents + first;
    int64_t sum = 0;
    for (size_t part = 0; part < depth; part += FITS) {
        int32_t some = 0;
        for (size_t k = part; k < part + FITS; k++) {
            const int32_t product = x[k] * y[k], sign = product >> 31;
            const int32_t below = greatest - (ex[k] + ey[k]);
            const uint32_t magnitude = (uint32_t)((product ^ sign) - sign)
                                       << (fraction - PRODUCT_UNIT);
            const int32_t kept = (int32_t)(magnitude >> (below < 31 ? below : 31));
            some += (kept ^ sign) - sign;
        }
        sum += some;
    }
    return sum;
}

/* -- groups ------------------------------------------------------------------------ */

/* Factors are twice the elements. */
enum { GROUP_UNIT = 2 + 2 * TF_SCALED_BITS };

struct terms {
    int64_t significands[TF_SCALED_LONGEST];
    int32_t exponents[TF_SCALED_LONGEST];
};

TF_INLINE int32_t find_terms(const struct tf_scaled_line *a,
                             const struct tf_scaled_line *b, size_t first, size_t group,
                             size_t count, int32_t zero_terms, struct terms *terms)
{
    int32_t greatest = TF_NO_EXPONENT;
    const size_t from = first / group;
    for (size_t g = 0; g < count; g++) {
        int32_t sum = 0, some = 0;
        for (size_t k = first + g * group; k < first + (g + 1) * group; k++) {
            sum += a->as.grouped.twice[k] * b->as.grouped.twice[k];
            some |= a->as.grouped.twice[k] * b->as.grouped.twice[k];
        }
        const int32_t factor =
            a->as.grouped.factors[from + g] * b->as.grouped.factors[from + g];
        sum *= factor;
        some = zero_terms == TF_IF_CANCELLED ? some && factor : sum;
        const int32_t e =
            a->as.grouped.exponents[from + g] + b->as.grouped.exponents[from + g];
        terms->significands[g] = sum;
        terms->exponents[g] = e;
        greatest = some && e > greatest ? e : greatest;
    }
    return greatest;
}

TF_INLINE int64_t sum_of_terms(const struct terms *terms, size_t count,
                               int32_t greatest, int32_t fraction)
{
    int64_t sum = 0;
    for (size_t g = 0; g < count; g++) {
        const int64_t x = terms->significands[g];
        const int32_t shift = terms->exponents[g] - greatest + fraction - GROUP_UNIT;
        sum += tf_mma_align((uint64_t)(x < 0 ? -x : x), x ? shift : 0, x < 0);
    }
    return sum;
}

/* -- instructions ------------------------------------------------------------------ */

/* Finite numbers alone. */
TF_INLINE uint32_t instruction(const struct tf_scaled_model *model,
                               const struct tf_scaled_line *a,
                               const struct tf_scaled_line *b, size_t first,
                               size_t depth, size_t group, uint32_t c)
{
    const struct tf_mma_number z = tf_mma_decode(c, TF_LEAST_SINGLE);
    const int32_t floor = z.significand ? z.exponent : model->zero_c;
    const size_t count = depth / group;
    struct terms terms;
    int32_t greatest =
        group == 1 ? greatest_product(a->as.single.exponents + first,
                                      b->as.single.exponents + first, depth)
                   : find_terms(a, b, first, group, count, model->zero_terms, &terms);
    greatest = greatest > floor ? greatest : floor;
    greatest = greatest > model->floor ? greatest : model->floor;
    const int32_t unit = greatest - model->fraction;
    int64_t sum =
        group == 1 ? sum_of_products(a, b, first, depth, greatest, model->fraction)
                   : sum_of_terms(&terms, count, greatest, model->fraction);
    sum += tf_mma_align(z.significand, z.significand ? z.exponent - 23 - unit : 0,
                        c >> 31);
    return tf_mma_round(sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum, unit, sum < 0,
                        23, 0, 0, model->negative_zero);
}

TF_INLINE float chain(const struct tf_scaled_model *model,
                      const struct tf_scaled_line *a, const struct tf_scaled_line *b,
                      size_t k, float c, size_t depth, size_t group)
{
    uint32_t sum = tf_bits_of(c);
    for (size_t first = 0; first < k; first += depth) {
        const size_t rest = k - first, at = first / depth;
        const size_t block = first / (size_t)model->block;
        const int exact = a->special[at] || b->special[at] ||
                          model->zero_terms == TF_ALWAYS ||
                          (sum & TF_INF_BITS) == TF_INF_BITS;
        sum = exact ? tf_scaled_instruction(model, a->bits + first, 1,
                                            a->scales + block, b->bits + first, 1,
                                            b->scales + block,
                                            (int32_t)(rest < depth ? rest : depth), sum)
                    : instruction(model, a, b, first, depth, group, sum);
    }
    return tf_float_of(sum);
}

static void chains(const struct tf_scaled_model *model, const struct tf_scaled_line *row,
                   const struct tf_scaled_line *columns, size_t count, size_t k, float *c)
{
    TF_ASSERT(k <= TF_SCALED_K);
    for (size_t j = 0; j < count; j++) { /* constants make loops into vectors */
        if (model->group == 1 && model->depth == 32) {
            c[j] = chain(model, row, columns + j, k, c[j], 32, 1);
        } else {
            c[j] = chain(model, row, columns + j, k, c[j], 64, 16);
        }
    }
}

/* -- promotion --------------------------------------------------------------------- */

static void promote(const float *block, float scale, const float *scales, float *sums,
                    size_t n)
{
    const float nan = tf_float_of(tf_mma_nan(0));
    for (size_t i = 0; i < n; i++) {
        const float sum = __builtin_fmaf(scale * scales[i], block[i], sums[i]);
        sums[i] = sum == sum ? sum : nan;
    }
}

const struct tf_scaled_mma_kernels TF_NAME(tf_scaled_mma_kernels) = {
    .chains = chains,
    .promote = promote,
};
