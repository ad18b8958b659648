/* Chains of groups in two stages (TF_TWO_STAGES of tensor_core/rounded_model.h), for many
 * elements of C at a time, in 32 bits.
 *
 * The first stage is that of mma.c: a power of two scales products to the unit of their
 * sum, and a conversion to integers truncates them. The total of the second stage has 32
 * bits. Its unit is that of the sum, or larger if the accumulator is far above the sum. A
 * rounding to nearest needs to know of the bits lost by this only whether one is set. If
 * the rounding downward to 31 fraction bits keeps a lost bit that is one, the last bit of
 * the total becomes one. A conversion to float32 rounds the total.
 *
 * This is exact while the exponent of the products is ordinary, and the accumulator is
 * finite and not subnormal after scaling. Other elements are computed again: the second
 * stage in float64, or everything by the integer function if products may overflow.
 */
#include "tensor_core/kernels/two_stages.h"

#include "runtime/asserts.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "runtime/kernels/doubles.h"
#include "tensor_core/kernels/panels.h"
#include "tensor_core/elements.h"

enum {
    FRACTION = TF_TWO_STAGES_FRACTION,
    /* Limits of largest exponents, biased. From LOWEST on, the unit is normal and subnormal
     * accumulators count as in the model. Up to HIGHEST, no product is Inf. */
    LOWEST = FRACTION + 2,
    HIGHEST = 2 * BIAS - 2,
    NO_PRODUCT = TF_MMA_ZERO / 2,
    LEAST_PRODUCT = 2 * TF_LEAST_SINGLE + BIAS,
    /* Largest difference of the exponents of an accumulator and its unit: the accumulator
     * is less than 2^30 units. In its own units, a sum of products is less than 2^29 in one
     * lane, and less than 57 * 2^24 in two lanes, since operands then have 4 bits. A far
     * accumulator is at least 2^30 of these units, so the total has at least 26 bits, as
     * many as a rounding needs. */
    HEADROOM = 5
};

/* -- integers ---------------------------------------------------------------------- */

/* Returns x as integers, rounded downward. */
TF_INLINE words integers_below(floats x)
{
#if defined(__AVX512BW__)
    return (words)_mm512_cvt_roundps_epi32((__m512)x,
                                           _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
    return (words)_mm256_cvttps_epi32(_mm256_floor_ps((__m256)x));
#else
    const words cut = integers_of(x);
    return cut + (words)(__builtin_convertvector((ints)cut, floats) > x);
#endif
}

TF_INLINE words shifted_down(words x, words by) { return (words)((ints)x >> (ints)by); }

/* Returns x << by. Shifts are at most 32, which leaves nothing. */
TF_INLINE words shifted_up(words x, words by)
{
#if defined(__AVX2__)
    return (words)WIDE(sllv_epi32)((wide_ints)x, (wide_ints)by);
#else
    const words half = by >> 1;
    return x << half << (by - half);
#endif
}

TF_INLINE floats floats_of_words(words x)
{
    return __builtin_convertvector((ints)x, floats);
}

/* Returns the left or the right columns of words, of numbers that are not negative. */
TF_INLINE words column_of(shorts x, int side)
{
    return side ? (words)x >> 16 : (words)x & 0xFFFFu;
}

/* Returns 2^(x - BIAS) for the left or the right columns of words. */
TF_INLINE floats power_of(shorts x, int side)
{
    const words fields = (words)(x << 7);
    return (floats)(side ? fields & ~0xFFFFu : fields << 16);
}

/* -- a group ----------------------------------------------------------------------- */

/* Sums of products in units of 2^(exponent - FRACTION). */
struct stage {
    words total[ROWS][2];
    shorts exponents[ROWS]; /* biased, LOWEST to HIGHEST */
};

/* Returns the sums of a lane's products, whose largest exponents are given. */
TF_INLINE struct stage add_lane(struct operands x, struct place place,
                                const shorts exponents[ROWS], int ordinary)
{
    struct stage stage;
    floats scale[ROWS][2];
    UNROLLED for (int r = 0; r < ROWS; r++) {
        stage.exponents[r] = exponents[r];
        UNROLLED for (int s = 0; s < 2; s++) {
            scale[r][s] = power_of(FRACTION + 2 * BIAS - exponents[r], s);
            stage.total[r][s] = words_of(0);
        }
    }
    if (ordinary) {
        add_products(x, place, 0, place.count, scale, stage.total);
    } else {
        add_any_products(x, place, 0, place.count, scale, stage.total);
    }
    return stage;
}

/* Returns the sums of two lanes, at the larger exponent. */
TF_INLINE struct stage add_stages(struct stage x, struct stage y)
{
    struct stage sum;
    UNROLLED for (int r = 0; r < ROWS; r++) {
        const shorts e = greater_of(x.exponents[r], y.exponents[r]), most = shorts_of(31);
        const shorts shift_x = lesser_of(e - x.exponents[r], most);
        const shorts shift_y = lesser_of(e - y.exponents[r], most);
        sum.exponents[r] = e;
        UNROLLED for (int s = 0; s < 2; s++) {
            sum.total[r][s] = shifted_down(x.total[r][s], column_of(shift_x, s)) +
                              shifted_down(y.total[r][s], column_of(shift_y, s));
        }
    }
    return sum;
}

/* Returns which k of a group are in a lane. */
TF_INLINE struct place lane_of(int lanes, int lane, size_t first, size_t count)
{
    return lanes == 1 ? (struct place){first, count, 0}
                      : (struct place){first + lane, (count + 1 - lane) / 2, ~(size_t)0};
}

/* Returns whether all numbers are from `least` to `most`. */
TF_INLINE int are_within(const shorts x[ROWS], int16_t least, int16_t most)
{
    shorts low = x[0], high = x[0];
    UNROLLED for (int r = 1; r < ROWS; r++) {
        low = lesser_of(low, x[r]);
        high = greater_of(high, x[r]);
    }
    return !any((words)((low < least) | (high > most)));
}

/* Returns the total with its last bit set if the rounding downward keeps a bit below it
 * that is one. `below` begins with the bits below. A total as long as a far accumulator
 * keeps 2 of them, which makes 31 fraction bits. A total with one more bit keeps 1, and one
 * with fewer bits keeps 3, where the sum is truncated. A negative total has the length of
 * its complement, unless it is a power of two without bits below. Totals with bits below
 * are less than 1.5 * 2^30. */
TF_INLINE words with_bits_below(words total, words below)
{
    enum { BITS = FRACTION + HEADROOM };
    const words magnitude = total ^ (words)((ints)total >> 31);
    const words kept = words_of(UINT32_MAX << BITS) << (magnitude >> BITS);
#if defined(__AVX512BW__)
    const __mmask16 some = _mm512_test_epi32_mask((__m512i)below, (__m512i)kept);
    return (words)_mm512_mask_or_epi32((__m512i)total, some, (__m512i)total,
                                       _mm512_set1_epi32(1));
#else
    return total | ((words)((below & kept) != 0) & 1);
#endif
}

/* Adds sums of products to accumulators with the exponents `of_c`. The total is in units of
 * the sum, or in larger units if the accumulator is far above it. */
TF_INLINE void add_sums(int lanes, const struct stage *stage, const shorts of_c[ROWS],
                        struct accumulators *sums)
{
    UNROLLED for (int r = 0; r < ROWS; r++) {
        const shorts e = stage->exponents[r];
        const shorts unit = greater_of(e, of_c[r] - (int16_t)HEADROOM);
        const shorts off = lesser_of(unit - e, shorts_of(31));
        UNROLLED for (int s = 0; s < 2; s++) {
            const floats scale = power_of(FRACTION + 2 * BIAS - unit, s);
            words total = integers_below(sums->c[r][s] * scale);
            if (lanes == 2) {
                total &= signed_column_of(e - of_c[r] <= FRACTION + 1, s);
            }
            const words sum = stage->total[r][s];
            total += shifted_down(sum, column_of(off, s));
            const words below = shifted_up(sum, column_of(32 - off, s));
            total = with_bits_below(total, below);
            sums->c[r][s] =
                floats_of_words(total) * (floats)((2 * BIAS << 23) - (words)scale);
        }
    }
}

/* Returns whether accumulators are finite and, unless they are zero or exact, not subnormal
 * after scaling. */
TF_INLINE int can_scale(const struct stage *stage, const shorts of_c[ROWS])
{
    shorts greatest = of_c[0], above = of_c[0] - stage->exponents[0];
    UNROLLED for (int r = 1; r < ROWS; r++) {
        greatest = greater_of(greatest, of_c[r]);
        above = lesser_of(above, of_c[r] - stage->exponents[r]);
    }
    return !any((words)((greatest > 2 * BIAS) | (above < 1 - FRACTION - BIAS)));
}

/* Returns the result of the second stage in float64, for any exponents. As in
 * tf_rounded_two_stages, units are `2^(greatest - FRACTION - 8)`, and `sum` is in units of
 * 2^(exponent - FRACTION). */
TF_INLINE doubles add_sums_in_doubles(int lanes, doubles sum, longs exponent, doubles c)
{
    enum { MORE = TF_TWO_STAGES_KEPT + 1 - FRACTION };
    const longs least = longs_of(TF_LEAST_SINGLE);
    const longs of_c = greater_longs(exponent_of_double(c), least);
    const longs greatest = greater_longs(exponent, of_c);
    const longs unit = greatest - (FRACTION + MORE);
    doubles total = floor_of(sum * power_of_two(exponent - greatest + MORE));
    const doubles whole = floor_of(c * power_of_two(FRACTION - greatest));
    const longs counts =
        (longs)(greatest - of_c <= FRACTION + 1) | longs_of(lanes == 1 ? -1 : 0);
    total += (doubles)((longs)whole & counts) * (1 << MORE);
    /* Round downward to 31 fraction bits, then to nearest. */
    const longs top = greater_longs(exponent_of_double(total) + unit, least);
    const longs lost = greater_longs(top - TF_TWO_STAGES_KEPT - unit, longs_of(0));
    return floor_of(total * power_of_two(-lost)) * power_of_two(lost + unit) + 0.0;
}

/* Returns the results of a vector whose products do not overflow. Accumulators of NaN or
 * Inf remain, and all accumulators remain if there is no product. */
__attribute__((noinline)) static floats add_in_doubles(int lanes, words sum, words exponents,
                                                       floats c)
{
    doubles halves[2];
    const words none = (words)((ints)exponents < NO_PRODUCT);
    UNROLLED for (int half = 0; half < 2; half++) {
        const longs exponent =
            greater_longs(half_of_integers(exponents, half) - BIAS, longs_of(-300));
        halves[half] = add_sums_in_doubles(lanes, half_of_sums(sum, half), exponent,
                                           half_of_any_floats(c, half));
    }
    const words magnitude = (words)c & TF_MAGNITUDE_BITS;
    const words remain = none | (words)((ints)magnitude >= TF_INF_BITS);
    const words nan = (words)((ints)magnitude > TF_INF_BITS), zero = (words)(magnitude == 0);
    const words kept = ((words)c & ~nan & ~zero) | (words_of(TF_MAGNITUDE_BITS) & nan);
    const words found = (words)singles_of_any(halves[0], halves[1], 0);
    return (floats)((kept & remain) | (found & ~remain));
}

/* Returns the accumulators plus those products that are Inf or NaN, or zero if there are
 * none. Operands of 11 bits or fewer have exact products. */
__attribute__((noinline)) static floats add_beyond(const float *a, const float *b,
                                                   size_t count, floats c)
{
    floats beyond = floats_of(0);
    tf_fp_flush_results(1);
    for (size_t k = 0; k < count; k++) {
        const floats product = floats_of(a[k]) * load_floats(b + k * COLUMNS);
        const words magnitude = (words)product & TF_MAGNITUDE_BITS;
        beyond += (floats)((words)product & (words)((ints)magnitude >= TF_INF_BITS));
    }
    tf_fp_flush_results(0);
    const floats sum = c + beyond;
    const words some = (words)(beyond != 0), nan = (words)(sum != sum);
    return (floats)(((((words)sum & ~nan) | (words_of(TF_MAGNITUDE_BITS) & nan))) & some);
}

/* Computes the doubtful results of `given` by integers. NaN remains NaN. */
__attribute__((noinline)) static void
redo_with_integers(const struct tf_rounded_model *model, const struct operands *x,
                   size_t first, size_t count, words doubt[ROWS][2],
                   const struct accumulators *given, struct accumulators *next)
{
    for (int r = 0; r < ROWS; r++) {
        const float *a = x->a + (size_t)r * x->lda + first;
        for (int s = 0; s < 2; s++) {
            floats sums = next->c[r][s];
            for (int lane = 0; lane < LANES; lane++) {
                const float *b = x->b + first * COLUMNS + s * LANES + lane;
                const float c = given->c[r][s][lane];
                if (doubt[r][s][lane]) {
                    sums[lane] =
                        c != c ? tf_float_of(tf_mma_nan(0))
                               : tf_rounded_element(model, a, b, COLUMNS, count, c);
                }
            }
            next->c[r][s] = sums;
        }
    }
}

/* Adds as add_sums does, for any products and accumulators. `given` has the exponents of
 * the products. `low`, if not NULL, has sums of low products in their units. */
__attribute__((noinline)) static void
add_or_redo(const struct tf_rounded_model *model, const struct operands *x, size_t first,
            size_t count, const struct stage *stage, const shorts given[ROWS],
            const struct low_sums *low, const shorts of_c[ROWS], struct accumulators *sums)
{
    const int lanes = model->lanes;
    struct accumulators next = *sums;
    words doubt[ROWS][2], some = words_of(0);
    add_sums(lanes, stage, of_c, &next);
    UNROLLED for (int r = 0; r < ROWS; r++) {
        const shorts e = stage->exponents[r], above = of_c[r] - e;
        /* A group without products has the lowest exponent, too. */
        const shorts below = (given[r] < LOWEST) & ~(given[r] < NO_PRODUCT);
        const shorts outside = below | (given[r] > HIGHEST) | (of_c[r] > 2 * BIAS) |
                               ((e == LOWEST) & (of_c[r] < LOWEST));
        /* In two lanes, accumulators that are so small do not count. */
        const shorts small = shorts_of(lanes == 1 ? -1 : 0) & (above < 1 - FRACTION - BIAS);
        UNROLLED for (int s = 0; s < 2; s++) {
            doubt[r][s] = signed_column_of(outside, s) |
                          (signed_column_of(small, s) & (words)(sums->c[r][s] != 0));
            if (any(doubt[r][s])) {
                const words is_low = low ? signed_column_of(below, s) : words_of(0);
                words sum = stage->total[r][s];
                if (low) {
                    const words all =
                        (low->total[1][r][s] << LOW_BITS) + low->total[0][r][s];
                    sum = (sum & ~is_low) | (all & is_low);
                }
                const floats found =
                    add_in_doubles(lanes, sum, signed_column_of(given[r], s), sums->c[r][s]);
                const words high = signed_column_of(given[r] > HIGHEST, s);
                words known = (words)found & ~high, taken = doubt[r][s] & ~high;
                if (any(high)) {
                    const words beyond = (words)add_beyond(
                        x->a + (size_t)r * x->lda + first,
                        x->b + first * COLUMNS + s * LANES, count, sums->c[r][s]);
                    known |= beyond & high;
                    taken |= (words)(beyond != 0) & high;
                }
                next.c[r][s] =
                    (floats)((known & taken) | ((words)next.c[r][s] & ~taken));
                doubt[r][s] &= ~taken;
            }
            some |= doubt[r][s];
        }
    }
    if (any(some)) {
        redo_with_integers(model, x, first, count, doubt, sums, &next);
    }
    *sums = next;
}

/* Returns the sums of a lane's products of any exponents, and raises `given` to those. */
__attribute__((noinline)) static struct stage
add_any_lane(const struct operands *x, struct place place, shorts given[ROWS])
{
    shorts exponents[ROWS];
    find_greatest(*x, place, exponents);
    UNROLLED for (int r = 0; r < ROWS; r++) {
        const shorts e = exponents[r];
        exponents[r] = lesser_of(greater_of(e, shorts_of(LOWEST)), shorts_of(HIGHEST));
        given[r] = greater_of(given[r], e);
    }
    tf_fp_flush_results(1); /* faster: subnormal products are truncated anyway */
    const struct stage stage = add_lane(*x, place, exponents, 0);
    tf_fp_flush_results(0);
    return stage;
}

/* Adds a group whose products have any exponents. */
__attribute__((noinline)) static void
add_any_group(const struct tf_rounded_model *model, const struct operands *x, size_t first,
              size_t count, struct accumulators *sums)
{
    const int lanes = model->lanes;
    struct accumulators now = *sums;
    shorts given[ROWS], of_c[ROWS];
    UNROLLED for (int r = 0; r < ROWS; r++) {
        given[r] = shorts_of(INT16_MIN);
        of_c[r] = exponents_of(now.c[r][0], now.c[r][1], 0);
    }
    struct stage stage = add_any_lane(x, lane_of(lanes, 0, first, count), given);
    if (lanes == 2) { /* products of two lanes are not low */
        const struct place odd = lane_of(lanes, 1, first, count);
        stage = add_stages(stage, add_any_lane(x, odd, given));
        add_or_redo(model, x, first, count, &stage, given, NULL, of_c, &now);
    } else {
        shorts unit[ROWS];
        UNROLLED for (int r = 0; r < ROWS; r++) {
            unit[r] = lesser_of(greater_of(given[r], shorts_of(LEAST_PRODUCT)),
                                shorts_of(LOWEST)) - FRACTION;
        }
        const struct low_sums low =
            add_low_products(*x, lane_of(lanes, 0, first, count), unit);
        add_or_redo(model, x, first, count, &stage, given, &low, of_c, &now);
    }
    *sums = now;
}

/* Adds a group to the accumulators. */
TF_INLINE void add_group(int lanes, const struct tf_rounded_model *model, struct operands x,
                         size_t first, size_t count, struct accumulators *sums)
{
    shorts exponents[2][ROWS], of_c[ROWS];
    int ordinary = !SMALL;
    UNROLLED for (int lane = 0; lane < lanes; lane++) {
        find_greatest(x, lane_of(lanes, lane, first, count), exponents[lane]);
        ordinary &= are_within(exponents[lane], LOWEST + 1, HIGHEST);
    }
    if (__builtin_expect(!ordinary, 0)) {
        struct accumulators next = *sums;
        add_any_group(model, &x, first, count, &next);
        *sums = next;
        return;
    }
    struct stage stage = add_lane(x, lane_of(lanes, 0, first, count), exponents[0], 1);
    if (lanes == 2) {
        stage = add_stages(stage,
                           add_lane(x, lane_of(lanes, 1, first, count), exponents[1], 1));
    }
    UNROLLED for (int r = 0; r < ROWS; r++) {
        of_c[r] = exponents_of(sums->c[r][0], sums->c[r][1], 0);
    }
    if (__builtin_expect(can_scale(&stage, of_c), 1)) {
        add_sums(lanes, &stage, of_c, sums);
        return;
    }
    /* Pass copies: variables whose address is taken do not stay in registers above. */
    const struct stage stage_copy = stage;
    struct accumulators next = *sums;
    shorts of_c_copy[ROWS];
    memcpy(of_c_copy, of_c, sizeof of_c_copy);
    add_or_redo(model, &x, first, count, &stage_copy, stage_copy.exponents, NULL, of_c_copy,
                &next);
    *sums = next;
}

/* -- chains ------------------------------------------------------------------------ */

TF_INLINE void chain(int lanes, const struct tf_rounded_model *model, struct operands x,
                     size_t depth, float *c, size_t ldc)
{
    struct accumulators sums[ROW_SETS];
    load_sums(c, ldc, sums);
    for (size_t k = 0; k < depth; k += (size_t)model->depth) {
        const size_t count = tf_min_size(depth - k, (size_t)model->depth);
        struct operands rows = x;
        for (int set = 0; set < ROW_SETS; set++) {
            add_group(lanes, model, rows, k, count, &sums[set]);
            rows.a += ROWS * x.lda;
            rows.a_exponents += ROWS * x.lda;
        }
    }
    store_sums(sums, c, ldc);
}

#define CHAIN(name, lanes)                                                          \
    static void name(const struct tf_rounded_model *model, struct operands x,       \
                     size_t depth, float *c, size_t ldc)                            \
    {                                                                               \
        chain(lanes, model, x, depth, c, ldc);                                      \
    }
CHAIN(chain_one_lane, 1)
CHAIN(chain_two_lanes, 2)

void TF_PLAIN_NAME(tf_two_stage_chains)(const struct tf_mma_plan *plan, const float *a,
                                        const uint32_t *a_exponents, size_t lda,
                                        const float *b, const uint32_t *b_exponents,
                                        size_t depth, size_t rows, float *c, size_t ldc)
{
    const struct tf_rounded_model *model = &plan->rounded;
    TF_ASSERT(rows % TF_MR == 0 && depth > 0);
    for (size_t i = 0; i < rows; i += TF_MR) {
        for (size_t j = 0; j < COLUMNS; j += SIDE) {
            const struct operands x = {a + i * lda, b + j, a_exponents + i * lda,
                                       b_exponents + j / 2, lda};
            (model->lanes == 1 ? chain_one_lane : chain_two_lanes)(model, x, depth,
                                                                   c + i * ldc + j, ldc);
        }
    }
}
