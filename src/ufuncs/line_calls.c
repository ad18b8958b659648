/* Sums and products of lines in the order of NumPy's calls of the loop. */
#include "ufuncs/line_calls.h"

#include "runtime/sizes.h"
#include "ufuncs/exact_sum.h"

int tf_are_calls(const struct tf_summed *lines, enum tf_statistic statistic)
{
    return (statistic == TF_TOTAL || statistic == TF_PRODUCT) && lines->repeats == 1 &&
           lines->inner == 1 && !lines->without_nans;
}

static ptrdiff_t run_of(const uint8_t *mask, ptrdiff_t n)
{
    ptrdiff_t i = 1;
    while (i < n && !mask[i] == !mask[0]) {
        i++;
    }
    return i;
}

/* Returns the result of line i in float64, as computed by such calls. In a format without
 * zero, each call's result is rounded, which may be invalid, and an empty sum is NaN. */
static double call_line(const struct tf_summed *lines, enum tf_reduction op, ptrdiff_t i,
                        unsigned *flags)
{
    const int format = lines->format, lacks_zero = tf_sum_begins_with_nan(format);
    double value = op == TF_PROD, result = op == TF_PROD || !lacks_zero ? value : NAN;
    int64_t exponent = 0;
    for (ptrdiff_t at = i * lines->n, rest = lines->n, n; rest > 0; at += n, rest -= n) {
        const uint8_t *mask = lines->mask ? lines->mask + at : NULL;
        n = mask ? run_of(mask, rest) : rest;
        if (mask && !*mask) {
            continue;
        }
        *flags |= tf_reduce_line(format, op, lines->items + at * lines->stride,
                                 lines->stride, n, &value, &exponent);
        result = op == TF_PROD ? tf_product_value(value, exponent) : value;
        if (lacks_zero && result >= 0x1p127) { /* it may be out of range */
            uint8_t item;
            *flags |= tf_round_results(format, op, &result, &item, 1, 0).flags;
        }
    }
    return result;
}

unsigned tf_call_lines(const struct tf_summed *lines, enum tf_statistic statistic,
                       ptrdiff_t first, char *items, size_t n)
{
    const enum tf_reduction op = statistic == TF_PRODUCT ? TF_PROD : TF_SUM;
    double values[TF_CHUNK];
    uint8_t marks[TF_CHUNK] = {0};
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++) {
        values[i] = call_line(lines, op, first + (ptrdiff_t)i, &flags);
    }
    flags |= tf_round_results(lines->format, op, values, items, n, 0).flags;
    const uint64_t beyond = tf_first_beyond(lines->format);
    return flags | (tf_isa->ufuncs->mark_beyond(values, beyond, marks, n) ? TF_OVER : 0);
}
