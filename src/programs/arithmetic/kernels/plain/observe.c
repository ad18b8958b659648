/* Computes the figures of a chunk. To become vector code, the loops have no branches, which
 * would be taken at random, and use only 64-bit values. */
#include <math.h>
#include <string.h>

#include "programs/arithmetic/kernels.h"
#include "runtime/inline.h"
#include "runtime/kernels/common.h"

enum { AT_ONCE = 256 };

/* Returns the biased exponent of a float64: larger by 1023, and 0 for subnormal numbers. */
TF_INLINE int64_t field_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 52 & 0x7FF;
}

/* Returns 1 / ulp of the format at a magnitude: 2^(mantissa bits - exponent), where
 * subnormal numbers have the exponent of the smallest normal number. */
TF_INLINE double ulps_of(const struct tf_grid *grid, double size)
{
    const double top = size > grid->least_normal ? size : grid->least_normal;
    uint64_t bits;
    memcpy(&bits, &top, sizeof bits);
    bits = ((uint64_t)(grid->mantissa_bits + 2046) << 52) - (bits & UINT64_C(0x7FF) << 52);
    double ulps;
    memcpy(&ulps, &bits, sizeof ulps);
    return ulps;
}

/* Numbers of operands that are not in the format, and of those that overflow or
 * underflow. */
struct foreign {
    int64_t all, overflows, underflows;
};

TF_INLINE void observe_operand(const struct tf_grid *grid, double before, double after,
                               struct foreign *found)
{
    const double size = fabs(before);
    const int64_t differs = (int64_t)(before != after) & (int64_t)(before == before);
    const int64_t is_beyond = (int64_t)!(fabs(after) < INFINITY) |
                              (int64_t)(size >= grid->beyond);
    found->all += differs;
    found->overflows += differs & (int64_t)(size < INFINITY) & is_beyond;
    found->underflows += differs & (int64_t)(size < grid->least_normal);
}

static void observe_operands(const struct tf_grid *grid, char type, const void *before,
                             const void *after, size_t n, struct tf_figures *figures)
{
    const float *x = before, *y = after;
    const double *v = before, *w = after;
    struct foreign found = {0, 0, 0};
    if (type == 'f') {
        for (size_t i = 0; i < n; i++) {
            observe_operand(grid, (double)x[i], (double)y[i], &found);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            observe_operand(grid, v[i], w[i], &found);
        }
    }
    figures->operands += n;
    figures->rounded_operands += (uint64_t)found.all;
    figures->operand_overflows += (uint64_t)found.overflows;
    figures->operand_underflows += (uint64_t)found.underflows;
}

/* Writes, for each result, the largest magnitude of its operands; NaN if one is NaN. */
static void find_greatest(const struct tf_observed *seen, size_t at, size_t n,
                          double *greatest)
{
    memset(greatest, 0, n * sizeof *greatest);
    for (int j = 0; j < seen->input_count; j++) {
        const double *x = seen->inputs[j] + at * seen->steps[j];
        const size_t step = seen->steps[j];
        for (size_t i = 0; i < n; i++) {
            const double size = fabs(x[i * step]), other = greatest[i];
            greatest[i] = ((size <= other) | (other != other)) ? other : size;
        }
    }
}

/* Counts results that equal the larger of two operands in magnitude, and differ from the
 * exact sum. */
static void observe_absorbed(const double *result, const double *truth,
                             const double *greatest, size_t n, struct tf_figures *figures)
{
    int64_t absorbed = 0;
    for (size_t i = 0; i < n; i++) {
        absorbed += (int64_t)(fabs(result[i]) == greatest[i]) &
                    (int64_t)(greatest[i] < INFINITY) & (int64_t)(result[i] != truth[i]);
    }
    figures->absorbed_sums += (uint64_t)absorbed;
}

static void observe_sums(const struct tf_grid *grid, const double *truth,
                         const double *greatest, size_t n, struct tf_figures *figures)
{
    const int64_t more_than_half = (grid->mantissa_bits + 1) / 2 + 1;
    int64_t sums = 0, vanished = 0, canceled = 0, most = figures->most_bits_lost;
    for (size_t i = 0; i < n; i++) {
        const int64_t counts = (int64_t)(fabs(truth[i]) < INFINITY) &
                               (int64_t)(greatest[i] < INFINITY) &
                               (int64_t)(greatest[i] > 0);
        const int64_t is_zero = truth[i] == 0;
        const int64_t fields = field_of(greatest[i]) - field_of(truth[i]);
        const int64_t lost = fields & -(counts & (is_zero ^ 1));
        sums += counts;
        vanished += counts & is_zero;
        canceled += lost >= more_than_half;
        most = lost > most ? lost : most;
    }
    figures->sums += (uint64_t)sums;
    figures->zero_sums += (uint64_t)vanished;
    figures->canceled_sums += (uint64_t)canceled;
    figures->most_bits_lost = (int)most;
}

static void observe_errors(const struct tf_grid *grid, const double *result,
                           const double *truth, const double *greatest, size_t n,
                           struct tf_figures *figures)
{
    double errors[AT_ONCE];
    int64_t inexact = 0, overflows = 0, underflows = 0, nans = 0, measured = 0;
    for (size_t i = 0; i < n; i++) {
        const double size = fabs(truth[i]);
        const int64_t is_finite = size < INFINITY;
        const int64_t is_beyond = (int64_t)!(fabs(result[i]) < INFINITY) |
                                  (int64_t)(size >= grid->beyond);
        const int64_t differs = is_finite & (int64_t)(result[i] != truth[i]);
        const int64_t counts = is_finite & (is_beyond ^ 1);
        const int64_t makes_nan = (int64_t)(result[i] != result[i]) &
                                  (int64_t)(greatest[i] == greatest[i]);
        inexact += differs;
        overflows += is_finite & is_beyond;
        underflows += differs & (int64_t)(size < grid->least_normal);
        nans += makes_nan & ((is_finite & is_beyond) ^ 1);
        measured += counts;
        /* The value is arbitrary if the reference or the result is not finite. */
        const double ulps = fabs(result[i] - truth[i]) * ulps_of(grid, size);
        errors[i] = counts ? ulps : 0;
    }
    double most = figures->largest_ulps, sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += errors[i];
        most = errors[i] > most ? errors[i] : most;
    }
    figures->results += n;
    figures->inexact += (uint64_t)inexact;
    figures->overflows += (uint64_t)overflows;
    figures->underflows += (uint64_t)underflows;
    figures->nans += (uint64_t)nans;
    figures->measured += (uint64_t)measured;
    figures->sum_of_ulps += sum;
    figures->largest_ulps = most;
}

static void observe(const struct tf_grid *grid, const struct tf_observed *seen,
                    struct tf_figures *figures)
{
    double greatest[AT_ONCE];
    for (size_t at = 0; at < seen->n; at += AT_ONCE) {
        const size_t n = seen->n - at < AT_ONCE ? seen->n - at : AT_ONCE;
        find_greatest(seen, at, n, greatest);
        observe_errors(grid, seen->result + at, seen->truth + at, greatest, n, figures);
        if (seen->adds) {
            observe_sums(grid, seen->truth + at, greatest, n, figures);
            if (seen->input_count == 2) {
                observe_absorbed(seen->result + at, seen->truth + at, greatest, n, figures);
            }
        }
    }
}

const struct tf_arithmetic_kernels TF_PLAIN_NAME(tf_arithmetic_kernels) = {
    .observe_operands = observe_operands,
    .observe = observe,
};
