/* The test of rounding (Ziv, "Fast evaluation of elementary mathematical functions with
 * correctly rounded last bit", ACM TOMS 17(3), 1991): a sum is decided if both ends of the
 * interval that contains the exact value round to the same number. Rounding never
 * decreases, so that the exact value rounds to this number, too. */
#include <math.h>

#include "exact/kernels/plain/decls.h"
#include "runtime/kernels/doubles.h"

typedef uint8_t few_bytes __attribute__((vector_size(PLACES)));

/* Copies up to PLACES items. */
TF_INLINE void store_some(void *to, const void *from, size_t itemsize, size_t left)
{
    memcpy(to, from, itemsize * (left < PLACES ? left : PLACES));
}

TF_INLINE doubles choose(longs mask, doubles x, doubles y)
{
    return (doubles)(((longs)x & mask) | ((longs)y & ~mask));
}

/* -- directions ---------------------------------------------------------------------- */

/* Returns 1, -1 or 0: the step in units of the last place, away from zero, from x to the
 * rounding of x + rest. x is the rounding of x + rest to nearest. */
TF_INLINE longs step(doubles x, doubles rest, enum tf_rounding rounding)
{
    const longs inward = ((longs)x ^ (longs)rest) >> 63; /* -1: x + rest is nearer to 0 */
    const longs direction = (inward + inward + 1) & (longs)(rest != 0);
    switch (rounding) {
    case TF_TOWARD_ZERO: return direction & inward;
    case TF_TOWARD_POSITIVE: return direction & (longs)(rest > 0);
    case TF_TOWARD_NEGATIVE: return direction & (longs)(rest < 0);
    case TF_TO_ODD: return direction & (((longs)x & 1) - 1);
    default: return longs_of(0);
    }
}

/* Rounds doubles, which were rounded to odd, to the bits of float32. */
TF_INLINE few_ints singles_by(doubles x, enum tf_rounding rounding)
{
    const few_floats near = singles_of(x);
    if (rounding == TF_TIES_TO_EVEN || rounding == TF_TIES_TO_AWAY) {
        return (few_ints)near;
    }
    const doubles back = magnitude_of_doubles(doubles_of(near)), exact = magnitude_of_doubles(x);
    const longs above = (longs)(back > exact), below = (longs)(back < exact);
    const longs negative = (longs)x >> 63;
    longs change = above; /* -1: a unit nearer to zero */
    if (rounding == TF_TOWARD_POSITIVE) {
        change = (above & negative) - (below & ~negative);
    } else if (rounding == TF_TOWARD_NEGATIVE) {
        change = (above & ~negative) - (below & negative);
    }
    const few_ints bits = (few_ints)near + __builtin_convertvector(change, few_ints);
    if (rounding == TF_TO_ODD) {
        return bits | (__builtin_convertvector(above | below, few_ints) & 1);
    }
    return bits;
}

/* -- intervals ------------------------------------------------------------------------ */

/* Sums and their bounds: the exact values are in [sum + low, sum + high]. */
struct intervals {
    doubles sum, low, high;
};

/* Adds the terms of PLACES sums from j on, of which `left` count. */
TF_INLINE struct intervals intervals_of(const struct tf_row_of_sums *sums, size_t j,
                                        size_t left, enum tf_rounding rounding)
{
    doubles error = all_lanes(0);
    for (size_t t = 0; t < sums->ranks; t++) {
        error += all_lanes(sums->row_bounds[t * sums->row_step]) *
                 load_some_doubles(sums->column_bounds + t * sums->column_step + j, left);
    }
    if (sums->ranks) {
        const doubles ratio =
            sums->row_ratio * load_some_doubles(sums->column_ratios + j, left);
        error = choose((longs)(ratio <= 0x1p53), all_lanes(0), error);
    }
    doubles sum = load_some_doubles(sums->terms + j, left);
    doubles rest = all_lanes(0), lost = all_lanes(0);
    for (size_t t = 1; t < sums->count; t++) {
        const doubles term = load_some_doubles(sums->terms + t * sums->term_step + j, left);
        const doubles before = sum, after = before + term, part = after - before;
        const doubles off = (before - (after - part)) + (term - part);
        const doubles sooner = rest, later = sooner + off, share = later - sooner;
        lost += magnitude_of_doubles((sooner - (later - share)) + (off - share));
        rest = later;
        sum = after;
    }
    /* The bound covers its own roundings, and those of both ends of the interval. */
    error = (error + lost) * (1 + 0x1p-40);
    if (rounding == TF_TIES_TO_AWAY) { /* a tie is undecided */
        const longs is_zero = (longs)(sum == 0) & (longs)(rest == 0);
        error += (doubles)((longs)all_lanes(0x1p-1074) & ~is_zero);
    }
    const doubles slack = magnitude_of_doubles(rest) * 0x1p-52;
    error += (doubles)((longs)slack & (longs)(error > 0));
    return (struct intervals){sum, rest - error, rest + error};
}

/* Rounds (x + rest) * 2^exponent to float64, or to odd for float32. Out of float64's normal
 * range, float32 results are those of the range's ends. Otherwise *strange is set to -1. */
TF_INLINE doubles rounded(doubles x, doubles rest, longs exponent, enum tf_rounding rounding,
                          int is_float, longs *strange)
{
    const doubles near = x + rest, part = near - x;
    const doubles off = (x - (near - part)) + (rest - part);
    const longs infinity = longs_of(INT64_C(0x7FF) << 52);
    const longs bits = (longs)near, field = (bits & infinity) >> 52;
    const longs wanted = field + exponent;
    const longs small = (longs)(wanted < 2), large = (longs)(wanted > 0x7FD);
    const longs inside = (longs_of(2) & small) | (longs_of(0x7FD) & large) |
                         (wanted & ~small & ~large);
    const longs is_zero = (longs)(near == 0);
    *strange |= is_float ? (longs)(field == 0x7FF) : (small | large) & ~is_zero;
    const doubles scaled = (doubles)(((bits & ~infinity) | inside << 52) & ~is_zero);
    return (doubles)((longs)scaled + step(scaled, off, is_float ? TF_TO_ODD : rounding));
}

TF_INLINE longs exponents_at(const struct tf_row_of_sums *sums, size_t j, size_t left)
{
    longs exponents = longs_of(0);
    if (sums->column_exponents) {
        store_some(&exponents, sums->column_exponents + j, sizeof(int64_t), left);
        exponents += sums->row_exponent;
    }
    return exponents;
}

TF_INLINE size_t total_of(longs counts)
{
    size_t total = 0;
    for (int i = 0; i < PLACES; i++) {
        total += (size_t)counts[i];
    }
    return total;
}

TF_INLINE void mark(uint8_t *undecided, longs marks, size_t left)
{
    const few_bytes bytes = __builtin_convertvector(-marks, few_bytes);
    store_some(undecided, &bytes, 1, left);
}

/* Rounds PLACES sums from j on, of which `left` count. Marks undecided ones. */
TF_INLINE longs round_some(const struct tf_row_of_sums *sums, size_t j, size_t left,
                           enum tf_rounding rounding, int is_float, void *results,
                           uint8_t *undecided)
{
    const struct intervals x = intervals_of(sums, j, left, rounding);
    const longs exponents = exponents_at(sums, j, left);
    longs marks = longs_of(0);
    const doubles low = rounded(x.sum, x.low, exponents, rounding, is_float, &marks);
    const doubles high = rounded(x.sum, x.high, exponents, rounding, is_float, &marks);
    if (is_float) {
        const few_ints first = singles_by(low, rounding), last = singles_by(high, rounding);
        marks |= __builtin_convertvector(first ^ last, longs) != 0;
        store_some((float *)results + j, &first, sizeof(float), left);
    } else {
        marks |= (longs)low != (longs)high;
        store_some((double *)results + j, &low, sizeof(double), left);
    }
    mark(undecided + j, marks, left);
    return marks;
}

TF_INLINE size_t round_sums(const struct tf_row_of_sums *sums, enum tf_rounding rounding,
                            int is_float, void *results, uint8_t *undecided)
{
    longs counts = longs_of(0);
    size_t j = 0;
    for (; j + PLACES <= sums->n; j += PLACES) {
        counts -= round_some(sums, j, PLACES, rounding, is_float, results, undecided);
    }
    if (j < sums->n) {
        counts -=
            round_some(sums, j, sums->n - j, rounding, is_float, results, undecided);
    }
    return total_of(counts);
}

/* As round_some, for sums of one term with a bound of one product, and for float32 and ties
 * to even: the first and usual test. */
TF_INLINE longs round_few_singles(const struct tf_row_of_sums *sums, size_t j, size_t left,
                                  float *results, uint8_t *undecided)
{
    const doubles bound = all_lanes(sums->row_bounds[0] * (1 + 0x1p-40));
    const doubles ratio =
        all_lanes(sums->row_ratio) * load_some_doubles(sums->column_ratios + j, left);
    const doubles error = bound * load_some_doubles(sums->column_bounds + j, left);
    const doubles sum = load_some_doubles(sums->terms + j, left) + 0.0; /* -0 becomes +0 */
    /* The ends are rounded to float64 first, but not to a midpoint within them. */
    const doubles slack = magnitude_of_doubles(sum) * 0x1p-50;
    const longs exact = (longs)(ratio <= 0x1p53) | (longs)(error == 0);
    const doubles off = choose(exact, all_lanes(0), error + slack);
    const few_floats low = singles_of(sum - off), high = singles_of(sum + off);
    const longs differ = __builtin_convertvector((few_ints)low ^ (few_ints)high, longs);
    const longs marks = (longs)(differ != 0);
    store_some(results + j, &low, sizeof *results, left);
    mark(undecided + j, marks, left);
    return marks;
}

static size_t round_singles(const struct tf_row_of_sums *sums, float *results,
                            uint8_t *undecided)
{
    longs counts = longs_of(0);
    size_t j = 0;
    for (; j + PLACES <= sums->n; j += PLACES) {
        counts -= round_few_singles(sums, j, PLACES, results, undecided);
    }
    if (j < sums->n) {
        counts -= round_few_singles(sums, j, sums->n - j, results, undecided);
    }
    return total_of(counts);
}

#define CASE(rounding)                                                        \
    case rounding:                                                            \
        return is_float ? round_sums(sums, rounding, 1, results, undecided)   \
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
