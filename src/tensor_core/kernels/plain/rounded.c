/* Chains of units whose sums are not aligned: compute as tensor_core/rounded_model.h does,
 * but many elements of C at a time.
 *
 * Sums that are rounded one by one are float32's own. Units differ in their treatment of
 * subnormal numbers, and in how exact the products in a sum are. For most operands neither
 * matters. Let e_a and e_b be their smallest exponents, and let them have at most 11
 * significant bits. All products and sums are then multiples of 2^(e_a + e_b - 20). If that
 * is at least 2^-126, and accumulators are multiples of 2^-126, no result is subnormal and
 * products are exact. A second loop flushes each result, and leaves results of 2^-126 to
 * the integers, since they may have been smaller before rounding.
 *
 * A sum of two numbers is rounded to odd by two roundings, downward and upward. One of the
 * results is odd, or both are the exact sum. If instructions cannot choose their rounding,
 * all of float32 rounds downward meanwhile, and minus a sum is rounded instead of rounding
 * upward. If results may be subnormal or overflow, float32 rounds to nearest, and errors of
 * sums decide.
 *
 * A sum of three numbers that is rounded once takes three sums, of which the last is a sum
 * of errors and rounded to odd. Other sums of more than two numbers use float64: see
 * rounded_doubles.c. two_stages.c has sums in two stages. The integers compute all other
 * models.
 */
#include "formats/kernels/decls.h"
#include "runtime/asserts.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "tensor_core/kernels/rounded_ranges.h"
#include "tensor_core/kernels/rounded_sums.h"
#include "tensor_core/kernels/rounded_tile.h"
#include "tensor_core/kernels/two_stages.h"

/* Binary logarithms of the largest number of products in a chain. */
enum { DEPTH_BITS = 8, DEPTH_BITS_IN_DOUBLES = 6 };
_Static_assert(TF_KC == 1 << DEPTH_BITS, "see there");
_Static_assert(TF_MMA_DEPTH == 1 << DEPTH_BITS_IN_DOUBLES, "see there");

/* Properties that are constants in a loop. */
struct variant {
    int arithmetic, depth, lanes, odd_first;
    int exact;   /* products are exact, and no number is subnormal */
    int flushes; /* flushes each result */
    int to_odd;  /* sums to odd, of minus c unless results are flushed */
};

/* -- a group ----------------------------------------------------------------------- */

TF_INLINE floats result(struct variant variant, floats x)
{
    return variant.flushes ? flush(x) : x;
}

/* Returns the accumulator plus the products of a group. Sets `doubt` if the exact sum of a
 * fused group may be below 2^-126. Other results need no doubt: sums of two numbers are
 * exact there, and so are products of so few bits. */
TF_INLINE floats add_group(struct variant variant, const float *a, const float *b,
                           floats c, words *doubt)
{
    floats sums[TF_DEEPEST_ROUNDED];
    if (variant.to_odd && variant.flushes) {
        const floats first = flush(floats_of(a[0]) * load_floats(b));
        const floats second = flush(floats_of(a[1]) * load_floats(b + PANEL));
        return flush(any_odd_sum(c, flush(any_odd_sum(first, second))));
    }
    if (variant.to_odd) {
        const floats first = floats_of(a[0]) * load_floats(b);
        const floats sum = odd_product_sum(floats_of(a[1]), load_floats(b + PANEL), first);
        return minus_odd_sum(sum, c);
    }
    if (variant.arithmetic == TF_FUSED && variant.depth == 1) {
        const floats x = floats_of(*a), y = load_floats(b);
        const floats sum = variant.exact ? add_exact_product(x, y, c) : fused(x, y, c);
        if (variant.flushes) {
            *doubt |= (words)(magnitudes_of(sum) == LEAST_NORMAL);
        }
        return result(variant, sum);
    }
    if (variant.arithmetic == TF_FUSED && variant.depth == 2) {
        const floats x[2] = {floats_of(a[0]), floats_of(a[1])};
        const floats y[2] = {load_floats(b), load_floats(b + PANEL)};
        return fused_pair(x, y, c);
    }
    UNROLLED for (int k = 0; k < variant.depth; k++) {
        const floats x = floats_of(a[k]), y = load_floats(b + k * PANEL);
        if (variant.exact && k % 2) { /* add to the neighbor in one step */
            sums[k / 2] = add_exact_product(x, y, sums[k / 2]);
        } else {
            sums[variant.exact ? k / 2 : k] = result(variant, x * y);
        }
    }
    UNROLLED for (int n = variant.exact ? variant.depth / 2 : variant.depth; n > 1;
                  n /= 2) {
        UNROLLED for (int k = 0; k < n / 2; k++) {
            sums[k] = result(variant, sums[2 * k] + sums[2 * k + 1]);
        }
    }
    return result(variant, c + sums[0]);
}

/* -- chains ------------------------------------------------------------------------ */

/* Adds the products of a group to a row of C. */
TF_INLINE void add_row(struct variant variant, const float *a, const float *b,
                       floats c[SIDES], floats doubt[SIDES])
{
    UNROLLED for (int s = 0; s < SIDES; s++) {
        words here = words_of(0);
        c[s] = add_group(variant, a, b + s * LANES, c[s], &here);
        if (variant.flushes && variant.arithmetic == TF_FUSED) {
            doubt[s] = (floats)((words)doubt[s] | here);
        }
    }
}

/* Adds the groups of k = first, first + by and so on to `count` rows from `row` on. */
TF_INLINE void add_groups_to(struct variant variant, struct operands x, size_t row,
                             size_t count, size_t first, size_t by, size_t depth,
                             struct tile *sums, struct tile *doubt)
{
    struct tile now;
    const float *rows[ROWS];
    UNROLLED for (size_t r = 0; r < count; r++) {
        memcpy(now.c[r], sums->c[row + r], sizeof now.c[r]);
        rows[r] = x.a + (row + r) * x.lda;
        /* Keep row pointers in registers: to compute them for each k takes more time. */
        __asm__("" : "+r"(rows[r]));
    }
    for (size_t i = first; i < depth; i += by) {
        const size_t k = variant.odd_first ? i ^ 1 : i;
        const float *b = x.b + k * PANEL;
        if (variant.flushes) { /* rare, and too long for unrolled rows */
            for (size_t r = 0; r < count; r++) {
                add_row(variant, rows[r] + k, b, now.c[r], doubt->c[row + r]);
            }
            continue;
        }
        UNROLLED for (size_t r = 0; r < count; r++) {
            add_row(variant, rows[r] + k, b, now.c[r], doubt->c[row + r]);
        }
    }
    UNROLLED for (size_t r = 0; r < count; r++) {
        memcpy(sums->c[row + r], now.c[r], sizeof now.c[r]);
    }
}

/* Adds the groups to all rows, as many at once as registers hold. */
TF_INLINE void add_groups(struct variant variant, struct operands x, size_t first,
                          size_t by, size_t depth, struct tile *sums, struct tile *doubt)
{
    const size_t count = variant.to_odd ? ROWS / 2 : ROWS;
    for (size_t row = 0; row < ROWS; row += count) {
        add_groups_to(variant, x, row, count, first, by, depth, sums, doubt);
    }
}

/* Computes two sums side by side, adds them, and adds the result to the accumulator. */
TF_INLINE void add_lanes(struct variant variant, struct operands x, size_t depth,
                         struct tile *sums, struct tile *doubt)
{
    struct tile lanes[2] = {0};
    for (size_t lane = 0; lane < 2; lane++) {
        add_groups(variant, x, lane, 2, depth, &lanes[lane], doubt);
    }
    UNROLLED for (int r = 0; r < ROWS; r++) {
        UNROLLED for (int s = 0; s < SIDES; s++) {
            const floats sum = result(variant, lanes[0].c[r][s] + lanes[1].c[r][s]);
            sums->c[r][s] = result(variant, sums->c[r][s] + sum);
        }
    }
}

/* Computes the elements in doubt by integers. */
__attribute__((noinline)) static void
redo_with_integers(const struct tf_rounded_model *model, const struct operands *x,
                   size_t depth, const struct tile *doubt, const float *c, size_t ldc,
                   struct tile *sums)
{
    words some = words_of(0);
    for (size_t i = 0; i < ROWS * SIDES; i++) {
        some |= (words)doubt->c[i / SIDES][i % SIDES];
    }
    for (size_t r = 0; any(some) && r < ROWS; r++) {
        for (size_t j = 0; j < WIDTH; j++) {
            const size_t s = j / LANES, lane = j % LANES;
            if (((words)doubt->c[r][s])[lane]) {
                sums->c[r][s][lane] = tf_rounded_element(
                    model, x->a + r * x->lda, x->b + j, PANEL, depth, c[r * ldc + j]);
            }
        }
    }
}

/* Returns the zero that is added to accumulators when they are read: -0 + 0 is 0, and x +
 * (-0) is x. Without subnormal numbers, a sum is -0 only if it begins with -0. */
TF_INLINE floats zero_of(const struct tf_rounded_model *model)
{
    return floats_of(model->flush_operands == TF_FLUSH_TO_PLUS_ZERO ? 0.0f : -0.0f);
}

/* Loads accumulators as the unit reads them, or minus them. */
__attribute__((noinline)) static void begin(const struct tf_rounded_model *model,
                                            int flushes, int minus, const float *c,
                                            size_t ldc, struct tile *sums)
{
    for (size_t i = 0; i < ROWS * SIDES; i++) {
        const floats given = load_floats(c + i / SIDES * ldc + i % SIDES * LANES);
        const floats kept = flushes ? flush(given) : given;
        /* While numbers are rounded downward, +0 + (-0) would be -0. */
        sums->c[i / SIDES][i % SIDES] = minus ? negative(given) : kept + zero_of(model);
    }
}

__attribute__((noinline)) static void store(const struct tile *sums, int minus, float *c,
                                            size_t ldc)
{
    for (size_t i = 0; i < ROWS * SIDES; i++) {
        const floats sum = sums->c[i / SIDES][i % SIDES];
        const floats stored = canonical(minus ? negative(sum) : sum);
        memcpy(c + i / SIDES * ldc + i % SIDES * LANES, &stored, sizeof stored);
    }
}

/* Computes a tile of C over whole instructions. */
TF_INLINE void chain(struct variant variant, const struct tf_rounded_model *model,
                     struct operands x, size_t depth, float *c, size_t ldc)
{
    const int flushes_c = variant.flushes && model->flush_operands != TF_KEEP_SUBNORMAL;
    struct tile sums, doubt = {0};
    const int minus = variant.to_odd && !variant.flushes;
    begin(model, flushes_c, minus, c, ldc, &sums);
    const size_t step = variant.flushes || variant.lanes
                            ? (size_t)model->instruction_depth
                            : depth;
    for (size_t k = 0; k < depth; k += step) {
        struct operands here = x;
        here.a += k;
        here.b += k * PANEL;
        if (variant.flushes && k) { /* the next instruction reads the sums */
            for (size_t i = 0; i < ROWS * SIDES; i++) {
                sums.c[i / SIDES][i % SIDES] += zero_of(model);
            }
        }
        if (variant.lanes) {
            add_lanes(variant, here, step, &sums, &doubt);
        } else {
            add_groups(variant, here, 0, (size_t)variant.depth, step, &sums, &doubt);
        }
    }
    const int pairs = variant.arithmetic == TF_FUSED && variant.depth == 2;
    for (size_t i = 0; pairs && i < ROWS * SIDES; i++) {
        /* Integers compute sums that are not finite, since the error of Inf is NaN. */
        const floats sum = sums.c[i / SIDES][i % SIDES];
        doubt.c[i / SIDES][i % SIDES] = (floats)(sum - sum != 0);
    }
    if (pairs || (variant.flushes && variant.arithmetic == TF_FUSED)) {
        redo_with_integers(model, &x, depth, &doubt, c, ldc, &sums);
    }
    store(&sums, minus, c, ldc);
}

#define CHAIN(name, ...)                                                             \
    static void name(const struct tf_rounded_model *model, const struct operands *x, \
                     size_t depth, float *c, size_t ldc)                             \
    {                                                                                \
        chain((struct variant){__VA_ARGS__}, model, *x, depth, c, ldc);              \
    }
CHAIN(fused_exact, .arithmetic = TF_FUSED, .depth = 1, .exact = 1)
CHAIN(fused_any, .arithmetic = TF_FUSED, .depth = 1)
CHAIN(fused_pairs, .arithmetic = TF_FUSED, .depth = 2, .exact = 1)
CHAIN(odd_exact, .arithmetic = TF_FUSED, .depth = 1, .odd_first = 1, .exact = 1)
CHAIN(odd_flushed, .arithmetic = TF_FUSED, .depth = 1, .odd_first = 1, .flushes = 1)
CHAIN(lanes_exact, .arithmetic = TF_FUSED, .depth = 1, .lanes = 2, .exact = 1)
CHAIN(lanes_flushed, .arithmetic = TF_FUSED, .depth = 1, .lanes = 2, .flushes = 1)
CHAIN(odd_steps, .arithmetic = TF_STEPWISE, .depth = 2, .exact = 1, .to_odd = 1)
CHAIN(odd_steps_flushed, .arithmetic = TF_STEPWISE, .depth = 2, .flushes = 1, .to_odd = 1)
CHAIN(steps_2_exact, .arithmetic = TF_STEPWISE, .depth = 2, .exact = 1)
CHAIN(steps_2_flushed, .arithmetic = TF_STEPWISE, .depth = 2, .flushes = 1)
CHAIN(steps_4_exact, .arithmetic = TF_STEPWISE, .depth = 4, .exact = 1)
CHAIN(steps_4_flushed, .arithmetic = TF_STEPWISE, .depth = 4, .flushes = 1)

/* -- the loops of a model ----------------------------------------------------------- */

static void all_by_integers(const struct tf_rounded_model *model,
                            const struct operands *x, size_t depth, float *c, size_t ldc)
{
    struct tile sums, doubt;
    memset(&doubt, 0xFF, sizeof doubt);
    redo_with_integers(model, x, depth, &doubt, c, ldc, &sums);
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(c + r * ldc, sums.c[r], sizeof sums.c[r]);
    }
}

/* The loops of a model. */
struct loops {
    chain_fn *exact; /* if sums are exact except for the unit's rounding, and no result is
                      * subnormal; or NULL */
    chain_fn *tame;  /* if no result is subnormal or overflows; or NULL */
    chain_fn *any;
    int downward; /* whether float32 and float64 round downward in `tame` */
    int in_doubles;
};

static struct loops loops_of(const struct tf_rounded_model *m)
{
    const struct loops none = {all_by_integers, NULL, all_by_integers, 0, 0};
    const struct loops fused_2 = {TF_PLAIN_NAME(tf_fused_2_exact),
                                  SMALL ? TF_PLAIN_NAME(tf_fused_any) : fused_pairs,
                                  TF_PLAIN_NAME(tf_fused_any), 0, 1};
    const struct loops fused_4 = {TF_PLAIN_NAME(tf_fused_4_exact),
                                  TF_PLAIN_NAME(tf_fused_4_enclosed),
                                  TF_PLAIN_NAME(tf_fused_any), 1, 1};
    if (m->to_odd) {
        const int fits = m->arithmetic == TF_STEPWISE && m->depth == 2 &&
                         m->flush_results && m->flush_operands != TF_FLUSH_TO_PLUS_ZERO;
        const int downward = LANES < 16; /* else instructions choose their rounding */
        return fits ? (struct loops){NULL, odd_steps, odd_steps_flushed, downward, 0} : none;
    }
    if (is_in_doubles(m)) {
        return m->depth == 2 ? fused_2 : fused_4;
    }
    if (m->arithmetic == TF_FUSED && m->depth == 1 && !m->flush_results &&
        !m->flush_operands && !m->lanes && !m->odd_first) {
        return (struct loops){fused_exact, NULL, fused_any, 0, 0};
    }
    if (m->arithmetic == TF_FUSED && m->depth == 1 && m->flush_results &&
        m->instruction_depth % 2 == 0) {
        if (m->odd_first && !m->lanes) {
            return (struct loops){odd_exact, NULL, odd_flushed, 0, 0};
        }
        if (!m->odd_first && m->lanes == 2 && m->start == 0) {
            return (struct loops){lanes_exact, NULL, lanes_flushed, 0, 0};
        }
    }
    /* The fused sum of two products is a step of its own, since -0 adds nothing to it. */
    if (m->arithmetic == TF_FUSED && m->depth == 2 && m->instruction_depth == 2 &&
        m->lanes == 1 && m->start == TF_SIGN_BIT && !m->flush_results &&
        !m->flush_operands) {
        return (struct loops){steps_2_exact, NULL, TF_PLAIN_NAME(tf_pair_steps_any), 0, 0};
    }
    if (m->arithmetic == TF_STEPWISE && m->flush_results) {
        if (m->depth == 2) {
            return (struct loops){steps_2_exact, NULL, steps_2_flushed, 0, 0};
        }
        if (m->depth == 4) {
            return (struct loops){steps_4_exact, NULL, steps_4_flushed, 0, 0};
        }
    }
    return none;
}

/* -- choice of a loop by the ranges of a tile ----------------------------------------- */

/* Returns the loop for a tile. `products` is the span of its products so far, and `sums`
 * the span of its accumulators at the start. */
static chain_fn *loop_for(struct loops loops, struct span products, struct span sums)
{
    /* The accumulator and all sums of a chain stay below 2^end, even if rounded up. */
    const int32_t more =
        products.end + (loops.in_doubles ? DEPTH_BITS_IN_DOUBLES : DEPTH_BITS);
    const int32_t end = (sums.end > more ? sums.end : more) + 1;
    const int32_t unit = widest(products, sums).unit;
    if (!are_exact(products) || unit < TF_LEAST_SINGLE || end > BIAS) {
        return loops.any;
    }
    return loops.exact && end - unit <= 53 ? loops.exact : loops.tame;
}

/* -- all rows ---------------------------------------------------------------------- */

/* Lines of whole instructions, filled up with zeros, as float32, float64 and pairs. */
struct prepared {
    float a[ROWS * TF_MMA_DEPTH], b[TF_MMA_DEPTH * PANEL];
    double wide_a[ROWS * TF_MMA_DEPTH], wide_b[TF_MMA_DEPTH * PANEL];
    float pairs_a[ROWS * TF_MMA_DEPTH / 2], pairs_b[TF_MMA_DEPTH / 2 * PANEL];
};

/* Writes n words of two bfloat16 numbers. `lower` and `upper` have a step of `step`. */
static void pair(const float *lower, const float *upper, size_t step, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t low = tf_bits_of(lower[i * step]), high = tf_bits_of(upper[i * step]);
        out[i] = tf_float_of(low >> 16 | (high & TF_UPPER_HALF));
    }
}

/* Computes all tiles of a panel by the instruction for pairs of bfloat16 numbers, whose
 * products must be exact. The instruction adds the number in the upper half first. Returns
 * 0 and computes nothing if a sum may be subnormal. */
static int chain_pairs(const struct tf_mma_plan *plan, struct operands x, size_t depth,
                       struct prepared *prepared, float *c, size_t ldc)
{
    const struct tf_split_product term = {0, 0, 1};
    for (size_t j = 0; j < PANEL; j += WIDTH) {
        if (!*plan->are_multiples && !are_multiples(c + j, ldc)) {
            return 0;
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        const float *row = x.a + r * x.lda;
        pair(row, row + 1, 2, depth / 2, prepared->pairs_a + r * TF_MMA_DEPTH / 2);
    }
    plan->pairs.multiply(prepared->pairs_a, TF_MMA_DEPTH / 2, prepared->pairs_b, depth / 2,
                         &term, 1, ROWS, c, ldc, TF_SUMS_CONTINUE);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t j = 0; j < PANEL; j += LANES) {
            const floats sum = canonical(load_floats(c + r * ldc + j));
            memcpy(c + r * ldc + j, &sum, sizeof sum);
        }
    }
    return 1;
}

/* Returns the operands from k and from a column on. */
static struct operands operands_from(struct operands x, size_t k, size_t column)
{
    x.a += k;
    x.b += k * PANEL + column;
    x.a_notes += k / NOTED;
    x.b_notes += k / NOTED;
    if (x.wide_a) {
        x.wide_a += k;
        x.wide_b += k * PANEL + column;
    }
    return x;
}

/* Continues a tile with one of the loops. Loops that may use integers take at most
 * TF_MMA_DEPTH k at a time. */
__attribute__((noinline)) static void
go_on(const struct tf_mma_plan *plan, struct loops loops, chain_fn *loop, struct operands x,
      size_t depth, float *c, size_t ldc)
{
    const size_t most = loop == loops.any && loop != fused_any ? TF_MMA_DEPTH : depth;
    /* Without AVX-512, sums to odd need their errors, which must not be flushed. */
    const int flushes = loop == loops.any && plan->rounded.flush_results &&
                        (!plan->rounded.to_odd || LANES == 16);
    if (flushes) {
        tf_fp_flush_results(1);
    }
    for (size_t k = 0; k < depth; k += most) {
        const struct operands here = operands_from(x, k, 0);
        loop(&plan->rounded, &here, tf_min_size(depth - k, most), c, ldc);
    }
    if (flushes) {
        tf_fp_flush_results(0);
    }
}

/* Computes a tile of C with loops that need to know whether accumulators are multiples of
 * 2^-126. Exact products keep them multiples. */
static void chain_multiples(const struct tf_mma_plan *plan, struct loops loops,
                            struct operands x, struct span products, size_t depth, float *c,
                            size_t ldc)
{
    const int exact = are_exact(products);
    *plan->are_multiples &= exact;
    const int fits = exact && (!plan->rounded.flush_results || *plan->are_multiples ||
                               are_multiples(c, ldc));
    go_on(plan, loops, fits ? loops.exact : loops.any, x, depth, c, ldc);
}

/* Computes a tile of C with loops that need the ranges of its numbers. Loops in float64
 * take as many k at a time as their conditions allow. Takes and returns whether float32 and
 * float64 round downward. */
__attribute__((noinline)) static int
chain_ranges(const struct tf_mma_plan *plan, struct loops loops, struct operands x,
             struct span products, size_t depth, float *c, size_t ldc, int downward)
{
    const struct span sums = span_of_sums(c, ldc);
    const size_t step = loops.in_doubles ? NOTED : depth;
    struct span so_far = {INT32_MAX, INT32_MIN};
    chain_fn *loop = NULL;
    size_t begun = 0;
    for (size_t k = 0; begun < depth; k += step) {
        chain_fn *next = NULL;
        if (k < depth) {
            const struct span here =
                loops.in_doubles
                    ? span_of_products(x.a_notes[k / NOTED], x.b_notes[k / NOTED])
                    : products;
            so_far = widest(so_far, here);
            next = loop_for(loops, so_far, sums);
        }
        if (loop && next != loop) {
            if (downward != (loops.downward && loop == loops.tame)) {
                downward = !downward;
                tf_fp_round_downward(downward);
            }
            go_on(plan, loops, loop, operands_from(x, begun, 0),
                  tf_min_size(k, depth) - begun, c, ldc);
            begun = k;
        }
        loop = next;
    }
    return downward;
}

/* Returns whether the instruction for pairs computes as the unit does. */
static int has_pairs(const struct tf_mma_plan *plan, struct loops loops)
{
    return LANES == 16 && plan->pairs.columns == PANEL && loops.exact == odd_exact;
}

/* Multiplies the rows of A by a panel. The depth is at most TF_MMA_DEPTH, or a multiple of
 * TF_MMA_DEPTH if operands need no preparation. */
static void chain_rows(const struct tf_mma_plan *plan, struct loops loops,
                       struct operands all, size_t depth, size_t rows, float *c, size_t ldc)
{
    const struct tf_rounded_model *model = &plan->rounded;
    struct prepared prepared;
    const size_t whole = tf_round_up(depth, (size_t)model->instruction_depth);
    if (whole != depth) {
        memset(prepared.a, 0, sizeof prepared.a);
        memset(prepared.b, 0, sizeof prepared.b);
        all.b = memcpy(prepared.b, all.b, depth * PANEL * sizeof *all.b);
    }
    if (loops.in_doubles) {
        TF_NAME(tf_widen)(all.b, prepared.wide_b, whole * PANEL);
        all.wide_a = prepared.wide_a;
        all.wide_b = prepared.wide_b;
    }
    const int pairs = has_pairs(plan, loops);
    for (size_t k = 0; pairs && k < whole; k += 2) {
        const float *row = all.b + k * PANEL;
        pair(row, row + PANEL, 1, PANEL, prepared.pairs_b + k / 2 * PANEL);
    }
    /* k whose notes are read: only for sums in float64 the first note is not of all k. */
    const size_t read = loops.in_doubles ? depth : 1;
    const uint32_t b_note = note_of_all(all.b_notes, read);
    int downward = 0;
    for (size_t i = 0; i < rows; i += ROWS) {
        const struct span products =
            span_of_products(note_of_all(all.a_notes + i * all.lda, read), b_note);
        struct operands x = all;
        x.a += i * all.lda;
        x.a_notes += i * all.lda;
        for (size_t r = 0; r < ROWS && i + ROWS < rows; r++) { /* the next rows of C */
            for (size_t j = 0; j < PANEL; j += 16) {
                __builtin_prefetch(c + (i + ROWS + r) * ldc + j, 1);
            }
        }
        for (size_t r = 0; whole != depth && r < ROWS; r++) {
            memcpy(prepared.a + r * TF_MMA_DEPTH, x.a + r * x.lda, depth * sizeof *x.a);
        }
        if (whole != depth) {
            x.a = prepared.a;
            x.lda = TF_MMA_DEPTH;
        }
        for (size_t r = 0; loops.in_doubles && r < ROWS; r++) {
            TF_NAME(tf_widen)(x.a + r * x.lda, prepared.wide_a + r * TF_MMA_DEPTH, whole);
        }
        if (pairs && are_exact(products) &&
            chain_pairs(plan, x, whole, &prepared, c + i * ldc, ldc)) {
            continue;
        }
        for (size_t j = 0; j < PANEL; j += WIDTH) {
            const struct operands here = operands_from(x, 0, j);
            float *tile = c + i * ldc + j;
            if (loops.tame) {
                downward = chain_ranges(plan, loops, here, products, whole, tile, ldc,
                                        downward);
            } else {
                chain_multiples(plan, loops, here, products, whole, tile, ldc);
            }
        }
    }
    if (downward) { /* the caller rounds to nearest */
        tf_fp_round_downward(0);
    }
}

static void chains(const struct tf_mma_plan *plan, const float *a,
                   const uint32_t *a_notes, size_t lda, const float *b,
                   const uint32_t *b_notes, size_t depth, size_t rows, float *c,
                   size_t ldc)
{
    TF_ASSERT(rows % ROWS == 0 && depth > 0);
    if (tf_two_stages_fit(&plan->rounded)) {
        TF_PLAIN_NAME(tf_two_stage_chains)
        (plan, a, a_notes, lda, b, b_notes, depth, rows, c, ldc);
        return;
    }
    const struct loops loops = loops_of(&plan->rounded);
    const int prepares = loops.in_doubles || has_pairs(plan, loops);
    for (size_t k = 0, here; k < depth; k += here) {
        const size_t left = depth - k, most = prepares ? TF_MMA_DEPTH : left;
        here = left < TF_MMA_DEPTH ? left : most - most % TF_MMA_DEPTH;
        const struct operands x = {a + k, b + k * PANEL, lda, a_notes + k / NOTED,
                                   b_notes + k / NOTED, NULL, NULL};
        chain_rows(plan, loops, x, here, rows, c, ldc);
    }
}

const struct tf_rounded_kernels TF_PLAIN_NAME(tf_rounded_kernels) = {
    .chains = chains,
    .read_rows = read_rows,
    .read_columns = read_columns,
};
