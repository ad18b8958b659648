/* The test of rounding (Ziv, "Fast evaluation of elementary mathematical functions with
 * correctly rounded last bit", ACM TOMS 17(3), 1991): a sum is decided if both ends of the
 * interval that contains the exact value round to the same number. Rounding never
 * decreases, so that the exact value rounds to this number, too. */
#include <math.h>

#include "exact/kernels/plain/decls.h"

TF_INLINE int64_t long_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TF_INLINE double double_of(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

TF_INLINE int32_t int_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TF_INLINE float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns 1 if x + rest is farther from zero than x, -1 if it is nearer, 0 if rest is 0. */
TF_INLINE int64_t outward(double x, double rest)
{
    const int64_t direction = 1 - 2 * ((long_of(x) ^ long_of(rest)) < 0);
    return rest != 0 ? direction : 0;
}

/* Returns 1, -1 or 0: the step in units of the last place from x, which is the rounding of
 * x + rest to nearest, to its rounding in another direction. */
TF_INLINE int64_t step(double x, double rest, enum tf_rounding rounding)
{
    const int64_t direction = outward(x, rest);
    switch (rounding) {
    case TF_TOWARD_ZERO: return direction < 0 ? -1 : 0;
    case TF_TOWARD_POSITIVE: return rest > 0 ? direction : 0;
    case TF_TOWARD_NEGATIVE: return rest < 0 ? direction : 0;
    case TF_TO_ODD: return (long_of(x) & 1) ? 0 : direction;
    default: return 0;
    }
}

/* Rounds a double, which was rounded to odd, to float32. */
TF_INLINE float single_of(double x, enum tf_rounding rounding)
{
    const float near = (float)x;
    const double back = near;
    const int32_t bits = int_of(near);
    const int above = fabs(back) > fabs(x), below = fabs(back) < fabs(x);
    const int negative = long_of(x) < 0;
    switch (rounding) {
    case TF_TOWARD_ZERO: return float_of(bits - above);
    case TF_TOWARD_POSITIVE: return float_of(negative ? bits - above : bits + below);
    case TF_TOWARD_NEGATIVE: return float_of(negative ? bits + below : bits - above);
    case TF_TO_ODD: return float_of((bits - above) | (above | below));
    default: return near;
    }
}

/* The sum and its bounds: the exact value is in [sum + low, sum + high]. */
struct interval {
    double sum, low, high;
};

/* Adds the terms of element j, and returns the interval. */
TF_INLINE struct interval interval_of(const struct tf_row_of_sums *sums, size_t j,
                                      enum tf_rounding rounding)
{
    double error = 0;
    for (size_t t = 0; t < sums->ranks; t++) {
        error += sums->row_bounds[t * sums->row_step] *
                 sums->column_bounds[t * sums->column_step + j];
    }
    error = sums->row_ratio * sums->column_ratios[j] <= 0x1p53 ? 0 : error;
    double sum = sums->terms[j], rest = 0, lost = 0;
    for (size_t t = 1; t < sums->count; t++) {
        const double term = sums->terms[t * sums->term_step + j];
        const double before = sum, after = before + term, part = after - before;
        const double off = (before - (after - part)) + (term - part);
        const double sooner = rest, later = sooner + off, share = later - sooner;
        lost += fabs((sooner - (later - share)) + (off - share));
        rest = later;
        sum = after;
    }
    /* The bound covers its own roundings, and those of both ends of the interval. */
    error = (error + lost) * (1 + 0x1p-40);
    error += rounding == TF_TIES_TO_AWAY ? fabs(sum) * 0x1p-100 : 0;
    error += error > 0 ? fabs(rest) * 0x1p-52 : 0;
    return (struct interval){sum, rest - error, rest + error};
}

/* Rounds (x + rest) * 2^exponent. Out of float64's normal range, float32 results are those
 * of the range's ends. For float64 results, *is_normal is set to 0. */
TF_INLINE double rounded(double x, double rest, int64_t exponent, enum tf_rounding rounding,
                         int is_float, int *is_normal)
{
    const double near = x + rest, part = near - x;
    const double off = (x - (near - part)) + (rest - part);
    const int64_t bits = long_of(near);
    const int64_t field = (bits >> 52 & 0x7FF) + exponent;
    const int64_t inside = field < 2 ? 2 : field > 0x7FD ? 0x7FD : field;
    const int is_zero = bits << 1 == 0;
    *is_normal &= is_zero | (inside == field) | is_float;
    const int64_t others = bits & ~(INT64_C(0x7FF) << 52);
    const int64_t scaled = is_zero ? 0 : others | inside << 52;
    if (is_float) {
        const double odd = double_of(scaled + step(near, off, TF_TO_ODD));
        return single_of(odd, rounding);
    }
    return double_of(scaled + step(near, off, rounding));
}

TF_INLINE size_t round_sums(const struct tf_row_of_sums *sums, enum tf_rounding rounding,
                            int is_float, void *results, uint8_t *undecided)
{
    size_t count = 0;
    for (size_t j = 0; j < sums->n; j++) {
        const struct interval x = interval_of(sums, j, rounding);
        const int64_t exponent =
            sums->column_exponents ? sums->row_exponent + sums->column_exponents[j] : 0;
        int is_normal = 1;
        const double low =
            rounded(x.sum, x.low, exponent, rounding, is_float, &is_normal);
        const double high =
            rounded(x.sum, x.high, exponent, rounding, is_float, &is_normal);
        if (is_float) {
            ((float *)results)[j] = (float)low;
        } else {
            ((double *)results)[j] = low;
        }
        undecided[j] = (long_of(low) != long_of(high)) | !is_normal;
        count += undecided[j];
    }
    return count;
}

/* Rounds sums of one term with a bound of one product to float32, ties to even: the first
 * and usual test. */
static size_t round_singles(const struct tf_row_of_sums *sums, float *results,
                            uint8_t *undecided)
{
    const double bound = sums->row_bounds[0] * (1 + 0x1p-40), ratio = sums->row_ratio;
    const double *terms = sums->terms, *bounds = sums->column_bounds;
    const double *ratios = sums->column_ratios;
    size_t count = 0;
    for (size_t j = 0; j < sums->n; j++) {
        const double error = ratio * ratios[j] <= 0x1p53 ? 0 : bound * bounds[j];
        const double sum = terms[j] + 0.0; /* -0 becomes +0 */
        const float low = (float)(sum - error), high = (float)(sum + error);
        results[j] = low;
        undecided[j] = int_of(low) != int_of(high);
    }
    for (size_t j = 0; j < sums->n; j++) {
        count += undecided[j];
    }
    return count;
}

#define CASE(rounding)                                                                    \
    case rounding:                                                                        \
        return is_float ? round_sums(sums, rounding, 1, results, undecided)               \
                        : round_sums(sums, rounding, 0, results, undecided)

size_t TF_PLAIN_NAME(tf_round_sums)(const struct tf_row_of_sums *sums,
                                    enum tf_rounding rounding, int is_float,
                                    void *results, uint8_t *undecided)
{
    if (sums->count == 1 && sums->ranks == 1 && is_float && !sums->column_exponents &&
        rounding == TF_TIES_TO_EVEN) {
        return round_singles(sums, results, undecided);
    }
    switch (rounding) {
        CASE(TF_TIES_TO_AWAY);
        CASE(TF_TOWARD_ZERO);
        CASE(TF_TOWARD_POSITIVE);
        CASE(TF_TOWARD_NEGATIVE);
        CASE(TF_TO_ODD);
    default: break;
    }
    return is_float ? round_sums(sums, TF_TIES_TO_EVEN, 1, results, undecided)
                    : round_sums(sums, TF_TIES_TO_EVEN, 0, results, undecided);
}
