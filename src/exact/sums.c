/* Exact dot products and sums, each rounded once. A long row is added in steps, between
 * which the call may be stopped. Each thread does a few rows at a time.
 *
 * Sums first try twice float64's precision: a step's sum and its errors enter the
 * accumulator as two numbers, and there is a bound of the remaining error. If the result
 * depends on this error, or a sum is Inf or NaN, all terms are added one by one.
 *
 * Short rows and short dot products are added side by side, a vector of rows at a time, by
 * the test of rounding. Only undecided ones need the accumulator. */
#include "exact/sums.h"

#include <math.h>

#include "exact/accumulator.h"
#include "exact/kernels.h"
#include "runtime/kernel_table.h"
#include "runtime/sizes.h"
#include "runtime/thread_pool.h"

enum {
    STEP = 1 << 16, /* products that are added without asking whether to stop */
    TERMS = 512,    /* terms of a sum that are converted at a time */
    TOGETHER = 16,  /* rows that are converted together */
    NUMBERS = TOGETHER * TERMS,
    SHARE = 1 << 16 /* terms that are enough for one thread */
};

void tf_exact_write(const struct tf_exact_results *results, size_t i, struct tf_value value)
{
    if (results->is_float) {
        ((float *)results->data)[i] = tf_round_to_float(value, results->rounding);
    } else {
        ((double *)results->data)[i] = tf_round_to_double(value, results->rounding);
    }
}

static ptrdiff_t threads_for(size_t count, size_t terms)
{
    return tf_threads_for((double)count * (double)terms / SHARE);
}

static ptrdiff_t tasks_of(size_t count, size_t each)
{
    return (ptrdiff_t)((count + each - 1) / each);
}

/* -- short rows ------------------------------------------------------------------------ */

/* Short rows, in the scratch memory of a thread. */
struct short_rows {
    double terms[NUMBERS]; /* the first term of each row, the second term of each... */
    uint8_t undecided[NUMBERS];
};

static int are_short(size_t n) { return n > 0 && n <= TERMS; }

/* Returns the short rows of a task: whole vectors. */
static size_t short_rows_of(size_t n) { return NUMBERS / n / TOGETHER * TOGETHER; }

/* Writes the sums of `count` short rows of n terms, as results from `first` on. Marks the
 * undecided ones, and returns how many they are. */
static size_t add_short_rows(struct short_rows *rows, size_t count, size_t n, size_t first,
                             const struct tf_exact_results *results)
{
    const struct tf_row_of_sums sums = {
        .n = count, .terms = rows->terms, .count = n, .term_step = count};
    const size_t itemsize = results->is_float ? sizeof(float) : sizeof(double);
    return tf_isa->exact->round(&sums, results->rounding, results->is_float,
                                (char *)results->data + first * itemsize, rows->undecided);
}

/* -- dot products ---------------------------------------------------------------------- */

struct dots_call {
    const double *x, *y;
    size_t k;
    const int64_t *pairs;
    size_t count, each; /* all results; results of a task */
    struct tf_exact_results results;
};

/* Writes result i, unless the call is stopped. */
static void add_dot(const struct dots_call *call, size_t i, struct tf_worker *worker)
{
    const double *x = call->x + (size_t)call->pairs[2 * i] * call->k;
    const double *y = call->y + (size_t)call->pairs[2 * i + 1] * call->k;
    struct tf_accumulator sum;
    tf_accumulator_clear(&sum);
    for (size_t at = 0; at < call->k; at += STEP) {
        if (tf_worker_stops(worker)) {
            return;
        }
        const size_t rest = call->k - at;
        tf_accumulator_add_products(&sum, x + at, y + at, rest < STEP ? rest : STEP);
    }
    tf_exact_write(&call->results, i, tf_accumulator_value(&sum));
}

static unsigned add_dots(const void *context, ptrdiff_t task, struct tf_worker *worker)
{
    const struct dots_call *call = context;
    const size_t first = (size_t)task * call->each, left = call->count - first;
    const size_t count = left < call->each ? left : call->each;
    for (size_t i = 0; i < count; i++) {
        add_dot(call, first + i, worker);
    }
    return 0;
}

static unsigned add_short_dots(const void *context, ptrdiff_t task, struct tf_worker *worker)
{
    const struct dots_call *call = context;
    const size_t first = (size_t)task * call->each, left = call->count - first;
    const size_t count = left < call->each ? left : call->each;
    struct short_rows *rows = worker->scratch;
    tf_isa->exact->products(call->x, call->y, call->k, call->pairs + 2 * first, count,
                            rows->terms);
    size_t undecided = add_short_rows(rows, count, 2 * call->k, first, &call->results);
    for (size_t i = 0; undecided > 0; i++) {
        if (rows->undecided[i]) {
            add_dot(call, first + i, worker);
            undecided--;
        }
    }
    return 0;
}

int tf_exact_dots(const double *x, const double *y, size_t k, const int64_t *pairs,
                  size_t count, struct tf_exact_results results)
{
    struct dots_call call = {x, y, k, pairs, count, 0, results};
    unsigned flags = 0;
    if (are_short(2 * k)) {
        call.each = short_rows_of(2 * k);
        return tf_do_tasks(add_short_dots, &call, tasks_of(count, call.each),
                           threads_for(count, 4 * k), &flags);
    }
    call.each = STEP / 4 / (k + 64) + 1; /* clearing counts as products */
    return tf_do_tasks(add_dots, &call, tasks_of(count, call.each),
                       threads_for(count, k + 64), &flags);
}

/* -- sums ------------------------------------------------------------------------------ */

struct sums_call {
    struct tf_exact_matrix x;
    struct tf_exact_results results;
};

/* Rows that are added together, in the scratch memory of a thread. */
struct rows {
    double numbers[NUMBERS];
    struct tf_accumulator sums[TOGETHER];
    double bounds[TOGETHER]; /* of the errors of sums */
};

/* Adds a step of a row: one by one, or if `quickly` by its compensated sum. */
static void add_step(struct rows *rows, size_t row, const double *x, size_t n, int quickly)
{
    double sums[3];
    if (!quickly) {
        tf_accumulator_add(&rows->sums[row], x, sizeof *x, n);
        return;
    }
    tf_isa->exact->sum(x, n, sums);
    tf_accumulator_add(&rows->sums[row], sums, sizeof *sums, 2);
    rows->bounds[row] += sums[2];
}

/* Adds some rows from `first` on. Returns -1 if the call was stopped. */
static int add_rows(const struct tf_exact_matrix *x, size_t first, size_t count,
                    struct rows *rows, int quickly, struct tf_worker *worker)
{
    for (size_t row = 0; row < count; row++) {
        tf_accumulator_clear(&rows->sums[row]);
        rows->bounds[row] = 0;
    }
    for (size_t at = 0; at < x->k; at += TERMS) {
        const size_t left = x->k - at, n = left < TERMS ? left : TERMS;
        const char *items = x->items + (ptrdiff_t)first * x->strides[0] +
                            (ptrdiff_t)at * x->strides[1];
        if (at % STEP == 0 && tf_worker_stops(worker)) {
            return -1;
        }
        tf_isa->exact->load(items, x->strides[0], x->strides[1], count, n, rows->numbers,
                            x->is_float);
        for (size_t row = 0; row < count; row++) {
            add_step(rows, row, rows->numbers + row * n, n, quickly);
        }
    }
    return 0;
}

static int are_equal(struct tf_value x, struct tf_value y, const struct tf_exact_results *as)
{
    if (as->is_float) {
        return tf_round_to_float(x, as->rounding) == tf_round_to_float(y, as->rounding);
    }
    return tf_round_to_double(x, as->rounding) == tf_round_to_double(y, as->rounding);
}

/* Writes the result of a row if its bound decides; returns whether it does. */
static int decide(struct tf_accumulator *sum, double bound,
                  const struct tf_exact_results *results, size_t i)
{
    const double off[2] = {-bound, 2 * bound};
    if (!isfinite(sum->special) || !(bound < INFINITY)) {
        return 0;
    }
    if (bound == 0) {
        tf_exact_write(results, i, tf_accumulator_value(sum));
        return 1;
    }
    tf_accumulator_add(sum, &off[0], sizeof *off, 1);
    const struct tf_value low = tf_accumulator_value(sum);
    tf_accumulator_add(sum, &off[1], sizeof *off, 1);
    const struct tf_value high = tf_accumulator_value(sum);
    if (low.significand == 0 || high.significand == 0 || low.negative != high.negative ||
        !are_equal(low, high, results)) {
        return 0;
    }
    tf_exact_write(results, i, low);
    return 1;
}

static unsigned add_some(const void *context, ptrdiff_t task, struct tf_worker *worker)
{
    const struct sums_call *call = context;
    const size_t first = (size_t)task * TOGETHER, left = call->x.m - first;
    const size_t count = left < TOGETHER ? left : TOGETHER;
    struct rows *rows = worker->scratch;
    int undecided = 0;
    if (add_rows(&call->x, first, count, rows, 1, worker) < 0) {
        return 0;
    }
    for (size_t row = 0; row < count; row++) {
        undecided |= !decide(&rows->sums[row], rows->bounds[row], &call->results, first + row);
    }
    if (undecided && add_rows(&call->x, first, count, rows, 0, worker) == 0) {
        for (size_t row = 0; row < count; row++) {
            tf_exact_write(&call->results, first + row, tf_accumulator_value(&rows->sums[row]));
        }
    }
    return 0;
}

static unsigned add_short(const void *context, ptrdiff_t task, struct tf_worker *worker)
{
    const struct sums_call *call = context;
    const struct tf_exact_matrix *x = &call->x;
    const size_t each = short_rows_of(x->k), first = (size_t)task * each;
    const size_t left = x->m - first, count = left < each ? left : each;
    struct short_rows *rows = worker->scratch;
    tf_isa->exact->load(x->items + (ptrdiff_t)first * x->strides[0], x->strides[1],
                        x->strides[0], x->k, count, rows->terms, x->is_float);
    size_t undecided = add_short_rows(rows, count, x->k, first, &call->results);
    for (size_t i = 0; undecided > 0; i++) {
        if (rows->undecided[i]) {
            struct tf_accumulator sum;
            tf_accumulator_clear(&sum);
            tf_accumulator_add(&sum, rows->terms + i, (ptrdiff_t)(count * sizeof(double)),
                               x->k);
            tf_exact_write(&call->results, first + i, tf_accumulator_value(&sum));
            undecided--;
        }
    }
    return 0;
}

int tf_exact_sums(struct tf_exact_matrix x, struct tf_exact_results results)
{
    const struct sums_call call = {x, results};
    unsigned flags = 0;
    if (are_short(x.k)) {
        return tf_do_tasks(add_short, &call, tasks_of(x.m, short_rows_of(x.k)),
                           threads_for(x.m, x.k), &flags);
    }
    return tf_do_tasks(add_some, &call, tasks_of(x.m, TOGETHER),
                       threads_for(x.m, x.k + 64), &flags);
}
