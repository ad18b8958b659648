/* Computes one call of an inner loop: in chunks, element by element, or as a reduction. */
#include "programs/arithmetic/loops.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "programs/arithmetic/kernels.h"
#include "programs/arithmetic/ufunc_sites.h"
#include "programs/arithmetic/rounding.h"
#include "formats/kernels.h"
#include "formats/number_kinds.h"
#include "runtime/fp_environment.h"
#include "runtime/strided.h"

enum { CHUNK = TF_ROUNDED_AT_ONCE };

/* Settings are constant, one for each combination: a call uses the ones of its
 * beginning. */
struct settings {
    int format, watches;
    struct tf_grid grid;
};

static struct settings all_settings[TF_FLOAT32 + 1][2];
static const struct settings *_Atomic current;
static const void *_Atomic plan; /* if not NULL, replaces `current` */
static const void *(*find_in_plan)(const void *plan);

const void *tf_arithmetic_settings(int format, int watches)
{
    struct settings *chosen = &all_settings[format][watches != 0];
    if (chosen->grid.beyond == 0) { /* otherwise a thread may be reading it */
        *chosen = (struct settings){format, watches != 0, tf_grid_of(format)};
    }
    return chosen;
}

void tf_arithmetic_set(const void *settings)
{
    atomic_store(&current, settings);
    atomic_store(&plan, NULL); /* calls under way have read their settings before */
}

void tf_arithmetic_set_plan(const void *wanted, const void *(*find)(const void *plan))
{
    find_in_plan = find;
    atomic_store(&plan, wanted);
}

/* Returns the settings of a call from this thread's call site; NULL if it does not
 * round. */
static const struct settings *settings_here(void)
{
    const void *asked = atomic_load(&plan);
    return asked ? find_in_plan(asked) : atomic_load(&current);
}

int tf_arithmetic_is_here(void) { return settings_here() != NULL; }

void tf_arithmetic_count(const struct tf_loop *loop, size_t numbers)
{
    struct tf_loop *own = (struct tf_loop *)loop;
    atomic_fetch_add_explicit(&own->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&own->numbers, numbers, memory_order_relaxed);
}

struct tf_round_counts tf_arithmetic_take_counts(struct tf_loop *loop)
{
    return (struct tf_round_counts){
        atomic_exchange_explicit(&loop->calls, 0, memory_order_relaxed),
        atomic_exchange_explicit(&loop->numbers, 0, memory_order_relaxed)};
}

/* A call under way. */
struct run {
    const struct tf_loop *loop;
    tf_loop_fn *original;
    void *data;
    char *const *args;
    const ptrdiff_t *steps;
    size_t size; /* of a number */
    struct tf_fp saved;
    unsigned flags;
    const struct settings *settings;
    int watches;
    struct tf_figures figures;
};

/* A chunk of numbers of either type. */
typedef union {
    float singles[CHUNK];
    double doubles[CHUNK];
} numbers;

/* Calls the original loop in the floating-point environment of the caller. */
static void call_original(struct run *run, char **args, ptrdiff_t n, const ptrdiff_t *steps)
{
    tf_fp_end(run->saved, run->flags);
    run->original(args, &n, steps, run->data);
    run->saved = tf_fp_begin();
}

/* Rounds n elements of an operand to `out`. */
static void round_operand(struct run *run, const char *items, ptrdiff_t step, size_t n,
                          numbers *out)
{
    const char type = run->loop->type;
    numbers buffer;
    const void *in = tf_gather(items, step, run->size, n, &buffer);
    run->flags |= tf_round_numbers(run->settings->format, type, in, out, n);
    if (run->watches) {
        tf_isa->arithmetic->observe_operands(&run->settings->grid, type, in, out, n,
                                             &run->figures);
    }
}

/* Returns n elements as float64: `in` itself, or converted in `buffer`. */
static const double *widened(char type, const numbers *in, size_t n, numbers *buffer)
{
    if (type == 'd') {
        return in->doubles;
    }
    tf_isa->formats->widen(in->singles, buffer->doubles, n);
    return buffer->doubles;
}

/* -- elementwise results -------------------------------------------------------------- */

struct chunk {
    size_t at, n;
    numbers in[TF_LOOP_INPUTS]; /* rounded */
    numbers out[TF_LOOP_OUTPUTS];
};

/* Returns the address of the chunk's first element in the caller's operand i. */
static char *other_operand(const struct run *run, const struct chunk *chunk, int i)
{
    return run->args[i] + (ptrdiff_t)chunk->at * run->steps[i];
}

/* Computes the reference results of a chunk, unless the type is float64, whose results
 * before rounding are in `truth` already; adds the figures of the chunk. */
static void watch_chunk(struct run *run, const struct chunk *chunk, numbers *truth)
{
    const struct tf_loop *loop = run->loop;
    numbers wide[TF_LOOP_INPUTS], result;
    int64_t unused[CHUNK];
    struct tf_observed seen = {.n = chunk->n, .adds = loop->adds};
    char *args[TF_LOOP_OPERANDS];
    ptrdiff_t steps[TF_LOOP_OPERANDS];
    for (int i = 0; i < loop->inputs; i++) {
        args[i] = other_operand(run, chunk, i);
        steps[i] = run->steps[i];
        if (loop->is_float[i]) {
            const size_t step = run->steps[i] != 0;
            const double *x = widened(loop->type, &chunk->in[i], step ? chunk->n : 1,
                                      &wide[i]);
            seen.inputs[seen.input_count] = x;
            seen.steps[seen.input_count++] = step;
            args[i] = (char *)x;
            steps[i] = step ? sizeof(double) : 0;
        }
    }
    if (loop->type == 'f') {
        const ptrdiff_t n = (ptrdiff_t)chunk->n;
        for (int i = 0; i < loop->outputs; i++) {
            const int place = loop->inputs + i;
            args[place] = loop->is_float[place] ? (char *)&truth[i] : (char *)unused;
            steps[place] = sizeof(double);
        }
        loop->wide(args, &n, steps, loop->wide_data);
    }
    for (int i = 0; i < loop->outputs; i++) {
        if (loop->is_float[loop->inputs + i]) {
            seen.truth = truth[i].doubles;
            seen.result = widened(loop->type, &chunk->out[i], chunk->n, &result);
            tf_isa->arithmetic->observe(&run->settings->grid, &seen, &run->figures);
        }
    }
}

static void compute_chunk(struct run *run, struct chunk *chunk)
{
    const struct tf_loop *loop = run->loop;
    const int operands = loop->inputs + loop->outputs;
    char *args[TF_LOOP_OPERANDS];
    ptrdiff_t steps[TF_LOOP_OPERANDS];
    for (int i = 0; i < operands; i++) {
        args[i] = other_operand(run, chunk, i);
        steps[i] = run->steps[i];
        if (loop->is_float[i] && i >= loop->inputs) {
            args[i] = (char *)&chunk->out[i - loop->inputs];
            steps[i] = (ptrdiff_t)run->size;
        } else if (loop->is_float[i]) {
            /* Round a scalar operand (of step 0) only once, in the first chunk. */
            if (steps[i] != 0 || chunk->at == 0) {
                round_operand(run, args[i], steps[i], steps[i] ? chunk->n : 1,
                              &chunk->in[i]);
            }
            args[i] = (char *)&chunk->in[i];
            steps[i] = steps[i] ? (ptrdiff_t)run->size : 0;
        }
    }
    call_original(run, args, (ptrdiff_t)chunk->n, steps);
}

static void round_results(struct run *run, struct chunk *chunk)
{
    const struct tf_loop *loop = run->loop;
    for (int i = 0; i < loop->outputs; i++) {
        const int place = loop->inputs + i;
        if (loop->is_float[place]) {
            numbers *out = &chunk->out[i];
            run->flags |= tf_round_numbers(run->settings->format, loop->type, out, out,
                                           chunk->n);
            tf_copy(run->size, other_operand(run, chunk, place), run->steps[place],
                    (const char *)out, (ptrdiff_t)run->size, chunk->n);
        }
    }
}

/* Rounds the results of a chunk, and adds its figures. It is not inlined, so that do_all
 * does not need stack for `truth`. */
static __attribute__((noinline)) void round_and_watch(struct run *run, struct chunk *chunk)
{
    numbers truth[TF_LOOP_OUTPUTS];
    if (run->loop->type == 'd') {
        for (int i = 0; i < run->loop->outputs; i++) {
            memcpy(&truth[i], &chunk->out[i], chunk->n * sizeof(double));
        }
    }
    round_results(run, chunk);
    watch_chunk(run, chunk, truth);
}

/* Computes n results, `most` at a time: 1 for an accumulation, in which each result
 * is an operand of the next. Reads operands before it writes results, which may
 * overwrite them. */
static void do_all(struct run *run, size_t n, size_t most)
{
    struct chunk chunk;
    for (chunk.at = 0; chunk.at < n; chunk.at += chunk.n) {
        chunk.n = n - chunk.at < most ? n - chunk.at : most;
        compute_chunk(run, &chunk);
        if (run->watches) {
            round_and_watch(run, &chunk);
        } else {
            round_results(run, &chunk);
        }
    }
}

/* -- reductions
 * ------------------------------------------------------------------------- */

/* An element of either type, as loops read and write it. */
typedef union {
    float single;
    double wide;
} number;

static double value_of(char type, number x)
{
    return type == 'f' ? (double)x.single : x.wide;
}

static number number_of(char type, double x)
{
    number made;
    if (type == 'f') {
        made.single = (float)x;
    } else {
        made.wide = x;
    }
    return made;
}

/* The float64 values that a watched reduction keeps. */
struct shadow {
    double truth;    /* the reference result of a float32 reduction */
    double greatest; /* the largest magnitude of the operands; NaN if one is NaN */
};

static void watch_operands(struct run *run, const numbers *operands, size_t n,
                           struct shadow *shadow)
{
    numbers wide;
    const double *x = widened(run->loop->type, operands, n, &wide);
    for (size_t i = 0; i < n; i++) {
        const double size = fabs(x[i]);
        const int stays = size <= shadow->greatest || isnan(shadow->greatest);
        shadow->greatest = stays ? shadow->greatest : size;
    }
    if (run->loop->type == 'f') {
        char *args[] = {(char *)&shadow->truth, (char *)x, (char *)&shadow->truth};
        const ptrdiff_t steps[] = {0, sizeof(double), 0}, count = (ptrdiff_t)n;
        run->loop->wide(args, &count, steps, run->loop->wide_data);
    }
}

/* Reduces a chunk of operands onto `sum`, which is not rounded. */
static void reduce_chunk(struct run *run, size_t at, size_t n, number *sum,
                         struct shadow *shadow)
{
    numbers operands;
    round_operand(run, run->args[1] + (ptrdiff_t)at * run->steps[1], run->steps[1], n,
                  &operands);
    char *args[] = {(char *)sum, (char *)&operands, (char *)sum};
    const ptrdiff_t steps[] = {0, (ptrdiff_t)run->size, 0};
    call_original(run, args, (ptrdiff_t)n, steps);
    if (run->watches) {
        watch_operands(run, &operands, n, shadow);
    }
}

/* Returns the sum of n operands, added in pairs as NumPy adds them within one call: halves
 * them, at a multiple of 8, until at most a chunk is left. */
static double pairwise_sum(struct run *run, size_t at, size_t n, struct shadow *shadow)
{
    const char type = run->loop->type;
    if (n <= CHUNK) {
        number sum = number_of(type, -0.0);
        reduce_chunk(run, at, n, &sum, shadow);
        return value_of(type, sum);
    }
    const size_t half = n / 2 / 8 * 8;
    const double first = pairwise_sum(run, at, half, shadow);
    const double second = pairwise_sum(run, at + half, n - half, shadow);
    return value_of(type, number_of(type, first + second));
}

static void reduce(struct run *run, size_t n)
{
    const struct tf_loop *loop = run->loop;
    const char type = loop->type;
    numbers first;
    number sum;
    round_operand(run, run->args[0], 0, 1, &first);
    memcpy(&sum, &first, run->size);
    struct shadow shadow = {value_of(type, sum), fabs(value_of(type, sum))};
    if (loop->pairwise) {
        const double more = pairwise_sum(run, 0, n, &shadow);
        sum = number_of(type, value_of(type, sum) + more);
    } else {
        for (size_t at = 0; at < n; at += CHUNK) {
            reduce_chunk(run, at, n - at < CHUNK ? n - at : CHUNK, &sum, &shadow);
        }
    }
    const double truth = type == 'f' ? shadow.truth : value_of(type, sum);
    run->flags |= tf_round_numbers(run->settings->format, type, &sum, &sum, 1);
    memcpy(run->args[2], &sum, run->size);
    if (run->watches) {
        const double result = value_of(type, sum);
        const struct tf_observed seen = {.result = &result, .truth = &truth, .n = 1,
                                         .input_count = 1, .inputs = {&shadow.greatest},
                                         .adds = loop->adds};
        tf_isa->arithmetic->observe(&run->settings->grid, &seen, &run->figures);
    }
}

/* -- without a loop
 * --------------------------------------------------------------------- */

unsigned tf_arithmetic_round_all(char type, void *numbers, size_t n)
{
    const struct settings *settings = settings_here();
    const size_t size = type == 'f' ? sizeof(float) : sizeof(double);
    unsigned flags = 0;
    for (size_t at = 0; settings && at < n; at += CHUNK) {
        char *const here = (char *)numbers + at * size;
        flags |= tf_round_numbers(settings->format, type, here, here,
                                  n - at < CHUNK ? n - at : CHUNK);
    }
    return flags;
}

double tf_arithmetic_round(char type, double x, unsigned *flags)
{
    number one = number_of(type, x);
    *flags |= tf_arithmetic_round_all(type, &one, 1);
    return value_of(type, one);
}

void tf_arithmetic_watch(const struct tf_loop *loop, const double *results,
                         const double *truths, const double *given,
                         const double *operands, int count)
{
    const struct settings *settings = settings_here();
    if (!settings || !settings->watches) {
        return;
    }
    struct tf_figures figures = {.calls = 1};
    struct tf_observed seen = {.n = 1, .input_count = count, .adds = loop->adds};
    for (int i = 0; i < count; i++) {
        seen.inputs[i] = &operands[i];
    }
    tf_isa->arithmetic->observe_operands(&settings->grid, 'd', given, operands,
                                         (size_t)count, &figures);
    for (int i = 0; i < loop->outputs; i++) {
        seen.result = &results[i];
        seen.truth = &truths[i];
        tf_isa->arithmetic->observe(&settings->grid, &seen, &figures);
    }
    tf_ufunc_sites_add(loop, &figures);
}

/* -- calls
 * ------------------------------------------------------------------------------ */

static int float_outputs(const struct tf_loop *loop)
{
    int count = 0;
    for (int i = 0; i < loop->outputs; i++) {
        count += loop->is_float[loop->inputs + i];
    }
    return count;
}

int tf_arithmetic_handler(struct tf_stub *stub, struct tf_call *call)
{
    const struct tf_loop *loop = stub->facts;
    char *const *args = (char *const *)(intptr_t)call->integers[0];
    const ptrdiff_t n = *(const ptrdiff_t *)(intptr_t)call->integers[1];
    const ptrdiff_t *steps = (const ptrdiff_t *)(intptr_t)call->integers[2];
    const struct settings *settings = n > 0 ? settings_here() : NULL;
    if (!settings) {
        return 0;
    }
    struct run run = {
        .loop = loop,
        .data = (void *)(intptr_t)call->integers[3],
        .args = args,
        .steps = steps,
        .size = loop->type == 'f' ? sizeof(float) : sizeof(double),
        .settings = settings,
        .watches = settings->watches,
    };
    memcpy(&run.original, &stub->original, sizeof run.original);
    run.saved = tf_fp_begin();
    const int joins = loop->inputs == 2 && loop->outputs == 1;
    const int is_serial = joins && tf_is_serial(args, steps);
    if (is_serial && steps[0] == 0 && loop->is_float[0] && loop->is_float[1]) {
        tf_arithmetic_count(loop, 1);
        reduce(&run, (size_t)n);
    } else {
        tf_arithmetic_count(loop, (size_t)n * (size_t)float_outputs(loop));
        do_all(&run, (size_t)n, is_serial ? 1 : CHUNK);
    }
    if (run.watches) {
        run.figures.calls = 1;
        tf_ufunc_sites_add(loop, &run.figures);
    }
    tf_fp_end(run.saved, run.flags);
    return 1;
}
