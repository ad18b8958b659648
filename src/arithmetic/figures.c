/* Errors of results, one result after the other. */
#include "arithmetic/figures.h"

#include <math.h>
#include <string.h>

#include "formats/fast_codec.h"
#include "formats/number_kinds.h"

struct tf_grid tf_grid_of(int format)
{
    const struct tf_format f = format == TF_FLOAT32   ? tf_binary32
                               : format == TF_FLOAT16 ? tf_float16
                                                      : *tf_format_rows[format];
    const struct tf_grid grid = {
        .mantissa_bits = f.mantissa_bits,
        .least_normal = ldexp(1, 1 - f.bias),
        /* float32's own bound is no float32. */
        .beyond = format == TF_FLOAT32 ? 0x1.ffffffp127 : (double)tf_float_of(tf_beyond(f)),
    };
    return grid;
}

/* floor(log2(|x|)) of a normal number; less than any format's least of a lesser one. */
TF_INLINE int exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7FF) - 1023;
}

/* 1 / ulp at a number of the format's, or one that rounds to it: 2^(mantissa bits -
 * exponent), where numbers below the normal ones have their exponent. */
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

TF_INLINE void observe_operand(const struct tf_grid *grid, double before, double after,
                               struct tf_figures *figures)
{
    const double size = fabs(before);
    const int differs = (before != after) & (before == before);
    figures->foreign += (uint64_t)differs;
    figures->foreign_overflows += (uint64_t)(differs & (size < INFINITY) &
                                             (!(fabs(after) < INFINITY) |
                                              (size >= grid->beyond)));
    figures->foreign_underflows += (uint64_t)(differs & (size < grid->least_normal));
}

void tf_observe_operands(const struct tf_grid *grid, char type, const void *before,
                         const void *after, size_t n, struct tf_figures *figures)
{
    const float *x = before, *y = after;
    const double *v = before, *w = after;
    struct tf_figures found = {.operands = n};
    for (size_t i = 0; i < n; i++) {
        if (type == 'f') {
            observe_operand(grid, (double)x[i], (double)y[i], &found);
        } else {
            observe_operand(grid, v[i], w[i], &found);
        }
    }
    tf_add_figures(figures, &found);
}

/* Of each result the greatest magnitude among its operands; NaN if one is NaN. */
static void find_greatest(const struct tf_observed *seen, size_t at, size_t n, double *greatest)
{
    memset(greatest, 0, n * sizeof *greatest);
    for (int j = 0; j < seen->input_count; j++) {
        const double *x = seen->inputs[j] + at * seen->steps[j];
        const size_t step = seen->steps[j];
        for (size_t i = 0; i < n; i++) {
            const double size = fabs(x[i * step]), other = greatest[i];
            greatest[i] = (size <= other) | (other != other) ? other : size;
        }
    }
}

/* Without a branch, which would be taken at random: it is called for every result. */
static void observe_sums(const struct tf_grid *grid, const double *truth,
                         const double *greatest, size_t n, struct tf_figures *figures)
{
    uint64_t sums = 0, vanished = 0, cancelled = 0;
    int greatest_lost = figures->greatest_lost;
    for (size_t i = 0; i < n; i++) {
        const int counts = (fabs(truth[i]) < INFINITY) & (greatest[i] < INFINITY) &
                           (greatest[i] > 0);
        const int is_zero = truth[i] == 0;
        const int difference = exponent_of(greatest[i]) - exponent_of(truth[i]);
        const int lost = counts & !is_zero ? difference : 0;
        sums += (uint64_t)counts;
        vanished += (uint64_t)(counts & is_zero);
        cancelled += 2 * lost > grid->mantissa_bits + 1;
        greatest_lost = lost > greatest_lost ? lost : greatest_lost;
    }
    figures->sums += sums;
    figures->vanished += vanished;
    figures->cancelled += cancelled;
    figures->greatest_lost = greatest_lost;
}

static void observe_errors(const struct tf_grid *grid, const double *result,
                           const double *truth, const double *greatest, size_t n,
                           struct tf_figures *figures)
{
    uint64_t inexact = 0, overflows = 0, underflows = 0, nans = 0, measured = 0;
    double greatest_error = figures->greatest_ulps, sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double size = fabs(truth[i]), distance = fabs(result[i] - truth[i]);
        const int is_finite = size < INFINITY;
        const int is_beyond = !(fabs(result[i]) < INFINITY) | (size >= grid->beyond);
        const int differs = is_finite & (result[i] != truth[i]);
        const int counts = is_finite & !is_beyond;
        const double ulps = distance * ulps_of(grid, size); /* any, of what is not finite */
        const double error = counts ? ulps : 0;
        inexact += (uint64_t)differs;
        overflows += (uint64_t)(is_finite & is_beyond);
        underflows += (uint64_t)(differs & (size < grid->least_normal));
        nans += (uint64_t)((result[i] != result[i]) & (greatest[i] == greatest[i]) &
                           !(is_finite & is_beyond));
        measured += (uint64_t)counts;
        sum += error;
        greatest_error = error > greatest_error ? error : greatest_error;
    }
    figures->results += n;
    figures->inexact += inexact;
    figures->overflows += overflows;
    figures->underflows += underflows;
    figures->nans += nans;
    figures->measured += measured;
    figures->sum_of_ulps += sum;
    figures->greatest_ulps = greatest_error;
}

void tf_observe(const struct tf_grid *grid, const struct tf_observed *seen,
                struct tf_figures *figures)
{
    enum { AT_ONCE = 256 };
    double greatest[AT_ONCE];
    for (size_t at = 0; at < seen->n; at += AT_ONCE) {
        const size_t n = seen->n - at < AT_ONCE ? seen->n - at : AT_ONCE;
        find_greatest(seen, at, n, greatest);
        observe_errors(grid, seen->result + at, seen->truth + at, greatest, n, figures);
        if (seen->adds) {
            observe_sums(grid, seen->truth + at, greatest, n, figures);
        }
    }
}

void tf_add_figures(struct tf_figures *total, const struct tf_figures *more)
{
    total->calls += more->calls;
    total->operands += more->operands;
    total->foreign += more->foreign;
    total->foreign_overflows += more->foreign_overflows;
    total->foreign_underflows += more->foreign_underflows;
    total->results += more->results;
    total->inexact += more->inexact;
    total->overflows += more->overflows;
    total->underflows += more->underflows;
    total->nans += more->nans;
    total->measured += more->measured;
    total->sum_of_ulps += more->sum_of_ulps;
    total->greatest_ulps = fmax(total->greatest_ulps, more->greatest_ulps);
    total->sums += more->sums;
    total->vanished += more->vanished;
    total->cancelled += more->cancelled;
    if (more->greatest_lost > total->greatest_lost) {
        total->greatest_lost = more->greatest_lost;
    }
}
