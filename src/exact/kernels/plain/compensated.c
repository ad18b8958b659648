/* Dot products in twice float64's precision: each product and each sum with its error
 * (Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26(6),
 * 2005, algorithm 5.3, with several sums side by side). */
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

/* Adds x * y to the sum of a pair, and all errors to its rest. */
TF_INLINE void add_product(doubles x, doubles y, doubles *sum, doubles *rest)
{
    const doubles p = x * y, before = *sum, after = before + p, part = after - before;
    *rest += ((before - (after - part)) + (p - part)) + product_error(x, y, p);
    *sum = after;
}

static void add_number(double x, double *sum, double *rest)
{
    const double before = *sum, after = before + x, part = after - before;
    *rest += (before - (after - part)) + (x - part);
    *sum = after;
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
        double few[2][PLACES] = {{0}};
        const size_t left = (n - i < PLACES ? n - i : PLACES) * sizeof(double);
        memcpy(few[0], x + i, left);
        memcpy(few[1], y + i, left);
        add_product(load_doubles(few[0]), load_doubles(few[1]), &sum[0], &rest[0]);
    }
    double total = 0, errors = 0;
    for (int s = 0; s < SUMS; s++) {
        for (int lane = 0; lane < PLACES; lane++) {
            add_number(sum[s][lane], &total, &errors);
            errors += rest[s][lane];
        }
    }
    sums[0] = total;
    sums[1] = errors;
}
