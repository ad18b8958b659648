/* Passes over the rows of matrices: tasks of a few rows each, for threads. */
#include "exact/passes.h"

#include <stdatomic.h>

#include "runtime/kernel_table.h"
#include "runtime/sizes.h"
#include "runtime/thread_pool.h"

enum {
    TASK = 1 << 16, /* elements of a task */
    SHARE = 1 << 17 /* elements that are enough for one thread */
};

/* Does rows [first, end) of a pass. */
typedef void rows_fn(const void *context, size_t first, size_t end);

struct pass {
    rows_fn *rows;
    const void *context;
    size_t count, each; /* all rows; rows of a task */
};

static unsigned do_rows(const void *context, ptrdiff_t task, struct tf_worker *worker)
{
    (void)worker;
    const struct pass *pass = context;
    const size_t first = (size_t)task * pass->each;
    const size_t left = pass->count - first;
    pass->rows(pass->context, first, first + (left < pass->each ? left : pass->each));
    return 0;
}

/* Does all rows of a pass, in tasks of a multiple of `together` rows. */
static int do_pass(rows_fn *rows, const void *context, size_t count, size_t length,
                   size_t together)
{
    const size_t each = (TASK / (length + 1) / together + 1) * together;
    const struct pass pass = {rows, context, count, each};
    unsigned flags = 0;
    return tf_do_tasks(do_rows, &pass, (ptrdiff_t)((count + each - 1) / each),
                       tf_threads_for((double)count * (double)length / SHARE), &flags);
}

/* -- loads --------------------------------------------------------------------------- */

struct load_call {
    struct tf_exact_matrix given;
    double *rows;
    struct tf_row_facts *facts;
};

static void load_rows(const void *context, size_t first, size_t end)
{
    const struct load_call *call = context;
    const struct tf_exact_matrix *given = &call->given;
    double *rows = call->rows + first * given->k;
    tf_isa->exact->load(given->items + (ptrdiff_t)first * given->strides[0],
                        given->strides[0], given->strides[1], end - first, given->k, rows,
                        given->is_float);
    for (size_t i = first; i < end; i++, rows += given->k) {
        call->facts[i] = tf_isa->exact->facts(rows, given->k);
    }
}

int tf_exact_load(struct tf_exact_matrix given, double *rows, struct tf_row_facts *facts)
{
    const struct load_call call = {given, rows, facts};
    return do_pass(load_rows, &call, given.m, given.k, 16);
}

/* -- slices -------------------------------------------------------------------------- */

struct slice_call {
    double *rest, *slice;
    size_t k;
    const int64_t *exponents;
    double *norms;
};

static void slice_rows(const void *context, size_t first, size_t end)
{
    const struct slice_call *call = context;
    for (size_t i = first; i < end; i++) {
        tf_isa->exact->slice(call->rest + i * call->k, call->slice + i * call->k, call->k,
                             (int)call->exponents[i], call->norms + 2 * i);
    }
}

int tf_exact_slice(double *rest, double *slice, size_t m, size_t k,
                   const int64_t *exponents, double *norms)
{
    const struct slice_call call = {rest, slice, k, exponents, norms};
    return do_pass(slice_rows, &call, m, k, 1);
}

/* -- compensated dot products ---------------------------------------------------------- */

struct dots_call {
    const double *x, *y;
    size_t k;
    const int64_t *pairs;
    double *sums;
};

static void compensate(const void *context, size_t first, size_t end)
{
    const struct dots_call *call = context;
    for (size_t i = first; i < end; i++) {
        tf_isa->exact->dot(call->x + (size_t)call->pairs[2 * i] * call->k,
                           call->y + (size_t)call->pairs[2 * i + 1] * call->k, call->k,
                           call->sums + 2 * i);
    }
}

int tf_exact_compensate(const double *x, const double *y, size_t k, const int64_t *pairs,
                        size_t count, double *sums)
{
    const struct dots_call call = {x, y, k, pairs, sums};
    return do_pass(compensate, &call, count, k, 1);
}

/* -- rounding ------------------------------------------------------------------------ */

struct rounding_call {
    const struct tf_exact_rounding *given;
    atomic_size_t *undecided;
};

static void round_rows(const void *context, size_t first, size_t end)
{
    const struct rounding_call *call = context;
    const struct tf_exact_rounding *given = call->given;
    const size_t itemsize = given->is_float ? sizeof(float) : sizeof(double);
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        struct tf_row_of_sums row = given->first;
        const size_t at = i * row.n;
        row.terms += at;
        row.row_bounds += i;
        row.row_ratio = given->row_ratios[i];
        row.row_exponent = given->row_exponents ? given->row_exponents[i] : 0;
        count += tf_isa->exact->round(&row, given->rounding, given->is_float,
                                      (char *)given->results + at * itemsize,
                                      given->undecided + at);
    }
    atomic_fetch_add(call->undecided, count);
}

int tf_exact_round(const struct tf_exact_rounding *given, size_t *count)
{
    atomic_size_t undecided = 0;
    const struct rounding_call call = {given, &undecided};
    const int failed = do_pass(round_rows, &call, given->m, given->first.n, 1);
    *count = atomic_load(&undecided);
    return failed;
}
