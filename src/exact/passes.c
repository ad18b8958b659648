/* Passes over the rows of matrices: tasks of a few rows each, for threads. */
#include "exact/passes.h"

#include "runtime/asserts.h"
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
    double *rest;
    char *slice;
    size_t k;
    int is_float;
    const int64_t *exponents;
    double *norms;
};

static void slice_rows(const void *context, size_t first, size_t end)
{
    const struct slice_call *call = context;
    for (size_t i = first; i < end; i++) {
        const size_t itemsize = call->is_float ? sizeof(float) : sizeof(double);
        tf_isa->exact->slice(call->rest + i * call->k, call->slice + i * call->k * itemsize,
                             call->k, (int)call->exponents[i], call->is_float,
                             call->norms + 2 * i);
    }
}

int tf_exact_slice(double *rest, void *slice, size_t m, size_t k, int is_float,
                   const int64_t *exponents, double *norms)
{
    const struct slice_call call = {rest, slice, k, is_float, exponents, norms};
    return do_pass(slice_rows, &call, m, k, 1);
}

/* -- rounding ------------------------------------------------------------------------ */

/* Appends the places of undecided sums, which are in row i from column j on. */
static void append(struct tf_exact_rounding *call, const uint8_t *undecided, size_t count,
                   size_t i, size_t j)
{
    size_t at = atomic_fetch_add(&call->left, count);
    for (; count && at < call->most; undecided++, j++) {
        if (*undecided) {
            call->pairs[2 * at] = (int64_t)i;
            call->pairs[2 * at + 1] = (int64_t)j;
            at++;
            count--;
        }
    }
}

void tf_exact_round_tile(const void *context, const double *sums, size_t ld, size_t i,
                         size_t j, size_t rows, size_t columns)
{
    struct tf_exact_rounding *call = (struct tf_exact_rounding *)context;
    const size_t itemsize = call->is_float ? sizeof(float) : sizeof(double);
    uint8_t undecided[TF_EXACT_COLUMNS];
    TF_ASSERT(columns <= TF_EXACT_COLUMNS);
    struct tf_row_of_sums row = call->first;
    row.n = columns;
    row.row_bounds += i;
    row.column_bounds += j;
    row.column_ratios += j;
    row.column_exponents += row.column_exponents ? j : 0;
    for (const size_t end = i + rows; i < end; i++, sums += ld, row.row_bounds++) {
        row.terms = sums;
        row.row_ratio = call->row_ratios[i];
        row.row_exponent = call->row_exponents ? call->row_exponents[i] : 0;
        char *results = (char *)call->results + (i * call->first.n + j) * itemsize;
        const size_t left = tf_isa->exact->round(&row, call->rounding, call->is_float,
                                                 results, undecided);
        if (left) {
            append(call, undecided, left, i, j);
        }
    }
}

static void round_rows(const void *context, size_t first, size_t end)
{
    const struct tf_exact_rounding *call = context;
    const size_t n = call->first.n;
    for (size_t j = 0; j < n; j += TF_EXACT_COLUMNS) {
        const size_t columns = n - j < TF_EXACT_COLUMNS ? n - j : TF_EXACT_COLUMNS;
        tf_exact_round_tile(call, call->first.terms + first * n + j, n, first, j,
                            end - first, columns);
    }
}

int tf_exact_round(struct tf_exact_rounding *call)
{
    return do_pass(round_rows, call, call->m, call->first.n, 1);
}
