/* Dot products and sums in twice float64's precision: each product and each sum with its
 * error (Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26(6),
 * 2005, algorithm 5.3, with several sums side by side).
 *
 * Each of at least 8 sums has c = n / 8 + 4 terms or fewer. Its rest adds 2 c errors, which
 * are at most c + 1 units of 2^-53 of the magnitudes' sum S. With the last additions, of up
 * to 32 sums, the error is below 2 ((n / 8 + 64) 2^-53)^2 S. */
#include <math.h>

#include "exact/kernels/plain/decls.h"
#include "runtime/kernels/doubles.h"

enum { SUMS = 4 };

/* Returns the error of the product p = x * y. */
TF_INLINE doubles product_error(doubles x, doubles y, doubles p)
{
#if defined(__AVX2__) && defined(__FMA__)
    return (doubles)WIDE(fmsub_pd)((wide_doubles)x, (wide_doubles)y, (wide_doubles)p);
#elif defined(__aarch64__)
    return (doubles)vfmaq_f64(vnegq_f64((float64x2_t)p), (float64x2_t)x, (float64x2_t)y);
#else
    for (int i = 0; i < PLACES; i++) {
        p[i] = __builtin_fma(x[i], y[i], -p[i]);
    }
    return p;
#endif
}

/* Adds x to a sum, and the error, together with that of x, to its rest. */
TF_INLINE void add(doubles x, doubles off, doubles *sum, doubles *rest)
{
    const doubles before = *sum, after = before + x, part = after - before;
    *rest += ((before - (after - part)) + (x - part)) + off;
    *sum = after;
}

TF_INLINE void add_product(doubles x, doubles y, doubles *sum, doubles *rest)
{
    const doubles p = x * y;
    add(p, product_error(x, y, p), sum, rest);
}

static void add_number(double x, double *sum, double *rest)
{
    const double before = *sum, after = before + x, part = after - before;
    *rest += (before - (after - part)) + (x - part);
    *sum = after;
}

/* Writes the sum of `count` sums and that of their rests. */
TF_INLINE void write_sums(const doubles *sum, const doubles *rest, int count, double *sums)
{
    double total = 0, errors = 0;
    for (int s = 0; s < count; s++) {
        for (int lane = 0; lane < PLACES; lane++) {
            add_number(sum[s][lane], &total, &errors);
            errors += rest[s][lane];
        }
    }
    sums[0] = total;
    sums[1] = errors;
}

void TF_PLAIN_NAME(tf_compensated_dot)(const double *x, const double *y, size_t n,
                                       double *sums)
{
    doubles sum[SUMS], rest[SUMS];
    UNROLLED for (int s = 0; s < SUMS; s++) {
        sum[s] = rest[s] = all_lanes(0);
    }
    size_t i = 0;
    for (; i + SUMS * PLACES <= n; i += SUMS * PLACES) {
        UNROLLED for (int s = 0; s < SUMS; s++) {
            const size_t at = i + (size_t)s * PLACES;
            add_product(load_doubles(x + at), load_doubles(y + at), &sum[s], &rest[s]);
        }
    }
    for (; i < n; i += PLACES) {
        add_product(load_some_doubles(x + i, n - i), load_some_doubles(y + i, n - i),
                    &sum[0], &rest[0]);
    }
    write_sums(sum, rest, n < SUMS * PLACES ? 1 : SUMS, sums);
}

/* Returns a number and, in *error, that of a product. NaN if the error may be inexact. */
static inline double product_of(double x, double y, double *error)
{
    const double p = x * y;
    *error = __builtin_fma(x, y, -p);
    return fabs(p) >= 0x1p-960 || x == 0 || y == 0 ? p : (double)NAN;
}

void TF_PLAIN_NAME(tf_split_products)(const double *x, const double *y, size_t k,
                                      const int64_t *pairs, size_t count, double *terms)
{
    for (size_t i = 0; i < count; i++) {
        const double *one = x + (size_t)pairs[2 * i] * k;
        const double *other = y + (size_t)pairs[2 * i + 1] * k;
        double *out = terms + i;
        for (size_t t = 0; t < k; t++, out += 2 * count) {
            out[0] = product_of(one[t], other[t], out + count);
        }
    }
}

void TF_PLAIN_NAME(tf_compensated_sum)(const double *x, size_t n, double *sums)
{
    doubles sum[SUMS], rest[SUMS], magnitudes = all_lanes(0);
    UNROLLED for (int s = 0; s < SUMS; s++) {
        sum[s] = rest[s] = all_lanes(0);
    }
    size_t i = 0;
    for (; i + SUMS * PLACES <= n; i += SUMS * PLACES) {
        UNROLLED for (int s = 0; s < SUMS; s++) {
            const doubles term = load_doubles(x + i + (size_t)s * PLACES);
            magnitudes += magnitude_of_doubles(term);
            add(term, all_lanes(0), &sum[s], &rest[s]);
        }
    }
    for (; i < n; i += PLACES) {
        const doubles term = load_some_doubles(x + i, n - i);
        magnitudes += magnitude_of_doubles(term);
        add(term, all_lanes(0), &sum[0], &rest[0]);
    }
    double magnitude = 0;
    for (int lane = 0; lane < PLACES; lane++) {
        magnitude += magnitudes[lane];
    }
    write_sums(sum, rest, SUMS, sums);
    const double unit = ((double)n / 8 + 64) * 0x1p-53;
    sums[2] = 2.2 * unit * unit * magnitude;
    if (magnitude < 0x1p-900) { /* the bound would be too small for a double */
        sums[2] = magnitude == 0 ? 0 : (double)INFINITY;
    }
}
