/* Chains of fused groups of some products, which are rounded to nearest, by float64.
 *
 * Products are exact in float64. If all numbers are multiples of a unit, and no sum reaches
 * 2^53 of it, sums are exact, too, and what is left is a rounding to float32's 24 bits. Else
 * the errors of sums are taken with them (2Sum: Knuth, and exact in any order), and tell
 * whether the last bit of the float64 sum has to be odd: then a rounding to fewer bits takes
 * it for what it was.
 *
 * For two products of 22 bits or fewer there is a shorter way: their sum s is rounded to
 * odd, in float64 as rounded.c does it in float32; so is the sum t of s and the accumulator
 * c; and t is rounded to nearest, to 24 bits. If s is not exact, the lesser product is below
 * 2^-30 of the greater one, p, and there are three cases:
 *
 *      |t| < 2^-26 |s|    is in doubt
 *      |c| < 2^-28 |p|    the result is p: it has 22 bits, and what is added to it is less
 *                         than half a last bit of the result
 *      else               c is a multiple of two last bits of s, and so are the middles of
 *                         two results near t. So s, whose last bit is one, lies between the
 *                         same two of these multiples as the exact sum of products does.
 */
#include "tensor_core/kernels/rounded_tile.h"

enum { PLACES = LANES / 2, VECTORS = WIDTH / PLACES, FEW = ROWS / 2 };

typedef double doubles __attribute__((vector_size(4 * LANES)));
typedef int64_t longs __attribute__((vector_size(4 * LANES)));
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

TF_INLINE doubles to_single(doubles x) { return doubles_of(singles_of(x)); }

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

/* The accumulators with the products of a group, with the sums' errors; `doubt` gets bits
 * where the error is not known well enough. */
TF_INLINE doubles add_with_errors(int depth, doubles products[4], doubles c, longs *doubt)
{
    doubles errors[4];
    UNROLLED for (int k = 1; k < depth; k++) {
        products[0] = two_sum(products[0], products[k], &errors[k - 1]);
    }
    const doubles sum = two_sum(c, products[0], &errors[depth - 1]);
    doubles error = errors[0], most = magnitude_of_doubles(error);
    UNROLLED for (int k = 1; k < depth; k++) {
        error += errors[k];
        most += magnitude_of_doubles(errors[k]);
    }
    /* The sum with the error, which may have an error of 2^-51 of `most`: again two
     * numbers, of which the lesser counts by its sign. */
    const doubles total = sum + error, rest = error - (total - sum);
    const longs inexact = (longs)(most != 0);
    const longs sure = (longs)(magnitude_of_doubles(rest) > most * 0x1p-48) &
                       (longs)(magnitude_of_doubles(sum) > most);
    *doubt |= inexact & ~sure;
    const longs odd = (longs)make_odd(total, rest);
    return to_single((doubles)((odd & inexact) | ((longs)sum & ~inexact)));
}

/* A fused group whose sums may not be exact. Where the total is 2^-8 of the sums of two
 * products or more, all errors together are less than 2^10 of its last bits: they count
 * only if so close to it is the middle of two float32 numbers. `doubt` gets bits where
 * that may be. */
TF_INLINE doubles add_fused(int depth, const doubles products[4], doubles c, longs *doubt)
{
    enum { NEAR = 1 << 10 };
    doubles sum = products[0] + products[1], most = magnitude_of_doubles(sum);
    if (depth == 4) {
        const doubles other = products[2] + products[3];
        most += magnitude_of_doubles(other);
        sum += other;
    }
    const doubles total = c + sum;
    /* 2^-110: no total is subnormal in float32. Sums that are zero are exact. */
    const longs small = (longs)(magnitude_of_doubles(total) * 256 < most + 0x1p-110) &
                        (longs)(most != 0);
    const longs beyond = (longs)total + (NEAR - (BELOW_SINGLE + 1) / 2);
    *doubt |= small | (longs)((beyond & (BELOW_SINGLE & -2 * NEAR)) == 0);
    return to_single(total);
}

/* Of what was rounded downward, and of minus what was rounded upward. */
TF_INLINE doubles odd_one(doubles below, doubles minus_above)
{
#if defined(__AVX512BW__)
    const __mmask8 even = _mm512_testn_epi64_mask((__m512i)below, _mm512_set1_epi64(1));
    return (doubles)_mm512_mask_xor_epi64((__m512i)below, even, (__m512i)minus_above,
                                         (__m512i)longs_of(INT64_MIN));
#elif defined(__AVX2__)
    return (doubles)_mm256_blendv_pd((__m256d)((longs)minus_above ^ INT64_MIN), (__m256d)below,
                                     (__m256d)((longs)below << 63));
#else
    const longs odd = 0 - ((longs)below & 1), above = (longs)minus_above ^ INT64_MIN;
    return (doubles)(((longs)below & odd) | (above & ~odd));
#endif
}

/* x * y + z to odd, whose product is exact, while float64 rounds downward. */
TF_INLINE doubles odd_product_sum(doubles x, doubles y, doubles z)
{
#if defined(__AVX512BW__)
    const doubles minus_above =
        (doubles)_mm512_fnmsub_pd((__m512d)x, (__m512d)y, (__m512d)z);
#elif defined(__AVX2__) && defined(__FMA__)
    const doubles minus_above =
        (doubles)_mm256_fnmsub_pd((__m256d)x, (__m256d)y, (__m256d)z);
#else
    const doubles minus_above = add_product(-x, y, -z);
#endif
    return odd_one(add_product(x, y, z), minus_above);
}

/* A fused group of two products, while float64 rounds downward; no total is subnormal in
 * float32. */
TF_INLINE doubles add_odd(const double *a, const double *b, doubles c, longs *doubt)
{
    const doubles sum = odd_product_sum(all_lanes(a[1]), load_doubles(b + WIDTH),
                                        all_lanes(a[0]) * load_doubles(b));
    const doubles total = odd_product_sum(sum, all_lanes(1), c);
    *doubt |= (longs)(magnitude_of_doubles(total) * 0x1p26 < magnitude_of_doubles(sum));
    const longs bits = (longs)total; /* to nearest, ties to even */
    return (doubles)((bits + BELOW_SINGLE / 2 + (bits >> 29 & 1)) & ~BELOW_SINGLE);
}

TF_INLINE void multiply(int depth, const double *a, const double *b, doubles products[4])
{
    UNROLLED for (int i = 0; i < depth; i++) {
        products[i] = all_lanes(a[i]) * load_doubles(b + i * WIDTH);
    }
}

/* How sums are added. */
enum how {
    EXACT, /* they are exact in float64 */
    ODD,   /* by add_odd(); of two products */
    ANY
};

/* Goes on with accumulators over a group. */
TF_INLINE doubles add_group(int depth, enum how how, const double *a, const double *b,
                            doubles c, longs *doubt)
{
    doubles products[4];
    if (how == ODD) {
        return add_odd(a, b, c, doubt);
    }
    if (how == ANY) {
        multiply(depth, a, b, products);
        return add_fused(depth, products, c, doubt);
    }
    multiply(1, a, b, products);
    UNROLLED for (int i = 1; i < depth; i++) {
        products[0] =
            add_product(all_lanes(a[i]), load_doubles(b + i * WIDTH), products[0]);
    }
    return to_single(c + products[0]);
}

/* The accumulators of a vector after all groups, with the sums' errors; returns where it
 * still is in doubt. */
__attribute__((noinline)) static longs redo_with_errors(int depth, const double *a,
                                                        const double *b, size_t count,
                                                        doubles *c)
{
    longs doubt = longs_of(0);
    for (size_t k = 0; k < count; k += (size_t)depth) {
        doubles products[4];
        multiply(depth, a + k, b + k * WIDTH, products);
        *c = add_with_errors(depth, products, *c, &doubt);
    }
    return doubt;
}

TF_INLINE doubles accumulators_at(const float *c, size_t ldc, int row, int vector)
{
    few_floats given;
    memcpy(&given, c + (size_t)row * ldc + vector * PLACES, sizeof given);
    return doubles_of(given);
}

/* What becomes of some rows of C; and marks of what is in doubt, all bits or none. */
TF_INLINE void add_rows(int depth, enum how how, int rows, const double *a, const double *b,
                        size_t count, const float *c, size_t ldc,
                        few_floats sums[][VECTORS], few_floats marks[][VECTORS],
                        longs *some)
{
    doubles now[FEW][VECTORS];
    longs doubt[FEW][VECTORS] = {0};
    UNROLLED for (int i = 0; i < rows * VECTORS; i++) {
        const int r = i / VECTORS, v = i % VECTORS;
        now[r][v] = accumulators_at(c, ldc, r, v);
    }
    for (size_t k = 0; k < count; k += (size_t)depth) {
        UNROLLED for (int i = 0; i < rows * VECTORS; i++) {
            const int r = i / VECTORS, v = i % VECTORS;
            now[r][v] = add_group(depth, how, a + r * NOTED + k,
                                  b + k * WIDTH + v * PLACES, now[r][v], &doubt[r][v]);
        }
    }
    UNROLLED for (int i = 0; i < rows * VECTORS; i++) {
        const int r = i / VECTORS, v = i % VECTORS;
        longs out = doubt[r][v];
        if (how == ANY && any((words)out)) {
            now[r][v] = accumulators_at(c, ldc, r, v);
            out = redo_with_errors(depth, a + r * NOTED, b + v * PLACES, count, &now[r][v]);
        }
        sums[r][v] = singles_of(now[r][v]);
        const doubles again = doubles_of(sums[r][v]);
        out |= (longs)(again - again != 0); /* what is not finite */
        marks[r][v] = singles_of((doubles)out); /* all bits are NaN, in float32 too */
        *some |= out;
    }
}

TF_INLINE void chain_doubles(int depth, enum how how, const struct tf_rounded_model *model,
                             struct operands x, size_t count, float *c, size_t ldc)
{
    double a[ROWS * NOTED], b[NOTED * WIDTH];
    few_floats sums[ROWS][VECTORS], marks[ROWS][VECTORS];
    longs some = longs_of(0);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t k = 0; k < count; k++) {
            a[r * NOTED + k] = x.a[r * x.lda + k];
        }
    }
    for (size_t k = 0; k < count; k++) {
        UNROLLED for (size_t j = 0; j < WIDTH; j += PLACES) {
            few_floats numbers;
            memcpy(&numbers, x.b + k * PANEL + j, sizeof numbers);
            const doubles wide = doubles_of(numbers);
            memcpy(b + k * WIDTH + j, &wide, sizeof wide);
        }
    }
    const int rows = how == EXACT ? FEW : 1; /* what registers hold, with the doubt */
    for (int r = 0; r < ROWS; r += rows) {
        add_rows(depth, how, rows, a + r * NOTED, b, count, c + (size_t)r * ldc, ldc,
                 sums + r, marks + r, &some);
    }
    struct tile found;
    memcpy(&found, sums, sizeof found);
    if (any((words)some)) {
        struct tile doubt;
        memcpy(&doubt, marks, sizeof doubt);
        redo_with_integers(model, &x, count, &doubt, c, ldc, &found);
    }
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(c + r * ldc, found.c[r], sizeof found.c[r]);
    }
}

#define CHAIN_DOUBLES(name, depth, how)                                             \
    void TF_PLAIN_NAME(name)(const struct tf_rounded_model *model,                  \
                             struct operands x, size_t count, float *c, size_t ldc) \
    {                                                                               \
        chain_doubles(depth, how, model, x, count, c, ldc);                         \
    }
CHAIN_DOUBLES(tf_fused_2_exact, 2, EXACT)
CHAIN_DOUBLES(tf_fused_2_any, 2, ANY)
CHAIN_DOUBLES(tf_fused_4_exact, 4, EXACT)
CHAIN_DOUBLES(tf_fused_4_any, 4, ANY)
CHAIN_DOUBLES(tf_fused_2_odd, 2, ODD)
