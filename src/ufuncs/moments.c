/* Sums, means, variances and products of lines with a bound of their error, and a check
 * whether all numbers within the bound round to one item. */
#include "ufuncs/moments.h"

#include <math.h>

#include "formats/casts.h"
#include "formats/fast_codec.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"
#include "ufuncs/exact_sum.h"
#include "ufuncs/line_calls.h"

/* Returns whether a format has no Inf: then a NaN always makes the result NaN. With Inf,
 * NumPy may have added infinities of both signs before the NaN, which raises a flag. */
static int lacks_infinity(int format)
{
    return tf_format_rows[format]->specials != TF_IEEE;
}

/* Returns whether a line with infinities and this sum surely has an infinite result: their
 * sum is infinite if they have one sign. A variance subtracts infinities. */
static int is_sure_of_infinity(enum tf_statistic statistic, double sum)
{
    return statistic == TF_NORM ||
           ((statistic == TF_TOTAL || statistic == TF_MEAN) && isinf(sum));
}

/* Replaces the largest magnitude of a line that surely gives NaN. No item has it. */
enum { SURELY_NAN = INT32_MAX };

/* -- sums --------------------------------------------------------------------------- */

struct moment_chunk {
    TF_BUFFER(buffer);
    float rows[TF_MOMENT_ROWS][TF_CHUNK];
};

static void load(int format, const char *items, ptrdiff_t stride, size_t n,
                 struct moment_chunk *chunk, float *numbers)
{
    const size_t size = tf_format_rows[format]->itemsize;
    tf_isa->formats->conversions[format].to_float32(tf_gather(items, stride, size, n, chunk->buffer),
                                   numbers, n);
}

static int leaves_out(const struct tf_summed *lines)
{
    return lines->mask || lines->without_nans;
}

/* Makes numbers that do not count change nothing. Returns how many count, from `at` on. */
static size_t leave_out(const struct tf_summed *lines, enum tf_statistic statistic,
                        ptrdiff_t at, size_t n, float *numbers, double *counts)
{
    const float nothing = statistic == TF_PRODUCT ? 1 : -0.0f;
    if (lines->mask) {
        return tf_isa->ufuncs->moments->leave_out_masked(numbers, n, lines->mask + at,
                                                 lines->without_nans, nothing, counts);
    }
    return tf_isa->ufuncs->moments->leave_out_nans(numbers, n, nothing, counts);
}

static void multiply_few(const float *numbers, size_t n, double *value, int64_t *exponent)
{
    tf_multiply_all(value, exponent, numbers, n);
}

static void add_numbers(enum tf_statistic statistic, const float *numbers, size_t n,
                        struct tf_sums found, ptrdiff_t i)
{
    enum { WORTH_LANES = 64 };
    if (statistic == TF_PRODUCT) {
        (n < WORTH_LANES ? multiply_few : tf_isa->ufuncs->moments->multiply)(
            numbers, n, &found.sums[i], &found.exponents[i]);
        return;
    }
    struct tf_moments moments = {found.sums[i], 0, found.greatest[i], found.least[i]};
    if (found.squares) {
        moments.squares = found.squares[i];
        tf_isa->ufuncs->moments->squares(numbers, n, &moments);
        found.squares[i] = moments.squares;
    } else {
        tf_isa->ufuncs->moments->numbers(numbers, n, &moments);
    }
    found.sums[i] = moments.sum;
    found.greatest[i] = moments.greatest;
    found.least[i] = moments.least;
}

/* Adds lines i to i + count, one after the other, from element `at` on. Takes as many
 * elements at a time as a chunk holds. */
static void add_lines(const struct tf_summed *lines, enum tf_statistic statistic,
                      ptrdiff_t at, ptrdiff_t count, struct tf_sums found, ptrdiff_t i)
{
    const ptrdiff_t whole = TF_CHUNK / lines->n;
    struct moment_chunk chunk;
    float *numbers = chunk.rows[0];
    const ptrdiff_t all = count * lines->n;
    const ptrdiff_t most = whole > 0 ? whole * lines->n : TF_CHUNK;
    for (ptrdiff_t done = 0, n, line_end = lines->n; done < all; done += n) {
        const ptrdiff_t end = whole > 0 ? all : line_end;
        n = tf_min_size(end - done, most);
        load(lines->format, lines->items + (at + done) * lines->stride, lines->stride,
             (size_t)n, &chunk, numbers);
        for (ptrdiff_t part = 0, run; part < n; part += run) {
            run = tf_min_size(n - part, lines->n);
            float *here = numbers + part;
            found.counts[i] +=
                leaves_out(lines)
                    ? (double)leave_out(lines, statistic, at + done + part, (size_t)run,
                                        here, NULL)
                    : (double)run;
            add_numbers(statistic, here, (size_t)run, found, i);
            if (found.greatest[i] == (int32_t)TF_INF_BITS &&
                !is_sure_of_infinity(statistic, found.sums[i])) {
                return; /* one result is not sure, so none is */
            }
            if (done + part + run == line_end) {
                line_end += lines->n;
                i++;
            }
        }
    }
}

/* Adds lines from i on that are side by side, some rows after the others. The statistic is
 * not a product. */
static void add_side_by_side(const struct tf_summed *lines, enum tf_statistic statistic,
                             ptrdiff_t at, ptrdiff_t n, struct tf_sums found,
                             ptrdiff_t i)
{
    const struct tf_moment_rows rows = {
        found.sums + i,
        found.squares ? found.squares + i : NULL,
        found.greatest + i,
        found.least + i,
    };
    struct moment_chunk chunk;
    for (ptrdiff_t row = 0; row < lines->n; row += TF_MOMENT_ROWS) {
        for (ptrdiff_t k = 0; k < TF_MOMENT_ROWS; k++) {
            float *numbers = chunk.rows[k];
            if (row + k >= lines->n) {
                for (ptrdiff_t j = 0; j < n; j++) {
                    numbers[j] = -0.0f;
                }
                continue;
            }
            const ptrdiff_t here = at + (row + k) * lines->inner;
            load(lines->format, lines->items + here * lines->stride, lines->stride,
                 (size_t)n, &chunk, numbers);
            if (leaves_out(lines)) {
                leave_out(lines, statistic, here, (size_t)n, numbers, found.counts + i);
            }
        }
        tf_isa->ufuncs->moments->side_by_side(chunk.rows[0], (size_t)n, &rows);
    }
    for (ptrdiff_t j = i; !leaves_out(lines) && j < i + n; j++) {
        found.counts[j] += (double)lines->n;
    }
}

/* Returns whether infinities of the lines may raise a flag, as those of both signs do in
 * sums, and any of them with a zero in products. */
static int has_harmful_infinities(const struct tf_summed *lines,
                                  enum tf_statistic statistic)
{
    const int32_t inf = tf_total_order(TF_INF_BITS);
    const int32_t negative_inf = tf_total_order(TF_NEGATIVE_INF_BITS);
    const ptrdiff_t all = lines->repeats * lines->outer * lines->n * lines->inner;
    struct moment_chunk chunk;
    int positive = 0, negative = 0, found = 0;
    for (ptrdiff_t done = 0; done < all && !found; done += TF_CHUNK) {
        const size_t n = tf_min_size(all - done, TF_CHUNK);
        int32_t least, greatest;
        load(lines->format, lines->items + done * lines->stride, lines->stride, n, &chunk,
             chunk.rows[0]);
        tf_isa->formats->bounds(chunk.rows[0], n, inf, &least, &greatest);
        positive |= greatest == inf;
        negative |= least == negative_inf;
        found = statistic == TF_PRODUCT ? positive | negative : positive & negative;
    }
    return found;
}

/* Not for formats without zero: an earlier sum may have been out of range, and invalid. */
static void note_sure_nans(const struct tf_summed *lines, enum tf_statistic statistic,
                           ptrdiff_t count, int32_t *greatest)
{
    if (tf_sum_begins_with_nan(lines->format)) {
        return;
    }
    int is_sure = lacks_infinity(lines->format);
    for (ptrdiff_t i = 0; i < count; i++) {
        if (greatest[i] <= (int32_t)TF_INF_BITS) {
            continue;
        }
        if (!is_sure && has_harmful_infinities(lines, statistic)) {
            return;
        }
        is_sure = 1;
        greatest[i] = SURELY_NAN;
    }
}

void tf_add_lines(const struct tf_summed *lines, enum tf_statistic statistic,
                  struct tf_sums found)
{
    const struct tf_fp saved = tf_fp_begin();
    const ptrdiff_t inner = lines->inner, count = lines->outer * inner;
    for (ptrdiff_t i = 0; i < count; i++) {
        found.sums[i] = statistic == TF_PRODUCT ? 1 : -0.0; /* changes nothing */
        found.counts[i] = 0;
        found.greatest[i] = 0;
        found.least[i] = INT32_MAX;
        if (found.squares) {
            found.squares[i] = 0;
        }
        if (found.exponents) {
            found.exponents[i] = 0;
        }
    }
    for (ptrdiff_t repeat = 0; repeat < lines->repeats; repeat++) {
        const ptrdiff_t from = repeat * count * lines->n;
        if (inner == 1) {
            add_lines(lines, statistic, from, count, found, 0);
            continue;
        }
        for (ptrdiff_t i = 0; i < count; i += inner) {
            for (ptrdiff_t j = 0; j < inner; j += TF_CHUNK) {
                const ptrdiff_t n = tf_min_size(inner - j, TF_CHUNK);
                add_side_by_side(lines, statistic, from + i * lines->n + j, n, found,
                                 i + j);
            }
        }
    }
    note_sure_nans(lines, statistic, count, found.greatest);
    tf_fp_end(saved, 0);
}

/* -- results and their bounds ------------------------------------------------------- */

/* Half an ulp of 1 in float64. A sum of n numbers, added in any order, is off by at most n
 * UNIT times the sum of their magnitudes (Higham, "Accuracy and Stability of Numerical
 * Algorithms", 2002, section 4.2), and this sum is at most n times the largest. A product
 * is off by at most n UNIT times itself. Bounds have a factor of 2, as two results are
 * compared, and another 2 for terms of second order. */
static const double UNIT = 0x1p-53;

struct number {
    double value, error; /* bound of the distance from NumPy's; NAN: none */
};

/* A line's sums without the squares. */
struct line {
    double sum, count, greatest;
    int is_exact; /* float64 holds every sum of the numbers */
};

/* Returns whether all sums are exact. Numbers are multiples of a unit, the last digit of
 * the smallest nonzero one: sums below 2^53 units are exact. */
static int is_exact(int format, double count, double greatest, int32_t least)
{
    enum { BIAS = 127, WIDE_BIAS = 1023, DIGITS = 53, LEAST = -149 };
    if (least == INT32_MAX) { /* all are zero */
        return 1;
    }
    const int exponent = ((least + 1) >> 23) - BIAS; /* -127 if subnormal */
    const int bits = tf_format_rows[format]->mantissa_bits;
    const int last = exponent > -BIAS ? exponent - bits : LEAST;
    const uint64_t most_bits = (uint64_t)(WIDE_BIAS + DIGITS + last) << 52;
    double most;
    memcpy(&most, &most_bits, sizeof most);
    return count * greatest <= most;
}

static struct line line_of(int format, struct tf_sums found, ptrdiff_t i)
{
    const double greatest = (double)tf_float_of((uint32_t)found.greatest[i]);
    const double count = found.counts[i];
    return (struct line){found.sums[i], count, greatest,
                         is_exact(format, count, greatest, found.least[i])};
}

static struct number total_of(struct line x)
{
    return (struct number){
        x.sum, x.is_exact ? 0 : 4 * UNIT * x.count * x.count * x.greatest};
}

static struct number mean_of(struct line x)
{
    const double mean = x.sum / x.count;
    const double error = 4 * UNIT * (x.count * x.greatest + fabs(mean));
    return (struct number){mean, x.is_exact ? 0 : error};
}

/* Returns the variance: the sum of (x - m)^2 is that of x^2 minus sum^2 / count. NumPy's m
 * is off by at most `shift`, which adds count shift^2. */
static struct number variance_of(struct line x, double squares, double divisor)
{
    const double mean = x.sum / x.count, variance = squares - x.sum * mean;
    const double shift = 2 * UNIT * (x.count + 2) * x.greatest;
    const double error = 4 * UNIT *
                             ((x.count + 16) * squares +
                              x.count * x.count * fabs(mean) * x.greatest) +
                         4 * x.count * shift * shift;
    const double quotient = variance / divisor;
    const double whole = error / divisor + 4 * UNIT * fabs(quotient);
    return (struct number){quotient, quotient > 2 * whole ? whole : NAN};
}

static struct number root_of(struct number x)
{
    const double root = sqrt(x.value);
    if (!(x.value > 2 * x.error)) {
        return (struct number){root, x.value == 0 && x.error == 0 ? 0 : NAN};
    }
    return (struct number){root, x.error / root + 4 * UNIT * root};
}

/* Returns the product. Out of 2^+-1000 every format over- or underflows alike. If count
 * significands fit in float64, the product is exact. */
static struct number product_of(int format, double value, int64_t exponent, double count)
{
    enum { DIGITS = 53 };
    const double product = tf_product_value(value, exponent);
    const int bits = tf_format_rows[format]->mantissa_bits + 1;
    const int is_exact = count * bits <= DIGITS;
    return (struct number){product, is_exact ? 0 : 4 * UNIT * count * fabs(product)};
}

static struct number number_of(int format, enum tf_statistic statistic, double freedom,
                               struct tf_sums found, ptrdiff_t i)
{
    const struct line x = line_of(format, found, i);
    const double divisor = x.count - freedom;
    const struct number unsure = {x.sum, NAN};
    if (divisor > 0 && found.greatest[i] == SURELY_NAN) {
        return (struct number){NAN, 0};
    }
    if (divisor > 0 && found.greatest[i] == (int32_t)TF_INF_BITS &&
        is_sure_of_infinity(statistic, x.sum)) {
        return (struct number){statistic == TF_NORM ? INFINITY : x.sum, 0};
    }
    if (!(divisor > 0) || !isfinite(x.sum) || !isfinite(x.greatest)) {
        return unsure;
    }
    switch (statistic) {
    case TF_VARIANCE: return variance_of(x, found.squares[i], divisor);
    case TF_DEVIATION: return root_of(variance_of(x, found.squares[i], divisor));
    case TF_NORM:
        return root_of((struct number){
            found.squares[i], 4 * UNIT * (x.count + 2) * found.squares[i]});
    case TF_PRODUCT: return product_of(format, x.sum, found.exponents[i], x.count);
    case TF_TOTAL:
    case TF_MEAN: break;
    }
    if (x.sum == 0 && signbit(x.sum)) { /* NumPy may begin with +0 */
        return unsure;
    }
    return statistic == TF_TOTAL ? total_of(x) : mean_of(x);
}

/* Returns whether a number is rounded to a normal one, and so raises nothing. */
static int raises_nothing(int format, double x)
{
    const struct tf_format f = *tf_format_rows[format];
    const uint32_t magnitude = tf_bits_of((float)x) & TF_MAGNITUDE_BITS;
    return magnitude > tf_least_normal(f) && magnitude < tf_beyond(f);
}

static unsigned flags_of(int format, float x, const void *item)
{
    const struct tf_flag_hints hints = tf_isa->formats->conversions[format].suspect(&x, 1);
    return tf_rounding_flags(format, hints, &x, item, 1, 0);
}

/* Returns whether all numbers from low to high, which have one item, raise the same flags,
 * and adds these. A number that equals the item raises no underflow. */
static int raise_alike(int format, double low, double high, const void *item,
                       unsigned *flags)
{
    if (raises_nothing(format, low) && raises_nothing(format, high)) {
        return 1;
    }
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    const double ends[2] = {low, high};
    float singles[2], number;
    tf_isa->formats->narrow(ends, singles, 2);
    conversions->to_float32(item, &number, 1);
    const unsigned raised = flags_of(format, singles[0], item);
    *flags |= raised;
    if (!(low < high)) { /* one number, or NaN */
        return 1;
    }
    return (low > 0 || high < 0) && !((double)number >= low && (double)number <= high) &&
           raised == flags_of(format, singles[1], item);
}

/* Writes the items of n values, each off by at most its error, and returns 1. Returns 0 if
 * one of the items is not sure. */
static int store_if_sure(int format, const double *values, const double *errors,
                         char *items, size_t n, unsigned *flags)
{
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    const size_t size = tf_format_rows[format]->itemsize;
    TF_BUFFER(buffer);
    double low[TF_CHUNK], high[TF_CHUNK];
    float numbers[TF_CHUNK];
    for (size_t i = 0; i < n; i++) {
        if (!(errors[i] >= 0)) {
            return 0;
        }
        low[i] = errors[i] == 0 ? values[i] : values[i] - errors[i];
        high[i] = errors[i] == 0 ? values[i] : values[i] + errors[i];
    }
    tf_isa->formats->narrow(low, numbers, n);
    const struct tf_flag_hints first = conversions->from_float32(numbers, items, n);
    tf_isa->formats->narrow(high, numbers, n);
    const struct tf_flag_hints second = conversions->from_float32(numbers, buffer, n);
    if (memcmp(items, buffer, n * size) != 0) {
        return 0;
    }
    if (!first.beyond && !first.tiny && !second.beyond && !second.tiny) {
        return 1;
    }
    if (memcmp(low, high, n * sizeof *low) == 0) {
        *flags |= tf_rounding_flags(format, second, numbers, items, n, *flags);
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        if (!raise_alike(format, low[i], high[i], items + i * size, flags)) {
            return 0;
        }
    }
    return 1;
}

int tf_statistics(const struct tf_summed *lines, enum tf_statistic statistic,
                  double freedom, struct tf_sums found, void *items, unsigned *flags)
{
    const struct tf_fp saved = tf_fp_begin();
    const int format = lines->format;
    const ptrdiff_t size = tf_format_rows[format]->itemsize;
    const ptrdiff_t count = lines->outer * lines->inner;
    int is_sure = 1;
    for (ptrdiff_t done = 0; is_sure && done < count; done += TF_CHUNK) {
        const size_t n = tf_min_size(count - done, TF_CHUNK);
        char *out = (char *)items + done * size;
        double values[TF_CHUNK], errors[TF_CHUNK];
        unsigned raised = 0;
        for (size_t i = 0; i < n; i++) {
            const struct number number =
                number_of(format, statistic, freedom, found, done + (ptrdiff_t)i);
            values[i] = number.value;
            errors[i] = number.error;
        }
        is_sure = store_if_sure(format, values, errors, out, n, &raised);
        if (!is_sure && tf_are_calls(lines, statistic)) {
            raised = tf_call_lines(lines, statistic, done, out, n);
            is_sure = 1;
        }
        *flags |= raised;
    }
    tf_fp_end(saved, 0);
    return is_sure;
}

int tf_weighted_mean(const struct tf_summed *lines, const char *weights,
                     ptrdiff_t stride, void *item, unsigned *flags)
{
    const struct tf_fp saved = tf_fp_begin();
    struct tf_moments products = {-0.0, 0, 0, INT32_MAX}, divisors = products;
    struct moment_chunk chunk;
    float *x = chunk.rows[0], *w = chunk.rows[1];
    for (ptrdiff_t done = 0; done < lines->n; done += TF_CHUNK) {
        const ptrdiff_t rest = lines->n - done;
        const size_t n = tf_min_size(rest, TF_CHUNK);
        load(lines->format, lines->items + done * lines->stride, lines->stride, n,
             &chunk, x);
        load(lines->format, weights + done * stride, stride, n, &chunk, w);
        tf_isa->ufuncs->moments->products(x, w, n, &products);
        tf_isa->ufuncs->moments->numbers(w, n, &divisors);
    }
    const double n = (double)lines->n;
    const double weight = (double)tf_float_of((uint32_t)divisors.greatest);
    const double product = (double)tf_float_of((uint32_t)products.greatest) * weight;
    const double divisor = fabs(divisors.sum) - 4 * UNIT * n * n * weight;
    const double mean = products.sum / divisors.sum;
    double error = NAN;
    if (divisor > 0 && products.sum != 0 && isfinite(mean) && isfinite(product)) {
        error = 4 * UNIT * n * n * (product + fabs(mean) * weight) / divisor +
                4 * UNIT * fabs(mean);
    }
    const int is_sure = store_if_sure(lines->format, &mean, &error, item, 1, flags);
    tf_fp_end(saved, 0);
    return is_sure;
}
