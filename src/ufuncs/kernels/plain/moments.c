/* Sums in float64 of numbers and of their squares, and products, for moments.c: of a line
 * in lanes, of many lines side by side. A square is exact, as it has at most 22 bits. */
#include "runtime/sizes.h"
#include "ufuncs/kernels/decls.h"

enum { LANES = 32, SIGN = INT32_MIN };

/* Return magnitudes as integers. nonzero_of subtracts 1: zero becomes the largest. */
TF_INLINE int32_t magnitude_of(float x) { return (int32_t)tf_bits_of(x) & ~SIGN; }
TF_INLINE int32_t nonzero_of(int32_t magnitude) { return (magnitude - 1) & ~SIGN; }

TF_INLINE int32_t greater_of(int32_t x, int32_t y) { return x > y ? x : y; }
TF_INLINE int32_t lesser_of(int32_t x, int32_t y) { return x < y ? x : y; }

struct lanes {
    double sums[LANES], squares[LANES];
    int32_t greatest[LANES], least[LANES];
};

TF_INLINE void fold(struct lanes *x, int width, int squares)
{
    for (int lane = 0; lane < width; lane++) {
        const int other = lane + width;
        x->sums[lane] += x->sums[other];
        if (squares) {
            x->squares[lane] += x->squares[other];
        }
        x->greatest[lane] = greater_of(x->greatest[lane], x->greatest[other]);
        x->least[lane] = lesser_of(x->least[lane], x->least[other]);
    }
}

/* Adds a line of numbers, or of their products with weights. */
TF_INLINE void add_line(const float *in, const float *weights, size_t n,
                        struct tf_moments *moments, int squares)
{
    size_t i = 0;
    if (n >= LANES) {
        struct lanes x;
        for (int lane = 0; lane < LANES; lane++) {
            x.sums[lane] = -0.0; /* which changes no sum */
            x.squares[lane] = 0;
            x.greatest[lane] = 0;
            x.least[lane] = INT32_MAX;
        }
        for (; i + LANES <= n; i += LANES) {
            for (size_t lane = 0; lane < LANES; lane++) {
                const int32_t magnitude = magnitude_of(in[i + lane]);
                const double number = (double)in[i + lane];
                x.sums[lane] +=
                    weights ? number * (double)weights[i + lane] : number;
                if (squares) {
                    x.squares[lane] += number * number;
                }
                x.greatest[lane] = greater_of(magnitude, x.greatest[lane]);
                x.least[lane] = lesser_of(nonzero_of(magnitude), x.least[lane]);
            }
        }
        fold(&x, 16, squares);
        fold(&x, 8, squares);
        fold(&x, 4, squares);
        fold(&x, 2, squares);
        fold(&x, 1, squares);
        moments->sum += x.sums[0];
        moments->squares += x.squares[0];
        moments->greatest = greater_of(moments->greatest, x.greatest[0]);
        moments->least = lesser_of(moments->least, x.least[0]);
    }
    for (; i < n; i++) {
        const int32_t magnitude = magnitude_of(in[i]);
        const double number = (double)in[i];
        moments->sum += weights ? number * (double)weights[i] : number;
        moments->squares += squares ? number * number : 0;
        moments->greatest = greater_of(moments->greatest, magnitude);
        moments->least = lesser_of(moments->least, nonzero_of(magnitude));
    }
}

static void add_numbers(const float *in, size_t n, struct tf_moments *moments)
{
    add_line(in, NULL, n, moments, 0);
}

static void add_squares(const float *in, size_t n, struct tf_moments *moments)
{
    add_line(in, NULL, n, moments, 1);
}

static void add_products(const float *in, const float *weights, size_t n,
                         struct tf_moments *moments)
{
    add_line(in, weights, n, moments, 0);
}

static void add_side_by_side(const float *restrict in, size_t n,
                             const struct tf_moment_rows *found)
{
    double *restrict sums = found->sums, *restrict squares = found->squares;
    int32_t *restrict greatest = found->greatest, *restrict least = found->least;
    for (size_t i = 0; i < n; i++) {
        double sum = -0.0;
        int32_t high = 0, low = INT32_MAX;
        for (size_t row = 0; row < TF_MOMENT_ROWS; row++) {
            const float x = in[row * TF_CHUNK + i];
            const int32_t magnitude = magnitude_of(x);
            sum += (double)x;
            high = greater_of(high, magnitude);
            low = lesser_of(low, nonzero_of(magnitude));
        }
        sums[i] += sum;
        greatest[i] = greater_of(greatest[i], high);
        least[i] = lesser_of(least[i], low);
    }
    for (size_t row = 0; squares && row < TF_MOMENT_ROWS; row++) {
        for (size_t i = 0; i < n; i++) {
            const double x = (double)in[row * TF_CHUNK + i];
            squares[i] += x * x;
        }
    }
}

/* -- products ----------------------------------------------------------------------- */

static void multiply_line(const float *in, size_t n, double *value, int64_t *exponent)
{
    /* The product of a significand and this many magnitudes from 2^-149 to 2^128 stays
     * within float64's range. */
    enum { TOGETHER = 6 };
    double values[LANES];
    int64_t exponents[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        values[lane] = 1;
        exponents[lane] = 0;
    }
    size_t i = 0;
    for (; i + TOGETHER * LANES <= n; i += TOGETHER * LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            double product = values[lane];
            for (size_t j = 0; j < TOGETHER; j++) {
                product *= (double)in[i + j * LANES + lane];
            }
            values[lane] = product;
            tf_normalize(&values[lane], &exponents[lane]);
        }
    }
    for (; i < n; i += LANES) {
        const size_t count = tf_min_size(n - i, LANES);
        for (size_t lane = 0; lane < count; lane++) {
            values[lane] *= (double)in[i + lane];
            tf_normalize(&values[lane], &exponents[lane]);
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        *value *= values[lane];
        *exponent += exponents[lane];
    }
    tf_normalize(value, exponent);
}

/* -- numbers that do not count ------------------------------------------------------ */

/* Replaces numbers that do not count by `nothing`. Returns how many count. */
TF_INLINE size_t leave_out(float *restrict x, size_t n, const uint8_t *restrict mask,
                           int nans, float nothing, double *restrict counts)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const int is_in = (!nans || x[i] == x[i]) & (!mask || mask[i] != 0);
        x[i] = is_in ? x[i] : nothing;
        count += (uint32_t)is_in;
        if (counts) {
            counts[i] += is_in;
        }
    }
    return count;
}

static size_t leave_out_nans(float *x, size_t n, float nothing, double *counts)
{
    return counts ? leave_out(x, n, NULL, 1, nothing, counts)
                  : leave_out(x, n, NULL, 1, nothing, NULL);
}

static size_t leave_out_masked(float *x, size_t n, const uint8_t *mask, int nans,
                               float nothing, double *counts)
{
    return nans     ? leave_out(x, n, mask, 1, nothing, counts)
           : counts ? leave_out(x, n, mask, 0, nothing, counts)
                    : leave_out(x, n, mask, 0, nothing, NULL);
}

const struct tf_moment_loops TF_PLAIN_NAME(tf_moment_loops) = {
    .numbers = add_numbers,
    .squares = add_squares,
    .products = add_products,
    .side_by_side = add_side_by_side,
    .multiply = multiply_line,
    .leave_out_nans = leave_out_nans,
    .leave_out_masked = leave_out_masked,
};
