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
        .least_exponent = 1 - f.bias,
        .mantissa_bits = f.mantissa_bits,
        .least_normal = ldexp(1, 1 - f.bias),
        /* float32's own bound is no float32. */
        .beyond = format == TF_FLOAT32 ? 0x1.ffffffp127 : (double)tf_float_of(tf_beyond(f)),
    };
    return grid;
}

/* floor(log2(|x|)) of a normal number; less than any format's least for others. */
TF_INLINE int exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7FF) - 1023;
}

TF_INLINE double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void observe_sum(const struct tf_grid *grid, double truth, double greatest,
                        struct tf_figures *figures)
{
    if (!isfinite(truth) || !isfinite(greatest) || greatest == 0) {
        return;
    }
    figures->sums++;
    if (truth == 0) {
        figures->vanished++;
        return;
    }
    const int lost = exponent_of(greatest) - exponent_of(truth);
    figures->cancelled += 2 * lost > grid->mantissa_bits + 1;
    if (lost > figures->greatest_lost) {
        figures->greatest_lost = lost;
    }
}

void tf_observe(const struct tf_grid *grid, const struct tf_observed *seen,
                struct tf_figures *figures)
{
    uint64_t inexact = 0, overflows = 0, underflows = 0, nans = 0, measured = 0;
    double greatest_error = figures->greatest_ulps, sum = 0;
    for (size_t i = 0; i < seen->n; i++) {
        const double result = seen->result[i], truth = seen->truth[i];
        double greatest = 0;
        int has_nan = 0;
        for (int j = 0; j < seen->input_count; j++) {
            const double x = fabs(seen->inputs[j][i * seen->steps[j]]);
            has_nan |= x != x;
            greatest = x > greatest ? x : greatest;
        }
        const double size = fabs(truth);
        const int is_finite = size < INFINITY;
        const int overflows_here = is_finite && (!(fabs(result) < INFINITY) ||
                                                 size >= grid->beyond);
        const int differs = is_finite && result != truth;
        inexact += (uint64_t)differs;
        overflows += (uint64_t)overflows_here;
        underflows += (uint64_t)(differs && size < grid->least_normal);
        nans += (uint64_t)(result != result && !has_nan && !overflows_here);
        if (is_finite && !overflows_here) {
            const int exponent = exponent_of(truth);
            const int top = exponent > grid->least_exponent ? exponent
                                                            : grid->least_exponent;
            const double error = fabs(result - truth) *
                                 power_of_two(grid->mantissa_bits - top);
            measured++;
            sum += error;
            greatest_error = error > greatest_error ? error : greatest_error;
        }
        if (seen->adds && !has_nan) {
            observe_sum(grid, truth, greatest, figures);
        }
    }
    figures->results += seen->n;
    figures->inexact += inexact;
    figures->overflows += overflows;
    figures->underflows += underflows;
    figures->nans += nans;
    figures->measured += measured;
    figures->sum_of_ulps += sum;
    figures->greatest_ulps = greatest_error;
}

void tf_add_figures(struct tf_figures *total, const struct tf_figures *more)
{
    total->calls += more->calls;
    total->operands += more->operands;
    total->foreign += more->foreign;
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
