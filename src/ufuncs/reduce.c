/* add and multiply: what NumPy means by a call of their loop, and running sums and
 * products. exact_sum.c does reductions, and segments.c the reductions of segments. */
#include "ufuncs/reduce.h"

#include "formats/float_bits.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"
#include "ufuncs/binary.h"
#include "ufuncs/exact_sum.h"

/* -- accumulations ------------------------------------------------------------------ */

/* Write running sums or products of n numbers, and keep the last one for the next call. */
static void run_sum(const float *numbers, size_t n, double *value, double *results)
{
    for (size_t i = 0; i < n; i++) {
        *value += (double)numbers[i];
        results[i] = *value;
    }
}

static void run_product(const float *numbers, size_t n, double *value,
                        int64_t *exponent, double *results)
{
    double values[TF_CHUNK];
    int64_t exponents[TF_CHUNK];
    float ones[TF_CHUNK];
    for (size_t i = 0; i < n;) {
        const size_t end = n - i < TF_TOGETHER ? n : i + TF_TOGETHER;
        const int64_t here = *exponent;
        double product = *value;
        for (; i < end; i++) {
            product *= (double)numbers[i];
            values[i] = product;
            exponents[i] = here;
            ones[i] = 1;
        }
        *value = product;
        tf_normalize(value, exponent);
    }
    tf_isa->ufuncs->times_wide(ones, values, exponents, results, n);
}

/* Returns TF_INVALID if the first NaN of some results does not come from a NaN. */
static unsigned becomes_nan(double before, const float *numbers, const double *results,
                            size_t n)
{
    size_t i = 0;
    if (isnan(before) || !isnan(results[n - 1])) {
        return 0;
    }
    while (!isnan(results[i])) {
        i++;
    }
    return isnan(numbers[i]) ? 0 : TF_INVALID;
}

/* Writes a running result in float64, each step rounded to the output. Returns flags. */
static unsigned accumulate(int format, enum tf_reduction op, char *const data[3],
                           const ptrdiff_t strides[3], ptrdiff_t n)
{
    TF_BUFFER(in_buffer);
    TF_BUFFER(out_buffer);
    float numbers[TF_CHUNK], first;
    double results[TF_CHUNK];
    uint8_t marks[TF_CHUNK];
    unsigned flags = 0;
    const size_t size = tf_summand_size(format);
    memcpy(in_buffer, data[0], size);
    tf_load_summands(format, in_buffer, &first, 1);
    double value = first;
    int64_t exponent = 0;
    const char *in = data[1];
    char *out = data[2];
    if (op == TF_PROD) {
        tf_normalize(&value, &exponent);
    }
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        const double before = value;
        tf_load_summands(format, tf_gather(in, strides[1], size, count, in_buffer), numbers,
               count);
        if (op == TF_SUM) {
            run_sum(numbers, count, &value, results);
        } else {
            run_product(numbers, count, &value, &exponent, results);
        }
        flags |= becomes_nan(before, numbers, results, count);
        void *written = tf_target(out, strides[2], size, out_buffer);
        const struct tf_rounded rounding =
            tf_round_results(format, op, results, written, count, flags);
        flags |= rounding.flags;
        if (rounding.beyond && !(flags & TF_OVER)) {
            memset(marks, 0, count);
            flags |= tf_isa->ufuncs->mark_beyond(results, tf_first_beyond(format), marks, count)
                         ? TF_OVER
                         : 0;
        }
        tf_scatter(written, out, strides[2], size, count);
        in += (ptrdiff_t)count * strides[1];
        out += (ptrdiff_t)count * strides[2];
    }
    return flags;
}

/* -- a ufunc's call ----------------------------------------------------------------- */

/* Does float32's own operation, element by element. */
static void elementwise_single(enum tf_binary_op op, char *const data[3],
                               const ptrdiff_t strides[3], ptrdiff_t n)
{
    TF_BUFFER(a_buffer);
    TF_BUFFER(b_buffer);
    TF_BUFFER(out_buffer);
    const size_t size = sizeof(float);
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        const float *a =
            tf_gather(data[0] + done * strides[0], strides[0], size, count, a_buffer);
        const float *b =
            tf_gather(data[1] + done * strides[1], strides[1], size, count, b_buffer);
        char *out = data[2] + done * strides[2];
        float *r = tf_target(out, strides[2], size, out_buffer);
        tf_isa->ufuncs->binary_f32[op](a, b, r, count);
        tf_isa->formats->canonical_nans(r, count);
        tf_scatter(r, out, strides[2], size, count);
    }
}

/* NumPy calls the loop for five kinds of calls, which the arguments distinguish:
 *
 *     call                data[0], data[2]    strides[0], [2]    and
 *     c = a + b           two addresses       any; also a.cumsum() of two elements
 *     a += b              one address         equal              no `partials`
 *     a.sum(axis)         one address         equal              `partials`
 *     a.cumsum()          [2] one step on     equal
 *     add.at(a, i, b)     one address, one    strides[1] is 0    n is 1, and NumPy asked
 *                         element per call    too                for no initial value */
enum numpy_call {
    ELEMENTWISE, /* the first two and the last, whose address may be a buffer's */
    REDUCTION,
    ACCUMULATION
};

static enum numpy_call numpy_call_of(const struct tf_partials *partials,
                                     char *const data[3], const ptrdiff_t strides[3],
                                     ptrdiff_t n)
{
    const int at = partials && !partials->is_reduction && n == 1 && strides[0] == 0 &&
                   strides[1] == 0;
    if (at || strides[0] != strides[2]) {
        return ELEMENTWISE;
    }
    if (data[0] == data[2]) {
        return partials ? REDUCTION : ELEMENTWISE;
    }
    return data[2] == data[0] + strides[0] && n > 1 ? ACCUMULATION : ELEMENTWISE;
}

static int reduce(int format, enum tf_reduction op, struct tf_partials *partials,
                  char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n)
{
    struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    const int failed =
        tf_reduce_into_pages(format, op, partials, data, strides, n, &flags);
    /* Only the last step decides whether the reduction overflows. */
    if (partials->raised & TF_OVER) {
        tf_fp_forget(&saved, TF_OVER);
    }
    partials->raised = partials->overflowed > 0 ? TF_OVER : 0;
    tf_fp_end(saved, flags | partials->raised);
    return failed;
}

int tf_reduce(int format, enum tf_reduction op, struct tf_partials *partials,
              char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n)
{
    const enum tf_binary_op elementwise = op == TF_SUM ? TF_ADD : TF_MULTIPLY;
    switch (numpy_call_of(partials, data, strides, n)) {
    case REDUCTION: return reduce(format, op, partials, data, strides, n);
    case ACCUMULATION: {
        const struct tf_fp saved = tf_fp_begin();
        tf_fp_end(saved, accumulate(format, op, data, strides, n));
        break;
    }
    case ELEMENTWISE:
        if (format == TF_REDUCE_FLOAT32) {
            elementwise_single(elementwise, data, strides, n);
        } else {
            tf_binary(format, elementwise, data, strides, n);
        }
    }
    return 0;
}

/* -- all rows at once --------------------------------------------------------------- */

/* Returns whether some columns of rows contain an infinity. */
static int have_infinity(int format, const char *in, ptrdiff_t step, ptrdiff_t rows, size_t n)
{
    int found = 0;
    for (ptrdiff_t row = 0; row < rows && !found; row++, in += step) {
        float numbers[TF_CHUNK];
        tf_load_summands(format, in, numbers, n);
        found = tf_has_infinity(numbers, n);
    }
    return found;
}

static int have_nan(const double *sums, size_t n)
{
    size_t i = 0;
    while (i < n && sums[i] == sums[i]) {
        i++;
    }
    return i < n;
}

static int leave_range(int format, const double *sums, size_t n)
{
    uint8_t marks[TF_CHUNK] = {0};
    return tf_isa->ufuncs->mark_beyond(sums, tf_first_beyond(format), marks, n) > 0;
}

int tf_sum_rows(int format, const char *in, char *out, ptrdiff_t outer, ptrdiff_t rows,
                ptrdiff_t columns, unsigned *flags)
{
    const ptrdiff_t size = (ptrdiff_t)tf_summand_size(format);
    const struct tf_fp saved = tf_fp_begin();
    int done = 1;
    for (ptrdiff_t i = 0; done && i < outer; i++, in += rows * columns * size) {
        for (ptrdiff_t j = 0, run; done && j < columns; j += run, out += run * size) {
            double sums[TF_CHUNK] = {0};
            float numbers[TF_CHUNK];
            run = tf_min_size(columns - j, TF_CHUNK);
            for (ptrdiff_t row = 0; row < rows; row++) {
                const char *items = in + (row * columns + j) * size;
                tf_load_summands(format, items, numbers, (size_t)run);
                tf_isa->ufuncs->add_wide(numbers, sums, (size_t)run);
            }
            const struct tf_rounded rounding =
                tf_round_results(format, TF_SUM, sums, out, (size_t)run, 0);
            *flags |= rounding.flags;
            if (rounding.beyond) {
                *flags |= leave_range(format, sums, (size_t)run) ? TF_OVER : 0;
                /* If infinities make NaN, the flags depend on the order of rows. If NaN
                 * counts as nothing, the order decides which NaN is first. */
                done = !have_nan(sums, (size_t)run) ||
                       (!tf_sum_begins_with_nan(format) &&
                        !have_infinity(format, in + j * size, columns * size, rows,
                                       (size_t)run));
            }
        }
    }
    tf_fp_end(saved, 0);
    return done;
}
