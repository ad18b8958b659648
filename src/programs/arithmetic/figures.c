/* Makes the grid of a format, and adds figures. */
#include "programs/arithmetic/figures.h"

#include <math.h>

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
        /* float32's bound, half an ulp above its largest number, is not a float32. */
        .beyond = format == TF_FLOAT32 ? 0x1.ffffffp127 : (double)tf_float_of(tf_beyond(f)),
    };
    return grid;
}

void tf_add_figures(struct tf_figures *total, const struct tf_figures *more)
{
    total->calls += more->calls;
    total->operands += more->operands;
    total->rounded_operands += more->rounded_operands;
    total->operand_overflows += more->operand_overflows;
    total->operand_underflows += more->operand_underflows;
    total->results += more->results;
    total->inexact += more->inexact;
    total->overflows += more->overflows;
    total->underflows += more->underflows;
    total->nans += more->nans;
    total->measured += more->measured;
    total->sum_of_ulps += more->sum_of_ulps;
    total->largest_ulps = fmax(total->largest_ulps, more->largest_ulps);
    total->sums += more->sums;
    total->zero_sums += more->zero_sums;
    total->canceled_sums += more->canceled_sums;
    total->absorbed_sums += more->absorbed_sums;
    if (more->most_bits_lost > total->most_bits_lost) {
        total->most_bits_lost = more->most_bits_lost;
    }
}
