/* Chains of fused groups of some products, which are rounded to nearest, by float64.
 *
 * Products are exact in float64. If all numbers are multiples of a unit, and no sum reaches
 * 2^53 of it, sums are exact, too, and what is left is a rounding to float32's 24 bits.
 *
 * Else all sums are rounded both downward and upward. What is between the two has one
 * rounding to 24 bits if the two have the same. They do unless the middle of two results
 * is between them, or is one of them and not the other. If they do not, the errors of sums
 * are taken with them (2Sum: Knuth, and exact in any order), and tell whether the last bit
 * of the float64 sum has to be odd: then a rounding to fewer bits takes it for what it was.
 */
#include "runtime/fp_environment.h"
#include "tensor_core/kernels/rounded_tile.h"

enum {
    PLACES = LANES / 2,
    VECTORS = WIDTH / PLACES,
    AT_ONCE = SMALL ? 1 : ROWS / 2 /* rows: what registers hold */
};

typedef double doubles __attribute__((vector_size(4 * LANES)));
typedef int64_t longs __attribute__((vector_size(4 * LANES)));
typedef uint64_t unsigned_longs __attribute__((vector_size(4 * LANES)));
typedef float few_floats __attribute__((vector_size(2 * LANES)));

/* Bits that float32 does not have. */
static const int64_t BELOW_SINGLE = (1 << 29) - 1;

TF_INLINE longs longs_of(int64_t x) { return (longs){0} + x; }

/* In all lanes, whatever the rounding mode. */
TF_INLINE doubles all_lanes(double x)
{
#if defined(__AVX512BW__)
    return (doubles)_mm512_set1_pd(x);
#elif defined(__AVX2__)
    return (doubles)_mm256_set1_pd(x);
#else
    return (doubles){x, x};
#endif
}

TF_INLINE doubles load_doubles(const double *p)
{
    doubles x;
    memcpy(&x, p, sizeof x);
    return x;
}

TF_INLINE doubles negative(doubles x) { return (doubles)((longs)x ^ longs_of(INT64_MIN)); }

TF_INLINE doubles magnitude_of_doubles(doubles x)
{
    return (doubles)((longs)x & longs_of(INT64_MAX));
}

TF_INLINE doubles doubles_of(few_floats x)
{
#if defined(__AVX512BW__)
    return (doubles)_mm512_cvtps_pd((__m256)x);
#elif defined(__AVX2__)
    return (doubles)_mm256_cvtps_pd((__m128)x);
#else
    return __builtin_convertvector(x, doubles);
#endif
}

TF_INLINE few_floats singles_of(doubles x)
{
    return __builtin_convertvector(x, few_floats);
}

/* y where one is NaN. */
TF_INLINE doubles lesser_doubles(doubles x, doubles y)
{
#if defined(__AVX512BW__)
    return (doubles)_mm512_min_pd((__m512d)x, (__m512d)y);
#elif defined(__AVX2__)
    return (doubles)_mm256_min_pd((__m256d)x, (__m256d)y);
#else
    const longs first = (longs)(x < y);
    return (doubles)(((longs)x & first) | ((longs)y & ~first));
#endif
}

TF_INLINE doubles greater_doubles(doubles x, doubles y)
{
#if defined(__AVX512BW__)
    return (doubles)_mm512_max_pd((__m512d)x, (__m512d)y);
#elif defined(__AVX2__)
    return (doubles)_mm256_max_pd((__m256d)x, (__m256d)y);
#else
    return negative(lesser_doubles(negative(x), negative(y)));
#endif
}

/* x * y + z, whose product is exact. */
TF_INLINE doubles add_product(doubles x, doubles y, doubles z)
{
#if defined(__AVX512BW__)
    return (doubles)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z);
#elif defined(__AVX2__) && defined(__FMA__)
    return (doubles)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
#else
    return x * y + z;
#endif
}

/* x * y - z, the same. */
TF_INLINE doubles product_less(doubles x, doubles y, doubles z)
{
#if defined(__AVX512BW__)
    return (doubles)_mm512_fmsub_pd((__m512d)x, (__m512d)y, (__m512d)z);
#elif defined(__AVX2__) && defined(__FMA__)
    return (doubles)_mm256_fmsub_pd((__m256d)x, (__m256d)y, (__m256d)z);
#else
    return x * y - z;
#endif
}

/* z - x * y, the same. */
TF_INLINE doubles subtract_product(doubles x, doubles y, doubles z)
{
#if defined(__AVX512BW__)
    return (doubles)_mm512_fnmadd_pd((__m512d)x, (__m512d)y, (__m512d)z);
#elif defined(__AVX2__) && defined(__FMA__)
    return (doubles)_mm256_fnmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
#else
    return z - x * y;
#endif
}

/* -- exact sums -------------------------------------------------------------------- */

/* To nearest with 24 bits: the last bit of x + power * 1.5 * 2^29, for the power of two of
 * x's exponent, is that of float32. What is not finite becomes NaN. */
TF_INLINE doubles round_to_single(doubles x)
{
    const doubles power = (doubles)((longs)x & longs_of(INT64_C(0x7FF) << 52));
    const doubles much = all_lanes(0x1.8p29);
    return subtract_product(much, power, add_product(much, power, x));
}

/* Goes on with accumulators over a group. */
TF_INLINE doubles add_exact(int depth, const double *a, const double *b, doubles c)
{
    doubles sum = all_lanes(a[0]) * load_doubles(b);
    UNROLLED for (int i = 1; i < depth; i++) {
        sum = add_product(all_lanes(a[i]), load_doubles(b + i * PANEL), sum);
    }
    return round_to_single(c + sum);
}

/* -- sums between two numbers ------------------------------------------------------ */

/* What is not known of results: bits of float32; and the sign, where zero lies between the
 * two numbers: then `sign`, the least of the greater ones of `below` and `minus_above`, is
 * less than zero. */
struct unknown {
    longs bits;
    doubles sign;
};

/* Goes on with minus the accumulators over a group, while float64 rounds downward: what is
 * to be rounded upward is negative. */
TF_INLINE doubles add_enclosed(int depth, const double *a, const double *b, doubles minus_c,
                               struct unknown *unknown)
{
    doubles below = minus_c, minus_above = minus_c;
    UNROLLED for (int i = 0; i < depth; i++) {
        const doubles x = all_lanes(a[i]), y = load_doubles(b + i * PANEL);
        below = i ? add_product(x, y, below) : product_less(x, y, below);
        minus_above = subtract_product(x, y, minus_above);
    }
    /* In this order: a NaN, of another row, does not take the place of what is known. */
    unknown->sign = lesser_doubles(greater_doubles(below, minus_above), unknown->sign);
    /* To nearest, ties to even. Zero is -0, however it is rounded. If one of the two is the
     * exact sum, no sum before it lost anything, and the other one is the same: so that a
     * tie is one of both or of none. */
    const longs last = (longs)((unsigned_longs)minus_above >> 29) & longs_of(1);
    const longs up = BELOW_SINGLE / 2 + last;
    const longs rounded = (longs)minus_above + up;
    unknown->bits |= ((longs)below + up) ^ rounded;
    return (doubles)(rounded & ~BELOW_SINGLE);
}

/* -- sums with their errors -------------------------------------------------------- */

/* x + y; what it lacks is the error. */
TF_INLINE doubles two_sum(doubles x, doubles y, doubles *error)
{
    const doubles sum = x + y, second = sum - x;
    *error = (x - (sum - second)) + (y - second);
    return sum;
}

/* The sum, made odd if it is not exact: the neighbour where the error is. Sums that are not
 * finite have no error but NaN. */
TF_INLINE doubles make_odd(doubles sum, doubles error)
{
    const longs even = ((longs)sum & 1) - 1;
    const longs inexact = (longs)(magnitude_of_doubles(error) > 0);
    const longs step = ((longs)sum ^ (longs)error) >> 63 | 1;
    return (doubles)((longs)sum + (step & even & inexact));
}

/* Goes on with accumulators over a group; `doubt` gets bits where the error is not known
 * well enough. */
TF_INLINE doubles add_with_errors(int depth, const double *a, const double *b, doubles c,
                                  longs *doubt)
{
    doubles sum = c, error = all_lanes(0), most = all_lanes(0);
    UNROLLED for (int i = 0; i < depth; i++) {
        doubles next;
        sum = two_sum(sum, all_lanes(a[i]) * load_doubles(b + i * PANEL), &next);
        error += next;
        most += magnitude_of_doubles(next);
    }
    /* The sum with the error, which may have an error of 2^-51 of `most`: again two
     * numbers, of which the lesser counts by its sign. */
    const doubles total = sum + error, rest = error - (total - sum);
    const longs inexact = (longs)(most != 0);
    const longs sure = (longs)(magnitude_of_doubles(rest) > most * 0x1p-48) &
                       (longs)(magnitude_of_doubles(sum) > most);
    *doubt |= inexact & ~sure;
    const longs odd = (longs)make_odd(total, rest);
    return doubles_of(singles_of((doubles)((odd & inexact) | ((longs)sum & ~inexact))));
}

/* -- tiles ------------------------------------------------------------------------- */

/* How sums are added. */
enum how {
    EXACT,    /* they are exact in float64 */
    ENCLOSED, /* no result is subnormal or overflows, and float64 rounds downward */
    ANY
};

/* A tile of C, as float64 has it. */
struct wide_tile {
    few_floats c[ROWS][VECTORS];
    longs doubt[ROWS][VECTORS]; /* all bits of an element, or none */
};

TF_INLINE doubles load_wide(const float *c)
{
    few_floats given;
    memcpy(&given, c, sizeof given);
    return doubles_of(given);
}

/* What becomes of AT_ONCE rows from the given one on. */
TF_INLINE void add_rows(int depth, enum how how, struct operands x, size_t row,
                        size_t count, const float *c, size_t ldc, struct wide_tile *tile)
{
    doubles now[AT_ONCE][VECTORS];
    struct unknown unknown[VECTORS]; /* of all these rows: what registers hold */
    UNROLLED for (size_t i = 0; i < AT_ONCE * VECTORS; i++) {
        const size_t r = i / VECTORS, v = i % VECTORS;
        const doubles given = load_wide(c + (row + r) * ldc + v * PLACES);
        now[r][v] = how == ENCLOSED ? negative(given) : given;
        unknown[v] = (struct unknown){longs_of(0), all_lanes(0)};
    }
    for (size_t k = 0; k < count; k += (size_t)depth) {
        UNROLLED for (size_t i = 0; i < AT_ONCE * VECTORS; i++) {
            const size_t r = i / VECTORS, v = i % VECTORS;
            const double *a = x.wide_a + (row + r) * TF_MMA_DEPTH + k;
            const double *b = x.wide_b + k * PANEL + v * PLACES;
            now[r][v] = how == ENCLOSED
                            ? add_enclosed(depth, a, b, now[r][v], &unknown[v])
                            : add_exact(depth, a, b, now[r][v]);
        }
    }
    UNROLLED for (size_t i = 0; i < AT_ONCE * VECTORS; i++) {
        const size_t r = i / VECTORS, v = i % VECTORS;
        longs doubt = (longs)(now[r][v] - now[r][v] != 0); /* what is not finite */
        if (how == ENCLOSED) {
            const longs bits = unknown[v].bits & (INT64_MAX ^ BELOW_SINGLE);
            doubt |= (bits != 0) | (longs)(unknown[v].sign < 0);
            now[r][v] = negative(now[r][v]);
        }
        tile->c[row + r][v] = singles_of(now[r][v]);
        tile->doubt[row + r][v] = doubt;
    }
}

TF_INLINE int has_doubt(const struct wide_tile *tile)
{
    longs some = longs_of(0);
    UNROLLED for (int i = 0; i < ROWS * VECTORS; i++) {
        some |= tile->doubt[i / VECTORS][i % VECTORS];
    }
    return any((words)some);
}

/* Computes those vectors again of which elements are in doubt: with the errors of sums;
 * then by integers what still is. */
__attribute__((noinline)) static void redo(const struct tf_rounded_model *model,
                                           struct operands x, size_t count, const float *c,
                                           size_t ldc, struct wide_tile *tile)
{
    const int depth = model->depth;
    few_floats marks[ROWS][VECTORS];
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t v = 0; v < VECTORS; v++) {
            longs doubt = tile->doubt[r][v];
            if (any((words)doubt)) {
                const double *a = x.wide_a + r * TF_MMA_DEPTH;
                doubles now = load_wide(c + r * ldc + v * PLACES);
                doubt = longs_of(0);
                for (size_t k = 0; k < count; k += (size_t)depth) {
                    const double *b = x.wide_b + k * PANEL + v * PLACES;
                    now = add_with_errors(depth, a + k, b, now, &doubt);
                }
                doubt |= (longs)(now - now != 0);
                tile->c[r][v] = singles_of(now);
            }
            marks[r][v] = singles_of((doubles)doubt); /* all bits: NaN, in float32 too */
        }
    }
    struct tile sums, doubt;
    memcpy(&sums, tile->c, sizeof sums);
    memcpy(&doubt, marks, sizeof doubt);
    redo_with_integers(model, &x, count, &doubt, c, ldc, &sums);
    memcpy(tile->c, &sums, sizeof sums);
}

TF_INLINE void chain_doubles(int depth, enum how how, const struct tf_rounded_model *model,
                             struct operands x, size_t count, float *c, size_t ldc)
{
    struct wide_tile tile;
    for (size_t r = 0; how != ANY && r < ROWS; r += AT_ONCE) {
        add_rows(depth, how, x, r, count, c, ldc, &tile);
    }
    if (how == ANY) {
        memset(tile.doubt, 0xFF, sizeof tile.doubt);
    }
    if (how == ANY || has_doubt(&tile)) {
        if (how == ENCLOSED) {
            tf_fp_round_downward(0);
        }
        redo(model, x, count, c, ldc, &tile);
        if (how == ENCLOSED) {
            tf_fp_round_downward(1);
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(c + r * ldc, tile.c[r], sizeof tile.c[r]);
    }
}

#define CHAIN_DOUBLES(name, depth, how)                                             \
    void TF_PLAIN_NAME(name)(const struct tf_rounded_model *model,                  \
                             const struct operands *x, size_t count, float *c,       \
                             size_t ldc)                                            \
    {                                                                               \
        chain_doubles(depth, how, model, *x, count, c, ldc);                        \
    }
CHAIN_DOUBLES(tf_fused_2_exact, 2, EXACT)
CHAIN_DOUBLES(tf_fused_2_any, 2, ANY)
CHAIN_DOUBLES(tf_fused_4_exact, 4, EXACT)
CHAIN_DOUBLES(tf_fused_4_enclosed, 4, ENCLOSED)
CHAIN_DOUBLES(tf_fused_4_any, 4, ANY)
