/* Chains of fused groups of several products, rounded to nearest, in float64.
 *
 * Products are exact in float64. If all numbers are multiples of a unit, and no sum reaches
 * 2^53 units, sums are exact, too. Only the rounding to float32's 24 bits remains.
 *
 * Otherwise all sums are rounded both downward and upward. The accumulator is added last:
 * products are closer to one another than to it, and so are the two sums. Everything
 * between the two sums rounds to the same 24 bits if both sums do. They do not if the
 * middle of two results is between them, or is one of them and not the other. In this case
 * the errors of sums are added (2Sum: Knuth, and exact in any order). They decide whether
 * the last bit of the float64 sum has to be odd, so that a rounding to fewer bits treats it
 * as the exact sum.
 */
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "runtime/inline.h"
#include "runtime/kernels/doubles.h"
#include "tensor_core/kernels/rounded_tile.h"

enum {
    VECTORS = WIDTH / PLACES,
    AT_ONCE = SMALL ? 1 : ROWS / 2 /* rows: what registers hold */
};

/* Defines a function of a product, which must be exact, and a number. */
#if defined(__AVX2__) && defined(__FMA__)
#define OF_PRODUCT(name, intrinsic, expression)                                \
    TF_INLINE doubles name(doubles x, doubles y, doubles z)                    \
    {                                                                          \
        return (doubles)WIDE(intrinsic)((wide_doubles)x, (wide_doubles)y,      \
                                        (wide_doubles)z);                      \
    }
#else
#define OF_PRODUCT(name, intrinsic, expression)                                \
    TF_INLINE doubles name(doubles x, doubles y, doubles z) { return expression; }
#endif
OF_PRODUCT(add_product, fmadd_pd, x * y + z)
OF_PRODUCT(minus_product_less, fnmsub_pd, -(x * y) - z)
OF_PRODUCT(subtract_product, fnmadd_pd, z - x * y)

/* -- exact sums -------------------------------------------------------------------- */

/* Rounds to nearest with 24 bits. Let `power` be the power of two of x's exponent: the last
 * bit of x + power * 1.5 * 2^29 is that of float32. Inf becomes NaN. */
TF_INLINE doubles round_to_single(doubles x)
{
    const doubles power = (doubles)((longs)x & longs_of(INT64_C(0x7FF) << 52));
    const doubles much = all_lanes(0x1.8p29);
    return subtract_product(much, power, add_product(much, power, x));
}

/* -- sums between two numbers ------------------------------------------------------ */

#if defined(__AVX512BW__)

/* Bits that are set if a result is not known. */
struct unknown {
    longs bits;
};

/* Returns minus a sum, rounded to 24 bits as by round_to_single. `below` is the sum and
 * `minus_above` is minus the sum, both rounded downward. If they have two exponents, their
 * common bits are a smaller exponent than either. Both are then rounded to the same number
 * only if that is a power of two between them, which a rounding by the smaller exponent
 * gives, too. Zero is -0, however it is rounded. */
TF_INLINE doubles round_enclosed(doubles below, doubles minus_above,
                                 struct unknown *unknown)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    const longs exponent = longs_of(INT64_C(0x7FF) << 52);
    const __m512d power = (__m512d)((longs)below & (longs)minus_above & exponent);
    const __m512d much = (__m512d)all_lanes(0x1.8p29);
    const __m512d first = _mm512_fmadd_round_pd(much, power, (__m512d)below, NEAREST);
    const __m512d second =
        _mm512_fmsub_round_pd(much, power, (__m512d)minus_above, NEAREST);
    unknown->bits |= (longs)first ^ (longs)second;
    return (doubles)_mm512_fmsub_pd(much, power, second);
}

TF_INLINE words are_unknown(struct unknown unknown) { return (words)unknown.bits; }

#else

/* If one number is NaN, these return y. */
CHOICE(lesser_doubles, doubles, <, wide_doubles, min_pd)
CHOICE(greater_doubles, doubles, >, wide_doubles, max_pd)

/* Bits of float64 that float32 does not have. */
static const int64_t BELOW_SINGLE = (1 << 29) - 1;

/* Results that are not known. `bits` has the bits of float32 that are unknown. `sign` is
 * negative if zero is between the two numbers: it is the smallest so far of the larger
 * numbers of `below` and `minus_above`. */
struct unknown {
    longs bits;
    doubles sign;
};

/* Returns minus a sum, rounded to 24 bits. `below` is the sum and `minus_above` is minus
 * the sum, both rounded downward. */
TF_INLINE doubles round_enclosed(doubles below, doubles minus_above,
                                 struct unknown *unknown)
{
    /* In this order of arguments, a NaN of another row does not replace `sign`. */
    unknown->sign = lesser_doubles(greater_doubles(below, minus_above), unknown->sign);
    /* Round to nearest, ties to even. Zero is -0, however it is rounded. If one of the two
     * is the exact sum, no earlier sum lost a bit, and the other one is the same. Therefore
     * both are ties, or none is. */
    const longs last = (longs)((unsigned_longs)minus_above >> 29) & longs_of(1);
    const longs up = BELOW_SINGLE / 2 + last;
    const longs rounded = (longs)minus_above + up;
    unknown->bits |= ((longs)below + up) ^ rounded;
    return (doubles)(rounded & ~BELOW_SINGLE);
}

/* Returns bits that are set if a result is not known. */
TF_INLINE words are_unknown(struct unknown unknown)
{
    const longs bits = unknown.bits & (INT64_MAX ^ BELOW_SINGLE);
    return (words)(bits | (longs)(unknown.sign < 0));
}

#endif

/* -- sums with their errors -------------------------------------------------------- */

/* Returns x + y, and writes what the rounded sum lacks to *error. */
TF_INLINE doubles two_sum(doubles x, doubles y, doubles *error)
{
    const doubles sum = x + y, second = sum - x;
    *error = (x - (sum - second)) + (y - second);
    return sum;
}

/* Returns the sum, made odd if it is not exact: its neighbor in the direction of the error.
 * Sums that are not finite stay, since their error is NaN. */
TF_INLINE doubles make_odd(doubles sum, doubles error)
{
    const longs even = ((longs)sum & 1) - 1;
    const longs inexact = (longs)(magnitude_of_doubles(error) > 0);
    const longs step = ((longs)sum ^ (longs)error) >> 63 | 1;
    return (doubles)((longs)sum + (step & even & inexact));
}

/* Returns accumulators plus the products of a group. Sets `doubt` if the error is not known
 * well enough. */
TF_INLINE doubles add_with_errors(int depth, const double *a, const double *b, doubles c,
                                  longs *doubt)
{
    doubles plain = c, sum = c, error = all_lanes(0), most = all_lanes(0);
    doubles products[TF_DEEPEST_ROUNDED];
    for (int i = 0; i < depth; i++) {
        products[i] = all_lanes(a[i]) * load_doubles(b + i * PANEL);
        plain += products[i];
        most += magnitude_of_doubles(products[i]);
    }
    if (!any((words)(longs)(most != 0))) {
        return plain;
    }
    most = all_lanes(0);
    for (int i = 0; i < depth; i++) {
        doubles next;
        sum = two_sum(sum, products[i], &next);
        error += next;
        most += magnitude_of_doubles(next);
    }
    /* Add the error, which may itself have an error of 2^-51 of `most`. The result is again
     * two numbers. Only the sign of the smaller one counts. */
    const doubles total = sum + error, rest = error - (total - sum);
    const longs special = (longs)(sum - sum != 0); /* has no error */
    const longs inexact = (longs)(most != 0) & ~special;
    const longs sure = (longs)(magnitude_of_doubles(rest) > most * 0x1p-48) &
                       (longs)(magnitude_of_doubles(sum) > most);
    *doubt |= inexact & ~sure;
    const longs odd = (longs)make_odd(total, rest);
    return doubles_of(singles_of((doubles)((odd & inexact) | ((longs)sum & ~inexact))));
}

/* Adds `count` k of a row of a tile. The vectors are computed side by side: while one waits
 * for its sum, others continue. Integers compute elements whose errors do not decide. */
TF_APART static void
go_on_with_errors(const struct tf_rounded_model *model, const struct operands *x,
                  size_t row, size_t first, size_t count, const doubles given[VECTORS],
                  doubles now[VECTORS])
{
    const double *a = x->wide_a + row * TF_MMA_DEPTH + first;
    const double *b = x->wide_b + first * PANEL;
    longs doubt[VECTORS] = {{0}};
    memcpy(now, given, VECTORS * sizeof *now);
    for (size_t k = 0; k < count; k += (size_t)model->depth) {
        UNROLLED for (size_t v = 0; v < VECTORS; v++) {
            now[v] = add_with_errors(model->depth, a + k, b + k * PANEL + v * PLACES, now[v],
                                     &doubt[v]);
        }
    }
    for (size_t j = 0; j < WIDTH; j++) {
        const size_t v = j / PLACES, i = j % PLACES;
        if (doubt[v][i]) {
            now[v][i] = tf_rounded_element(model, x->a + row * x->lda + first,
                                           x->b + first * PANEL + j, PANEL, count,
                                           (float)given[v][i]);
        }
    }
}

/* -- tiles ------------------------------------------------------------------------- */

/* How sums are computed. */
enum how {
    EXACT,    /* sums are exact in float64 */
    ENCLOSED, /* no result is subnormal or overflows, and float64 rounds downward */
    ANY
};

/* Accumulators of AT_ONCE rows, or minus them if sums are ENCLOSED. */
struct few_rows {
    doubles c[AT_ONCE][VECTORS];
};

/* Adds the groups of `count` k to the rows. */
TF_INLINE void add_groups(int depth, enum how how, const double *a, const double *b,
                          size_t count, struct few_rows *rows,
                          struct unknown unknown[VECTORS])
{
    struct few_rows now = *rows;
    for (size_t k = 0; k < count; k += (size_t)depth) {
        UNROLLED for (size_t v = 0; v < VECTORS; v++) {
            doubles sum[AT_ONCE], minus_sum[AT_ONCE];
            UNROLLED for (size_t i = 0; i < (size_t)depth; i++) {
                const doubles y = load_doubles(b + (k + i) * PANEL + v * PLACES);
                UNROLLED for (size_t r = 0; r < AT_ONCE; r++) {
                    const doubles x = all_lanes(a[r * TF_MMA_DEPTH + k + i]);
                    if (how == EXACT) {
                        sum[r] = add_product(x, y, i ? sum[r] : now.c[r][v]);
                    } else if (i == 0) {
                        sum[r] = x * y;
                    } else {
                        minus_sum[r] = i == 1 ? minus_product_less(x, y, sum[r])
                                              : subtract_product(x, y, minus_sum[r]);
                        sum[r] = add_product(x, y, sum[r]);
                    }
                }
            }
            UNROLLED for (size_t r = 0; how == ENCLOSED && r < AT_ONCE; r++) {
                sum[r] -= now.c[r][v];
                minus_sum[r] += now.c[r][v];
            }
            UNROLLED for (size_t r = 0; r < AT_ONCE; r++) {
                now.c[r][v] = how == EXACT
                                  ? round_to_single(sum[r])
                                  : round_enclosed(sum[r], minus_sum[r], &unknown[v]);
            }
        }
    }
    *rows = now;
}

/* Computes the vectors that have bits in `which` again, with the errors of sums. */
__attribute__((noinline)) static void
compute_again(const struct tf_rounded_model *model, enum how how, const struct operands *x,
              size_t row, size_t first, size_t count, const struct few_rows *given,
              const words which[VECTORS], struct few_rows *next)
{
    if (how == ENCLOSED) {
        tf_fp_round_downward(0);
    }
    for (size_t r = 0; r < AT_ONCE; r++) {
        doubles c[VECTORS], sums[VECTORS];
        for (size_t v = 0; v < VECTORS; v++) {
            c[v] = how == ENCLOSED ? negative(given->c[r][v]) : given->c[r][v];
        }
        go_on_with_errors(model, x, row + r, first, count, c, sums);
        for (size_t v = 0; v < VECTORS; v++) {
            if (any(which[v])) {
                next->c[r][v] = how == ENCLOSED ? negative(sums[v]) : sums[v];
            }
        }
    }
    if (how == ENCLOSED) {
        tf_fp_round_downward(1);
    }
}

/* Adds groups in blocks of NOTED k, so that an unknown result repeats only its block. */
TF_INLINE void add_enclosed_groups(const struct tf_rounded_model *model, int depth,
                                   const struct operands *x, size_t row, size_t count,
                                   struct few_rows *rows)
{
    for (size_t k = 0; k < count; k += NOTED) {
        const size_t here = tf_min_size(count - k, NOTED);
        const struct few_rows given = *rows;
        struct few_rows now = given;
        struct unknown unknown[VECTORS];
        words bits[VECTORS], some = words_of(0);
        UNROLLED for (size_t v = 0; v < VECTORS; v++) {
            unknown[v] = (struct unknown){0};
        }
        add_groups(depth, ENCLOSED, x->wide_a + row * TF_MMA_DEPTH + k,
                   x->wide_b + k * PANEL, here, &now, unknown);
        UNROLLED for (size_t v = 0; v < VECTORS; v++) {
            bits[v] = are_unknown(unknown[v]);
            some |= bits[v];
        }
        if (__builtin_expect(any(some), 0)) {
            struct few_rows next = now;
            compute_again(model, ENCLOSED, x, row, k, here, &given, bits, &next);
            now = next;
        }
        *rows = now;
    }
}

/* Computes a tile of C. */
TF_INLINE void chain_doubles(int depth, enum how how, const struct tf_rounded_model *model,
                             const struct operands *x, size_t count, float *c, size_t ldc)
{
    for (size_t row = 0; row < ROWS; row += AT_ONCE, c += AT_ONCE * ldc) {
        struct few_rows given, now;
        words special[VECTORS], some = words_of(0);
        UNROLLED for (size_t i = 0; i < AT_ONCE * VECTORS; i++) {
            const doubles sums = load_wide(c + i / VECTORS * ldc + i % VECTORS * PLACES);
            given.c[i / VECTORS][i % VECTORS] = how == ENCLOSED ? negative(sums) : sums;
        }
        now = given;
        if (how == EXACT) {
            add_groups(depth, how, x->wide_a + row * TF_MMA_DEPTH, x->wide_b, count, &now,
                       NULL);
        } else if (how == ENCLOSED) {
            add_enclosed_groups(model, depth, x, row, count, &now);
        }
        UNROLLED for (size_t v = 0; v < VECTORS; v++) {
            special[v] = words_of(how == ANY ? UINT32_MAX : 0);
            UNROLLED for (size_t r = 0; how != ANY && r < AT_ONCE; r++) {
                special[v] |= (words)(now.c[r][v] - now.c[r][v] != 0);
            }
            some |= special[v];
        }
        if (any(some)) {
            struct few_rows next = now;
            compute_again(model, how, x, row, 0, count, &given, special, &next);
            now = next;
        }
        UNROLLED for (size_t i = 0; i < AT_ONCE * VECTORS; i++) {
            const doubles sums = now.c[i / VECTORS][i % VECTORS];
            const few_floats results = singles_of(how == ENCLOSED ? negative(sums) : sums);
            memcpy(c + i / VECTORS * ldc + i % VECTORS * PLACES, &results, sizeof results);
        }
    }
}

/* Adds sums of two products to the accumulators. Products are exact in float64, and their
 * sum is rounded to odd there. A rounding to float32 treats it as the exact sum. */
void TF_PLAIN_NAME(tf_pair_steps_any)(const struct tf_rounded_model *model,
                                      const struct operands *x, size_t count, float *c,
                                      size_t ldc)
{
    (void)model;
    for (size_t r = 0; r < ROWS; r++, c += ldc) {
        const float *a = x->a + r * x->lda;
        for (size_t j = 0; j < WIDTH; j += PLACES) {
            few_floats sums;
            memcpy(&sums, c + j, sizeof sums);
            for (size_t k = 0; k < count; k += 2) {
                const float *b = x->b + k * PANEL + j;
                const doubles first = all_lanes(a[k]) * load_wide(b);
                const doubles second = all_lanes(a[k + 1]) * load_wide(b + PANEL);
                doubles error;
                const doubles sum = two_sum(first, second, &error);
                sums += singles_of(make_odd(sum, error));
            }
            for (size_t i = 0; i < PLACES; i++) {
                c[j + i] = sums[i] == sums[i] ? sums[i] : tf_float_of(TF_MAGNITUDE_BITS);
            }
        }
    }
}

#define CHAIN_DOUBLES(name, depth, how)                                        \
    void TF_PLAIN_NAME(name)(const struct tf_rounded_model *model,             \
                             const struct operands *x, size_t count, float *c, \
                             size_t ldc)                                       \
    {                                                                          \
        chain_doubles(depth, how, model, x, count, c, ldc);                    \
    }
CHAIN_DOUBLES(tf_fused_2_exact, 2, EXACT)
CHAIN_DOUBLES(tf_fused_4_exact, 4, EXACT)
CHAIN_DOUBLES(tf_fused_4_enclosed, 4, ENCLOSED)
CHAIN_DOUBLES(tf_fused_any, 0, ANY)
