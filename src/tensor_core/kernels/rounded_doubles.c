/* Chains of fused groups of some products, which are rounded to nearest, by float64.
 *
 * Products are exact in float64. If all numbers are multiples of a unit, and no sum reaches
 * 2^53 of it, sums are exact, too, and what is left is a rounding to float32's 24 bits. Else
 * the errors of sums are taken with them (2Sum: Knuth, and exact in any order), and tell
 * whether the last bit of the float64 sum has to be odd: then a rounding to fewer bits takes
 * it for what it was. */
#include "tensor_core/kernels/rounded_tile.h"

enum { PLACES = LANES / 2, VECTORS = WIDTH / PLACES, SETS = 2, FEW = ROWS / SETS };

typedef double doubles __attribute__((vector_size(4 * LANES)));
typedef int64_t longs __attribute__((vector_size(4 * LANES)));
typedef float few_floats __attribute__((vector_size(2 * LANES)));

/* Bits that float32 does not have. */
static const int64_t BELOW_SINGLE = (1 << 29) - 1;

TF_INLINE longs longs_of(int64_t x) { return (longs){0} + x; }

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

TF_INLINE doubles to_single(doubles x)
{
    return __builtin_convertvector(__builtin_convertvector(x, few_floats), doubles);
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

__attribute__((noinline)) static void add_fused_with_errors(int depth,
                                                            const doubles *products,
                                                            doubles *c, longs *doubt)
{
    doubles copies[4];
    memcpy(copies, products, (size_t)depth * sizeof *copies);
    *c = depth == 2 ? add_with_errors(2, copies, *c, doubt)
                    : add_with_errors(4, copies, *c, doubt);
}

/* A fused group whose sums may not be exact. Where the total is 2^-8 of the sums of two
 * products or more, all errors together are less than 2^10 of its last bits: they count
 * only if so close to it is the middle of two float32 numbers. */
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
    /* 2^-110: no total is subnormal in float32. */
    const longs large = (longs)(magnitude_of_doubles(total) * 256 >= most + 0x1p-110);
    const longs middle = ((longs)total + (NEAR - (BELOW_SINGLE + 1) / 2)) & BELOW_SINGLE;
    if (any((words)(~large | (longs)(middle < 2 * NEAR)))) {
        add_fused_with_errors(depth, products, &c, doubt);
        return c;
    }
    return to_single(total);
}

/* A row's accumulators with the products of a group. */
TF_INLINE void add_row(int depth, int exact, const double *a, const double *b,
                       doubles c[VECTORS], longs doubt[VECTORS])
{
    UNROLLED for (int v = 0; v < VECTORS; v++) {
        doubles products[4];
        UNROLLED for (int i = 0; i < depth; i++) {
            const doubles x = a[i] - (doubles){0};
            const doubles y = load_doubles(b + i * WIDTH + v * PLACES);
            products[i] = exact && i > 0 ? add_product(x, y, products[i - 1]) : x * y;
        }
        if (exact) {
            c[v] = to_single(c[v] + products[depth - 1]);
        } else {
            c[v] = add_fused(depth, products, c[v], &doubt[v]);
        }
    }
}

TF_INLINE void add_doubles(int depth, int exact, const double *a, const double *b, size_t k,
                           doubles c[FEW][VECTORS], longs doubt[FEW][VECTORS])
{
    a += k;
    b += k * WIDTH;
    if (!exact) { /* too much of it for rows that are unrolled */
        for (size_t r = 0; r < FEW; r++) {
            add_row(depth, 0, a + r * NOTED, b, c[r], doubt[r]);
        }
        return;
    }
    UNROLLED for (size_t r = 0; r < FEW; r++) {
        add_row(depth, 1, a + r * NOTED, b, c[r], doubt[r]);
    }
}

TF_INLINE void chain_doubles(int depth, int exact, const struct tf_rounded_model *model,
                             struct operands x, size_t count, float *c, size_t ldc)
{
    double a[ROWS * NOTED], b[NOTED * WIDTH];
    struct tile sums, doubt;
    longs some = longs_of(0);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t k = 0; k < count; k++) {
            a[r * NOTED + k] = x.a[r * x.lda + k];
        }
    }
    for (size_t k = 0; k < count; k++) {
        UNROLLED for (size_t j = 0; j < WIDTH; j++) {
            b[k * WIDTH + j] = x.b[k * PANEL + j];
        }
    }
    for (size_t set = 0; set < SETS; set++) {
        doubles now[FEW][VECTORS];
        longs unsure[FEW][VECTORS] = {0};
        UNROLLED for (size_t i = 0; i < FEW * VECTORS; i++) {
            few_floats given;
            memcpy(&given, c + (set * FEW + i / VECTORS) * ldc + i % VECTORS * PLACES,
                   sizeof given);
            now[i / VECTORS][i % VECTORS] = __builtin_convertvector(given, doubles);
        }
        for (size_t k = 0; k < count; k += (size_t)depth) {
            add_doubles(depth, exact, a + set * FEW * NOTED, b, k, now, unsure);
        }
        UNROLLED for (size_t i = 0; i < FEW * VECTORS; i++) {
            const few_floats sum =
                __builtin_convertvector(now[i / VECTORS][i % VECTORS], few_floats);
            const doubles again = __builtin_convertvector(sum, doubles);
            const longs out = unsure[i / VECTORS][i % VECTORS] |
                              (longs)(again - again != 0); /* what is not finite */
            /* All bits are NaN, and no bits zero, also as float32. */
            const few_floats mark = __builtin_convertvector((doubles)out, few_floats);
            const size_t place = (set * FEW * VECTORS + i) * sizeof sum;
            memcpy((char *)&sums + place, &sum, sizeof sum);
            memcpy((char *)&doubt + place, &mark, sizeof mark);
            some |= out;
        }
    }
    if (any((words)some)) {
        redo_with_integers(model, &x, count, &doubt, c, ldc, &sums);
    }
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(c + r * ldc, sums.c[r], sizeof sums.c[r]);
    }
}

#define CHAIN_DOUBLES(name, depth, exact)                                           \
    void TF_PLAIN_NAME(name)(const struct tf_rounded_model *model,                  \
                             struct operands x, size_t count, float *c, size_t ldc) \
    {                                                                               \
        chain_doubles(depth, exact, model, x, count, c, ldc);                       \
    }
CHAIN_DOUBLES(tf_fused_2_exact, 2, 1)
CHAIN_DOUBLES(tf_fused_2_any, 2, 0)
CHAIN_DOUBLES(tf_fused_4_exact, 4, 1)
CHAIN_DOUBLES(tf_fused_4_any, 4, 0)
