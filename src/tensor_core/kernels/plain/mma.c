/* Chains of a tensor core's MMA groups: compute as tensor_core/mma_model.h does, but many
 * elements of C at a time and without integer significands.
 *
 * Products of operands are exact in float32. A power of two scales them to the unit of
 * their group's sum, and a conversion to integers that truncates toward zero is the
 * alignment. The exponents of both operands are stored beforehand as 16-bit numbers, two
 * columns per word. The exponent of a product is the sum of two of them.
 *
 * This is exact while the largest exponent of a group is ordinary: it must not be special
 * or above float32's range, nor so low that a product that counts is not a normal float32.
 * Other elements are computed again by the integer function, one group at a time.
 */
#include "runtime/asserts.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "runtime/inline.h"
#include "runtime/kernels/doubles.h"
#include "tensor_core/kernels/panels.h"

/* -- an MMA group ------------------------------------------------------------------ */

enum {
    FITS = 16, /* products whose sum fits 32 bits, at 25 fraction bits */
    NO_PRODUCT = TF_MMA_ZERO / 2,
};

/* Properties that are constants in a loop: accumulators are float16 (`half`) or have fewer
 * bits than float32 (`cut`); sums always fit 32 bits (`fits`); instructions are emulated;
 * groups have doubtful elements, or only seem doubtful because of zeros. */
enum { DOUBTFUL = 1, WITH_ZEROS };
struct mma_variant {
    int half, cut, fits, emulated, doubtful;
};

/* Returns a group's largest exponents, biased, limited to F - 125 to 125, where float32 is
 * exact (see "groups in float32" of mma_model.h). Sets `doubt` where they were not. */
TF_INLINE shorts complete(const struct tf_mma_plan *plan, shorts greatest,
                          floats left, floats right, int half, words *doubt)
{
    const int16_t lowest = (int16_t)(plan->model.fraction + 2), highest = 2 * BIAS - 2;
    const int32_t floor = plan->model.zero_c > plan->model.floor ? plan->model.zero_c
                                                                 : plan->model.floor;
    const int16_t low = floor > TF_NO_EXPONENT ? (int16_t)(floor + BIAS) : INT16_MIN;
    shorts e = greater_of(greatest, exponents_of(left, right, half));
    if (half) { /* floors of float32 accumulators are out of range */
        e = greater_of(e, shorts_of(low));
    }
    const shorts within =
        lesser_of(greater_of(e, shorts_of(lowest)), shorts_of(highest));
    *doubt |= (words)(within ^ e);
    return within;
}

/* The accumulator and the sums of FITS products each. Their total may not fit 32 bits. */
struct parts {
    words part[1 + TF_MMA_DEPTH / FITS][ROWS][2];
    size_t count;
};

/* Returns the total of the parts, at most 35 bits, as float32 rounded toward zero or to
 * odd. If it does not fit 32 bits, its upper bits are converted. Lost bits, which are far
 * below the 24 bits kept, set the last of these. */
TF_INLINE floats add_parts(const struct parts *parts, int r, int s, int odd)
{
    words high = words_of(0), low = words_of(0); /* high * 2^16 + low */
    for (size_t i = 0; i < parts->count; i++) {
        low += parts->part[i][r][s] & 0xFFFFu;
        high += (words)((ints)parts->part[i][r][s] >> 16);
    }
    high += low >> 16;
    low &= 0xFFFFu;
    const words fits = (words)(high + 0x8000u < 0x10000u);
    const words upper = high << 13 | low >> 3 | ((words)((low & 7) != 0) & 1);
    const floats whole = floats_toward_zero(high << 16 | low, odd);
    const floats large = floats_toward_zero(upper, odd) * 8;
    return (floats)(((words)whole & fits) | ((words)large & ~fits));
}

/* Adds the products of a group to the accumulators. Returns 1 if an element is in doubt,
 * and then adds nothing. If the variant is doubtful, the group is added in any case. */
TF_INLINE int add_group(const struct tf_mma_plan *plan, struct operands x,
                        struct place place, struct mma_variant variant,
                        struct accumulators *sums)
{
    floats scale[ROWS][2];
    words total[ROWS][2], doubt = words_of(0), wrapped = words_of(0);
    struct parts parts; /* used unless the sum fits */
    shorts greatest[ROWS];

    find_greatest(x, place, greatest);
    UNROLLED for (int r = 0; r < ROWS; r++) {
        const shorts e = complete(plan, greatest[r], sums->c[r][0], sums->c[r][1],
                                  variant.half, &doubt);
        const words both = (words)((int16_t)(plan->model.fraction + 2 * BIAS) - e);
        scale[r][0] = (floats)(both << 23); /* `2^(fraction - greatest)` */
        scale[r][1] = (floats)(both >> 16 << 23);
        UNROLLED for (int s = 0; s < 2; s++) {
            const floats c = sums->c[r][s];
            total[r][s] = integers_of((variant.doubtful == DOUBTFUL ? without_subnormal(c) : c) *
                                      scale[r][s]);
            parts.part[0][r][s] = total[r][s];
        }
    }
    if (!variant.doubtful && __builtin_expect(any(doubt), 0)) {
        return 1;
    }
    parts.count = 1;
    const size_t together = variant.fits ? TF_MMA_DEPTH : FITS;
    for (size_t begin = 0; begin < place.count; begin += together) {
        const size_t end = begin + tf_min_size(place.count - begin, together);
        words before[ROWS][2];
        UNROLLED for (int r = 0; r < ROWS; r++) {
            UNROLLED for (int s = 0; s < 2; s++) {
                before[r][s] = variant.fits ? words_of(0) : total[r][s];
                total[r][s] -= before[r][s];
            }
        }
        if (variant.doubtful == DOUBTFUL) {
            add_any_products(x, place, begin, end, scale, total);
        } else {
            add_products(x, place, begin, end, scale, total);
        }
        UNROLLED for (int r = 0; r < ROWS; r++) {
            UNROLLED for (int s = 0; s < 2; s++) {
                const words sum = before[r][s] + total[r][s];
                if (!variant.fits) {
                    wrapped |= (sum ^ before[r][s]) & (sum ^ total[r][s]);
                    parts.part[parts.count][r][s] = total[r][s];
                }
                total[r][s] = sum;
            }
        }
        parts.count++;
    }
    const int wraps = !variant.fits && any(wrapped & TF_SIGN_BIT);
    UNROLLED for (int r = 0; r < ROWS; r++) {
        UNROLLED for (int s = 0; s < 2; s++) {
            /* The unit, 2^(largest exponent - fraction), is the inverse of the scale. */
            const floats unit = (floats)((2 * BIAS << 23) - (words)scale[r][s]);
            const floats integer = wraps
                                       ? add_parts(&parts, r, s, variant.half)
                                       : floats_toward_zero(total[r][s], variant.half);
            const floats sum = integer * unit;
            const floats cut =
                variant.half || variant.cut ? (floats)((words)sum & plan->mask) : sum;
            sums->c[r][s] = variant.half ? to_float16(cut) + plan->zero : cut;
        }
    }
    return 0;
}

/* -- doubtful groups ---------------------------------------------------------------- */

/* Computes wanted accumulators of a row by integers from c * 2^scale, and returns `next`
 * with them. Gathers all elements first: vector loads wait for stores of single ones. */
static floats add_exactly(const struct tf_mma_plan *plan, const float *a,
                          const float *b, struct place place, floats c, int scale,
                          words wanted, floats next)
{
    uint32_t p[TF_MMA_DEPTH], q[LANES][TF_MMA_DEPTH];
    const int32_t count = (int32_t)place.count;
    for (size_t i = 0; i < place.count; i++) {
        p[i] = tf_bits_of(a[place_of(place, i)]);
    }
    for (int lane = 0; lane < LANES; lane++) {
        for (size_t i = 0; wanted[lane] && i < place.count; i++) {
            q[lane][i] = tf_bits_of(b[place_of(place, i) * COLUMNS + (size_t)lane]);
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        if (wanted[lane]) {
            next[lane] = tf_float_of(tf_mma_dot(
                &plan->model, p, 1, q[lane], 1, count, tf_bits_of(c[lane]), scale,
                0));
        }
    }
    return next;
}

/* Returns the largest exponents of groups with float32 accumulators, biased, even if they
 * are low. A group of zeros has the exponent of the floor. */
TF_INLINE shorts any_exponents(const struct tf_mma_plan *plan, shorts greatest,
                               const floats c[2])
{
    const int32_t floor = plan->model.zero_c > plan->model.floor ? plan->model.zero_c
                                                                 : plan->model.floor;
    const int32_t least = 2 * TF_LEAST_SINGLE;
    const shorts of_c = exponents_of(c[0], c[1], 0);
    const words left = (words)((words)c[0] << 1 != 0), right = (words)((words)c[1] << 1 != 0);
    const shorts is_there = (shorts)((left & 0xFFFFu) | (right & ~0xFFFFu));
    const shorts counted = (greater_of(of_c, shorts_of(1)) & is_there) |
                           (shorts_of(INT16_MIN) & ~is_there);
    return greater_of(greater_of(greatest, counted),
                      shorts_of((int16_t)((floor > least ? floor : least) + BIAS)));
}

/* Returns the accumulators of a vector plus the products of a group with low exponents.
 * Uses float64, which holds these sums and accumulators exactly. */
TF_INLINE floats add_low_sums(int fraction, const words total[2], words exponents, floats c)
{
    doubles halves[2];
    UNROLLED for (int half = 0; half < 2; half++) {
        const longs unit = half_of_integers(exponents, half) - (BIAS + fraction);
        const doubles sum = half_of_sums(total[1], half) * (1 << LOW_BITS) +
                            half_of_sums(total[0], half);
        const doubles scaled = half_of_any_floats(c, half) * power_of_two(-unit);
        const doubles cut = floor_of(magnitude_of_doubles(scaled));
        const longs sign = (longs)scaled & INT64_MIN;
        halves[half] = (sum + (doubles)((longs)cut | sign)) * power_of_two(unit);
    }
    return singles_of_any(halves[0], halves[1], 1);
}

/* Computes those wanted results again whose groups have low exponents, from the
 * accumulators `now`, and clears them in `wanted`. */
__attribute__((noinline)) static void
redo_low(const struct tf_mma_plan *plan, const struct operands *x, struct place place,
         const shorts greatest[ROWS], const struct accumulators *now,
         words wanted[ROWS][2], struct accumulators *next)
{
    const int fraction = plan->model.fraction;
    shorts exponents[ROWS], unit[ROWS], low[ROWS];
    words some = words_of(0);
    for (int r = 0; r < ROWS; r++) {
        exponents[r] = any_exponents(plan, greatest[r], now->c[r]);
        low[r] = exponents[r] < (int16_t)(fraction + 2);
        unit[r] = lesser_of(exponents[r], shorts_of((int16_t)(fraction + 1))) -
                  (int16_t)fraction;
        for (int s = 0; s < 2; s++) {
            some |= wanted[r][s] & signed_column_of(low[r], s);
        }
    }
    if (!any(some)) {
        return;
    }
    const struct low_sums sums = add_low_products(*x, place, unit);
    for (int r = 0; r < ROWS; r++) {
        for (int s = 0; s < 2; s++) {
            const words total[2] = {sums.total[0][r][s], sums.total[1][r][s]};
            const words taken = wanted[r][s] & signed_column_of(low[r], s);
            const words found = (words)add_low_sums(
                fraction, total, signed_column_of(exponents[r], s), now->c[r][s]);
            next->c[r][s] =
                (floats)((found & taken) | ((words)next->c[r][s] & ~taken));
            wanted[r][s] &= ~taken;
        }
    }
}

/* Computes doubtful results again, by integers unless their exponents are low. The
 * accumulators are `now`, which is `given` * 2^scale. A sum of zeros is not in doubt: its
 * exponent looks too low, but zero is right. NaN remains NaN. */
__attribute__((noinline)) static void
redo_with_integers(const struct tf_mma_plan *plan, const struct operands *x,
                   struct place place, struct mma_variant variant,
                   const struct accumulators *now,
                   const struct accumulators *given, int scale,
                   struct accumulators *next)
{
    const floats nan = floats_of(tf_float_of(tf_mma_nan(variant.half)));
    shorts greatest[ROWS];
    words all_wanted[ROWS][2];
    find_greatest(*x, place, greatest);
    for (int r = 0; r < ROWS; r++) {
        words out = words_of(0);
        complete(plan, greatest[r], now->c[r][0], now->c[r][1], variant.half, &out);
        const words products = (words)(greatest[r] >= NO_PRODUCT);
        const words special = (words)(greatest[r] >= TF_MMA_SPECIAL / 2);
        for (int s = 0; s < 2; s++) {
            const floats c = given->c[r][s];
            /* NaN remains, and Inf remains if no operand is special. */
            const words is_nan = (words)(c != c);
            const words is_infinite = (words)(((words)c << 1) == 0xFF000000u) &
                                      (words)((special >> 16 * s & 0xFFFFu) == 0);
            const words is_there =
                (words)((products >> 16 * s & 0xFFFFu) != 0) | (words)(c != 0);
            const words wanted =
                (words)((out >> 16 * s & 0xFFFFu) != 0) & is_there & ~is_nan &
                ~is_infinite;
            next->c[r][s] = (floats)(((words)next->c[r][s] & ~(is_nan | is_infinite)) |
                                     ((words)nan & is_nan) | ((words)c & is_infinite));
            all_wanted[r][s] = wanted;
        }
    }
    if (!variant.half && !variant.cut && !scale && !plan->model.negative_zero) {
        redo_low(plan, x, place, greatest, now, all_wanted, next);
    }
    for (int r = 0; r < ROWS; r++) {
        for (int s = 0; s < 2; s++) {
            if (any(all_wanted[r][s])) {
                next->c[r][s] =
                    add_exactly(plan, x->a + (size_t)r * x->lda, x->b + s * LANES, place,
                                given->c[r][s], scale, all_wanted[r][s], next->c[r][s]);
            }
        }
    }
}

/* Returns whether groups are the only float32 arithmetic. Subnormal results do not count in
 * groups and may be flushed to zero, which is faster. */
TF_INLINE int are_groups_alone(const struct tf_mma_plan *plan)
{
    return plan->count == 1 && !plan->stretch;
}

/* Classifies a group that seems doubtful: DOUBTFUL; WITH_ZEROS if only zeros make exponents
 * look too low; 0 if everything is zero. */
static int what_is_in_doubt(const struct tf_mma_plan *plan, const struct operands *x,
                            struct place place, struct mma_variant variant,
                            const struct accumulators *now)
{
    words some = words_of(0), doubts = words_of(0);
    shorts greatest[ROWS];
    find_greatest(*x, place, greatest);
    for (int r = 0; r < ROWS; r++) {
        words out = words_of(0);
        complete(plan, greatest[r], now->c[r][0], now->c[r][1], variant.half, &out);
        for (int s = 0; s < 2; s++) {
            const words is_there = signed_column_of(greatest[r] >= NO_PRODUCT, s) |
                                   (words)((words)now->c[r][s] << 1 != 0);
            some |= is_there;
            doubts |= is_there & (words)((out >> 16 * s & 0xFFFFu) != 0);
        }
    }
    return any(doubts) ? DOUBTFUL : any(some) ? WITH_ZEROS : 0;
}

/* Adds the products of a group with doubtful elements to the accumulators. */
TF_APART static void
add_doubtful_group(const struct tf_mma_plan *plan, const struct operands *x,
                   struct place place, struct mma_variant variant,
                   const struct accumulators *now, const struct accumulators *given,
                   int scale, struct accumulators *next)
{
    struct accumulators sums = *now;
    variant.doubtful = what_is_in_doubt(plan, x, place, variant, now);
    if (!variant.doubtful) {
        memset(next, 0, sizeof *next);
        return;
    }
    tf_fp_flush_results(1);
    add_group(plan, *x, place, variant, &sums);
    tf_fp_flush_results(are_groups_alone(plan));
    if (variant.doubtful == DOUBTFUL) {
        redo_with_integers(plan, x, place, variant, now, given, scale, &sums);
    }
    *next = sums;
}

/* Adds a group to `sums`. Doubtful elements start from `given` * 2^scale, the exact
 * accumulators, since `sums` may have been rounded. */
TF_INLINE void add_group_exactly(const struct tf_mma_plan *plan, struct operands x,
                                 struct place place, struct mma_variant variant,
                                 struct accumulators *sums,
                                 const struct accumulators *given, int scale)
{
    struct accumulators next = *sums;
    const int doubt = add_group(plan, x, place, variant, &next);
    if (__builtin_expect(doubt, 0)) {
        const struct accumulators now = *sums;
        struct accumulators redone;
        add_doubtful_group(plan, &x, place, variant, &now, scale ? given : &now, scale,
                           &redone);
        next = redone;
    }
    *sums = next;
}

/* -- chains ------------------------------------------------------------------------ */

/* Returns x with the model's NaN for each NaN. */
TF_INLINE floats canonical(floats x)
{
    const words nan = (words)(x != x);
    return (floats)(((words)x & ~nan) | (TF_MAGNITUDE_BITS & nan));
}

/* Adds one group to every set of rows. */
TF_INLINE void add_groups(const struct tf_mma_plan *plan, struct operands x,
                          struct place place, struct mma_variant variant,
                          struct accumulators sums[ROW_SETS],
                          const struct accumulators given[ROW_SETS],
                          int scale)
{
    for (int set = 0; set < ROW_SETS; set++) {
        add_group_exactly(plan, x, place, variant, &sums[set], &given[set], scale);
        x.a += ROWS * x.lda;
        x.a_exponents += ROWS * x.lda;
    }
}

/* Returns the number of MMA groups of a stretch of k. */
TF_INLINE size_t groups_of(const struct tf_mma_model *model, size_t depth, int emulated)
{
    const size_t instruction = (size_t)model->instruction_depth;
    return emulated ? 2 : tf_round_up(depth, instruction) / (size_t)model->depth;
}

TF_INLINE struct place group_at(const struct tf_mma_model *model, size_t first,
                                size_t depth, int emulated, size_t i)
{
    if (emulated) { /* see tf_mma_accumulate */
        const size_t rest = depth % 4, more = i == 0 ? tf_min_size(rest, 2) : rest > 2;
        return (struct place){first + 2 * i, depth / 4 * 2 + more, ~(size_t)1};
    }
    const size_t k = i * (size_t)model->depth, rest = k < depth ? depth - k : 0;
    return (struct place){first + k, tf_min_size(rest, (size_t)model->depth), 0};
}

/* Adds the MMA groups of a stretch of k to `sums`. */
TF_INLINE void add_stretch(const struct tf_mma_plan *plan, struct operands x,
                           size_t first, size_t depth, struct mma_variant variant,
                           struct accumulators sums[ROW_SETS],
                           const struct accumulators given[ROW_SETS],
                           int scale)
{
    const size_t count = groups_of(&plan->model, depth, variant.emulated);
    for (size_t i = 0; i < count; i++) {
        const struct place place =
            group_at(&plan->model, first, depth, variant.emulated, i);
        add_groups(plan, x, place, variant, sums, i ? sums : given, i ? 0 : scale);
    }
}

/* Adds all terms of a stretch of k to `sums`. */
TF_INLINE void add_terms(const struct tf_mma_plan *plan, struct operands x,
                         size_t first, size_t depth, struct mma_variant variant,
                         struct accumulators sums[ROW_SETS])
{
    for (size_t t = 0; t < plan->count; t++) {
        const struct tf_split_product *term = &plan->terms[t];
        const struct operands y = {x.a + term->a, x.b + term->b,
                                   x.a_exponents + term->a,
                                   x.b_exponents + term->b / 2, x.lda};
        struct accumulators given[ROW_SETS];
        const struct accumulators *from = sums;
        int scale = 0;
        if (term->scale != 1) {
            if (plan->scales_inside) {
                memcpy(given, sums, sizeof given);
                from = given;
                scale = plan->scales_inside;
            }
            for (size_t i = 0; i < ROW_SETS * ROWS * 2; i++) {
                sums[i / 2 / ROWS].c[i / 2 % ROWS][i % 2] *= term->scale;
            }
        }
        add_stretch(plan, y, first, depth, variant, sums, from, scale);
    }
}

TF_INLINE void chain(const struct tf_mma_plan *plan, struct operands x, size_t depth,
                     float *c, size_t ldc, struct mma_variant variant)
{
    struct accumulators sums[ROW_SETS], total[ROW_SETS];
    const size_t stretch = plan->stretch ? plan->stretch : depth;
    load_sums(c, ldc, total);
    for (size_t k = 0; k < depth; k += stretch) {
        if (plan->stretch) {
            memset(sums, 0, sizeof sums);
        } else {
            memcpy(sums, total, sizeof sums);
        }
        add_terms(plan, x, k, depth - k < stretch ? depth - k : stretch, variant, sums);
        for (size_t i = 0; plan->stretch && i < ROW_SETS * ROWS * 2; i++) {
            floats *place = &sums[i / 2 / ROWS].c[i / 2 % ROWS][i % 2];
            const floats before = total[i / 2 / ROWS].c[i / 2 % ROWS][i % 2];
            const floats sum = canonical(before + *place);
            *place = variant.half ? to_float16(sum) : sum;
        }
        memcpy(total, sums, sizeof total);
    }
    store_sums(total, c, ldc);
}

#define CHAIN(name, ...)                                                       \
    static void name(const struct tf_mma_plan *plan, struct operands x,     \
                     size_t depth, float *c, size_t ldc)                       \
    {                                                                          \
        chain(plan, x, depth, c, ldc, (struct mma_variant){__VA_ARGS__});      \
    }
CHAIN(chain_singles, .fits = 1)
CHAIN(chain_wide_singles, .fits = 0)
CHAIN(chain_cut_singles, .fits = 1, .cut = 1)
CHAIN(chain_halves, .fits = 1, .half = 1)
CHAIN(chain_wide_halves, .fits = 0, .half = 1)
CHAIN(chain_emulated_singles, .emulated = 1, .cut = 1)
CHAIN(chain_emulated_halves, .emulated = 1, .half = 1)

static void chains(const struct tf_mma_plan *plan, const float *a,
                   const uint32_t *a_exponents, size_t lda, const float *b,
                   const uint32_t *b_exponents, size_t depth, size_t rows, float *c,
                   size_t ldc)
{
    const struct tf_mma_model *model = &plan->model;
    TF_ASSERT(rows % TF_MR == 0 && depth > 0 && depth <= TF_MMA_DEPTH);
    TF_ASSERT(lda >= depth && ldc >= COLUMNS);
    TF_ASSERT(model->depth > 0 && model->instruction_depth % model->depth == 0);
    /* A product is less than 4 * 2^fraction units, an accumulator than 2 * 2^fraction. */
    const int fits = (4 * (int64_t)model->depth + 2) << model->fraction <= INT32_MAX;
    void (*const one)(const struct tf_mma_plan *, struct operands, size_t, float *,
                      size_t) =
        model->emulated    ? (model->half ? chain_emulated_halves : chain_emulated_singles)
        : model->half      ? (fits ? chain_halves : chain_wide_halves)
        : model->kept < 23 ? chain_cut_singles
        : fits             ? chain_singles
                           : chain_wide_singles;
    if (are_groups_alone(plan)) {
        tf_fp_flush_results(1);
    }
    for (size_t i = 0; i < rows; i += ROW_SETS * ROWS) {
        for (size_t j = 0; j < COLUMNS; j += SIDE) {
            const struct operands x = {a + i * lda, b + j, a_exponents + i * lda,
                                       b_exponents + j / 2, lda};
            one(plan, x, depth, c + i * ldc + j, ldc);
        }
    }
    if (are_groups_alone(plan)) {
        tf_fp_flush_results(0);
    }
}

/* -- exponents --------------------------------------------------------------------- */

/* Returns the exponent of an operand. Special numbers, and zeros without an exponent, show
 * in the sum of two exponents: neither is near an ordinary sum. The callers bias exponents
 * of A, so that the sums are biased. */
TF_INLINE int32_t exponent_of(float x, struct tf_mma_exponents exponents)
{
    const uint32_t bits = tf_bits_of(x);
    const int32_t field = (int32_t)(bits >> 23 & 0xFF);
    const int32_t e = field - BIAS > exponents.least ? field - BIAS : exponents.least;
    return bits << 1 == 0 ? exponents.of_zero : field == 255 ? TF_MMA_SPECIAL : e;
}

static void exponents_of_rows(const float *in, size_t n,
                              struct tf_mma_exponents exponents, uint32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t e = (uint32_t)(exponent_of(in[i], exponents) + BIAS) & 0xFFFF;
        out[i] = e << 16 | e;
    }
}

static void exponents_of_columns(const float *in, size_t n,
                                 struct tf_mma_exponents exponents, uint32_t *out)
{
    TF_ASSERT(n % SIDE == 0);
    for (size_t i = 0; i < n; i += SIDE) {
        for (size_t lane = 0; lane < LANES; lane++) {
            const int32_t left = exponent_of(in[i + lane], exponents);
            const int32_t right = exponent_of(in[i + LANES + lane], exponents);
            out[i / 2 + lane] = (uint32_t)right << 16 | ((uint32_t)left & 0xFFFF);
        }
    }
}

const struct tf_mma_kernels TF_PLAIN_NAME(tf_mma_kernels) = {
    .columns = COLUMNS,
    .chains = chains,
    .exponents_of_rows = exponents_of_rows,
    .exponents_of_columns = exponents_of_columns,
};
