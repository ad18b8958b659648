/* Exact dot products and sums, each rounded once. A row is added in steps, between which
 * the call may be stopped. Each thread does a few rows at a time. */
#include "exact/sums.h"

#include "exact/accumulator.h"
#include "runtime/sizes.h"
#include "runtime/thread_pool.h"

enum {
    STEP = 1 << 16, /* terms that are added without asking whether to stop */
    SHARE = 1 << 16 /* terms that are enough for one thread */
};

struct call {
    const char *x;
    const double *y;        /* NULL for sums */
    const int64_t *pairs;   /* of rows, for dot products */
    ptrdiff_t step, along;  /* of sums */
    size_t length, count;   /* of a row; number of results */
    size_t rows;            /* of a task */
    struct tf_exact_results results;
};

static void add_step(const struct call *call, size_t i, size_t at, size_t n,
                     struct tf_accumulator *sum)
{
    if (call->y) {
        const double *x = (const double *)call->x;
        tf_accumulator_add_products(
            sum, x + (size_t)call->pairs[2 * i] * call->length + at,
            call->y + (size_t)call->pairs[2 * i + 1] * call->length + at, n);
    } else {
        const char *x = call->x + (ptrdiff_t)i * call->step + (ptrdiff_t)at * call->along;
        tf_accumulator_add(sum, (const double *)x, call->along, n);
    }
}

static unsigned add_rows(const void *context, ptrdiff_t task, struct tf_worker *worker)
{
    const struct call *call = context;
    const size_t first = (size_t)task * call->rows;
    const size_t end = first + tf_min_size((ptrdiff_t)call->rows,
                                           (ptrdiff_t)(call->count - first));
    struct tf_accumulator sum;
    for (size_t i = first; i < end; i++) {
        tf_accumulator_clear(&sum);
        for (size_t at = 0; at < call->length; at += STEP) {
            if (tf_worker_stops(worker)) {
                return 0;
            }
            const size_t left = call->length - at;
            add_step(call, i, at, left < STEP ? left : STEP, &sum);
        }
        const struct tf_value value = tf_accumulator_value(&sum);
        const struct tf_exact_results *results = &call->results;
        if (results->is_float) {
            ((float *)results->data)[i] = tf_round_to_float(value, results->rounding);
        } else {
            ((double *)results->data)[i] = tf_round_to_double(value, results->rounding);
        }
    }
    return 0;
}

static int add_all(struct call *call)
{
    const size_t rows = STEP / 4 / (call->length + 64) + 1; /* clearing counts as terms */
    call->rows = rows;
    unsigned flags = 0;
    return tf_do_tasks(add_rows, call, (ptrdiff_t)((call->count + rows - 1) / rows),
                       tf_threads_for((double)call->count * (double)(call->length + 64) /
                                      SHARE),
                       &flags);
}

int tf_exact_dots(const double *x, const double *y, size_t k, const int64_t *pairs,
                  size_t count, struct tf_exact_results results)
{
    struct call call = {.x = (const char *)x, .y = y, .pairs = pairs, .length = k,
                        .count = count, .results = results};
    return add_all(&call);
}

int tf_exact_sums(const char *x, ptrdiff_t step, ptrdiff_t along, size_t n, size_t count,
                  struct tf_exact_results results)
{
    struct call call = {.x = x, .step = step, .along = along, .length = n,
                        .count = count, .results = results};
    return add_all(&call);
}
