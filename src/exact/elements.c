/* Chosen elements of a product of rows. Each task does a group of them, whose rows it
 * converts if they are not float64 numbers that adjoin. */
#include "exact/elements.h"

#include <math.h>
#include <string.h>

#include "exact/accumulator.h"
#include "exact/kernels.h"
#include "runtime/kernel_table.h"
#include "runtime/sizes.h"
#include "runtime/thread_pool.h"

enum {
    GROUP = 64,     /* elements of a task, at most */
    TASK = 1 << 15, /* products of a task, at most, unless one element has more */
    PART = 4096,    /* products of a row that are converted and added at a time */
    SHARE = 1 << 17 /* products that are enough for one thread */
};

/* The scratch memory of a thread. */
struct room {
    double x[PART], y[PART];
    double sums[2][GROUP], errors[GROUP], ratios[GROUP], results[GROUP];
    int64_t exponents[GROUP];
    uint8_t undecided[GROUP];
};

/* Returns n numbers of a row, in `room` if they are not contiguous float64. */
static const double *part_of(const struct tf_exact_matrix *x, size_t row, size_t at,
                             size_t n, double *room)
{
    const char *items =
        x->items + (ptrdiff_t)row * x->strides[0] + (ptrdiff_t)at * x->strides[1];
    if (!x->is_float && x->strides[1] == sizeof *room &&
        (uintptr_t)items % sizeof *room == 0) {
        return (const double *)(const void *)items;
    }
    tf_isa->exact->load(items, x->strides[0], x->strides[1], 1, n, room, x->is_float);
    return room;
}

/* Writes sums[0] + sums[GROUP], the dot product of two rows. The sums of P parts are added
 * with an error of at most 2 P (576 + P) (2^-53)^2 of the norms, for which the caller's
 * bound has 5 % to spare: P is 1 for up to PART products, and this error is 0. */
static void add_dot(const struct tf_exact_elements *call, size_t i, size_t j,
                    struct room *room, double *sums)
{
    const struct tf_exact_matrix *x = &call->x.operand, *y = &call->y.operand;
    double sum = 0, rest = 0;
    for (size_t at = 0; at < x->k; at += PART) {
        const size_t n = tf_min_size(PART, (ptrdiff_t)(x->k - at));
        double part[2];
        tf_isa->exact->dot(part_of(x, i, at, n, room->x), part_of(y, j, at, n, room->y), n,
                           part);
        const double before = sum, after = before + part[0], share = after - before;
        rest += ((before - (after - share)) + (part[0] - share)) + part[1];
        sum = after;
    }
    sums[0] = sum;
    sums[GROUP] = rest;
}

/* Writes a result by an exact sum. Returns -1 if the call was stopped. */
static int add_exactly(const struct tf_exact_elements *call, size_t i, size_t j, size_t at,
                       struct room *room, struct tf_worker *worker)
{
    const struct tf_exact_matrix *x = &call->x.given, *y = &call->y.given;
    struct tf_accumulator sum;
    tf_accumulator_clear(&sum);
    for (size_t first = 0; first < x->k; first += PART) {
        const size_t n = tf_min_size(PART, (ptrdiff_t)(x->k - first));
        if (tf_worker_stops(worker)) {
            return -1;
        }
        tf_accumulator_add_products(&sum, part_of(x, i, first, n, room->x),
                                    part_of(y, j, first, n, room->y), n);
    }
    tf_exact_write(&call->results, at, tf_accumulator_value(&sum));
    return 0;
}

static double lost_of(struct tf_exact_side side, size_t row)
{
    return side.lost ? side.lost[row] : 0;
}

static int64_t exponent_of(struct tf_exact_side side, size_t row)
{
    return side.exponents ? side.exponents[row] : 0;
}

static int is_special(struct tf_exact_side side, size_t row)
{
    return side.special && side.special[row];
}

/* Computes sums and their bounds, and rounds them. */
static void round_group(const struct tf_exact_elements *call, const int64_t *pairs,
                        size_t count, struct room *room)
{
    for (size_t p = 0; p < count; p++) {
        const size_t i = (size_t)pairs[2 * p], j = (size_t)pairs[2 * p + 1];
        const double one = call->x.norms[i], other = call->y.norms[j];
        add_dot(call, i, j, room, room->sums[0] + p);
        room->errors[p] = (one * other * call->error + lost_of(call->x, i) * other +
                           one * lost_of(call->y, j)) *
                          (1 + 0x1p-40);
        room->ratios[p] = (double)INFINITY;
        room->exponents[p] = exponent_of(call->x, i) + exponent_of(call->y, j);
    }
    const double once = 1;
    const struct tf_row_of_sums sums = {
        .n = count,
        .terms = room->sums[0],
        .count = 2,
        .term_step = GROUP,
        .row_bounds = &once,
        .column_bounds = room->errors,
        .ranks = 1,
        .row_ratio = 1,
        .column_ratios = room->ratios,
        .column_exponents = call->x.exponents || call->y.exponents ? room->exponents : NULL,
    };
    tf_isa->exact->round(&sums, call->results.rounding, call->results.is_float,
                         room->results, room->undecided);
}

static size_t each_of(size_t k)
{
    return tf_min_size(GROUP, (ptrdiff_t)(TASK / (k + 1) + 1));
}

static unsigned compute_group(const void *context, ptrdiff_t task, struct tf_worker *worker)
{
    struct tf_exact_elements *call = (struct tf_exact_elements *)context;
    const size_t each = each_of(call->x.given.k), first = (size_t)task * each;
    const size_t count = tf_min_size((ptrdiff_t)each, (ptrdiff_t)(call->count - first));
    const int64_t *pairs = call->pairs + 2 * first;
    const size_t itemsize = call->results.is_float ? sizeof(float) : sizeof(double);
    struct room *room = worker->scratch;
    if (tf_worker_stops(worker)) {
        return 0;
    }
    round_group(call, pairs, count, room);
    size_t exact = 0;
    for (size_t p = 0; p < count; p++) {
        const size_t i = (size_t)pairs[2 * p], j = (size_t)pairs[2 * p + 1];
        const size_t at = call->row ? i * call->row + j : first + p;
        if (!room->undecided[p] && !is_special(call->x, i) && !is_special(call->y, j)) {
            memcpy((char *)call->results.data + at * itemsize,
                   (const char *)room->results + p * itemsize, itemsize);
            continue;
        }
        exact++;
        if (add_exactly(call, i, j, at, room, worker) < 0) {
            return 0;
        }
    }
    atomic_fetch_add(&call->sums, exact);
    return 0;
}

int tf_exact_compute(struct tf_exact_elements *call)
{
    const size_t k = call->x.given.k, each = each_of(k);
    unsigned flags = 0;
    return tf_do_tasks(compute_group, call, (ptrdiff_t)((call->count + each - 1) / each),
                       tf_threads_for((double)call->count * (double)(k + 64) / SHARE), &flags);
}
