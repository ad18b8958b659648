/* Passes over the rows of matrices: tasks of a few rows each, for threads. */
#include "exact/passes.h"

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
    const char *items = given->items + (ptrdiff_t)first * given->strides[0];
    if (!call->rows) {
        tf_isa->exact->facts(items, given->strides[0], given->strides[1], end - first,
                             given->k, call->facts + first, given->is_float);
        return;
    }
    double *rows = call->rows + first * given->k;
    tf_isa->exact->load(items, given->strides[0], given->strides[1], end - first, given->k,
                        rows, given->is_float);
    if (call->facts) {
        const ptrdiff_t size = sizeof *rows;
        tf_isa->exact->facts((const char *)rows, (ptrdiff_t)given->k * size, size,
                             end - first, given->k, call->facts + first, 0);
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

void tf_exact_round_tile(const void *context, const double *sums, size_t ld, size_t i,
                         size_t j, size_t rows, size_t columns)
{
    struct tf_exact_rounding *call = (struct tf_exact_rounding *)context;
    const size_t itemsize = call->is_float ? sizeof(float) : sizeof(double);
    size_t left = 0;
    struct tf_row_of_sums row = call->first;
    row.n = columns;
    row.row_bounds += i;
    row.column_bounds += j;
    row.column_ratios += j;
    row.column_exponents += row.column_exponents ? j : 0;
    for (const size_t end = i + rows; i < end; i++, sums += ld, row.row_bounds++) {
        const size_t at = i * call->first.n + j;
        row.terms = sums;
        row.row_ratio = call->row_ratios[i];
        row.row_exponent = call->row_exponents ? call->row_exponents[i] : 0;
        left += tf_isa->exact->round(&row, call->rounding, call->is_float,
                                     (char *)call->results + at * itemsize,
                                     call->undecided + at);
    }
    atomic_fetch_add(&call->left, left);
}

static void round_rows(const void *context, size_t first, size_t end)
{
    const struct tf_exact_rounding *call = context;
    const size_t n = call->first.n;
    tf_exact_round_tile(call, call->first.terms + first * n, n, first, 0, end - first, n);
}

int tf_exact_round(struct tf_exact_rounding *call)
{
    return do_pass(round_rows, call, call->m, call->first.n, 1);
}
