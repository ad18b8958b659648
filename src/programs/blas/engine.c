/* Decides whether a caught call runs in a precision, computes it, and calls the watcher. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */

#include "programs/blas/engine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs/blas/interrupts.h"

static _Atomic uint64_t lost;

uint64_t tf_blas_lost(void) { return atomic_load(&lost); }

/* This thread's call of an entry came by a slot, whose handler has judged the call. */
static _Thread_local int was_judged __attribute__((tls_model("initial-exec")));

static _Thread_local int is_aside __attribute__((tls_model("initial-exec")));

void tf_blas_step_aside(int aside) { is_aside = aside; }
int tf_blas_is_aside(void) { return is_aside; }

static _Atomic(tf_blas_mode_fn *) mode_finder;
static _Atomic(const struct tf_blas_mode *) outer_mode;
static _Atomic(tf_blas_place_fn *) place_finder;
static _Atomic(const struct tf_blas_watcher *) watcher;

void tf_blas_set_mode_finder(tf_blas_mode_fn *find) { atomic_store(&mode_finder, find); }
void tf_blas_set_outer_mode(const struct tf_blas_mode *mode)
{
    atomic_store(&outer_mode, mode);
}
void tf_blas_set_places(tf_blas_place_fn *find) { atomic_store(&place_finder, find); }
void tf_blas_set_watcher(const struct tf_blas_watcher *one) { atomic_store(&watcher, one); }
int tf_blas_is_watched(void)
{
    return atomic_load_explicit(&watcher, memory_order_relaxed) != NULL;
}

static const struct tf_blas_mode *current_mode(void)
{
    tf_blas_mode_fn *find = atomic_load_explicit(&mode_finder, memory_order_relaxed);
    return find ? find() : NULL;
}

int tf_blas_is_outer(const struct tf_blas_mode *mode)
{
    return mode == atomic_load_explicit(&outer_mode, memory_order_relaxed);
}

const struct tf_blas_mode *tf_blas_mode_here(const struct tf_blas_mode *mode,
                                             const void *_Atomic *last,
                                             const struct tf_operands_seen *seen)
{
    tf_blas_place_fn *find = atomic_load_explicit(&place_finder, memory_order_relaxed);
    return find && (mode->plan || tf_blas_is_outer(mode)) ? find(mode, last, seen) : mode;
}

enum tf_blas_fate tf_blas_fate_of_obeying(const struct tf_blas_mode *mode)
{
    const int has_outer = atomic_load_explicit(&outer_mode, memory_order_relaxed) != NULL;
    return has_outer && !tf_blas_is_outer(mode) ? TF_OBEYED_OTHER : TF_OBEYED;
}

enum tf_blas_fate tf_blas_fate_of(const struct tf_blas_mode **in_force,
                                  const void *_Atomic *last,
                                  const struct tf_operands_seen *seen, char type,
                                  ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    const struct tf_blas_mode *mode = *in_force;
    const int is_double = type == 'd' || type == 'z';
    if (!mode) {
        return TF_NO_PRECISION;
    }
    const enum tf_blas_fate fate =
        is_double && !mode->float64                    ? TF_IS_FLOAT64
        : tf_blas_is_complex(type) && !mode->complex64 ? TF_IS_COMPLEX
        : m == 1 && n == 1 && !mode->dots              ? TF_IS_DOT
        : k < mode->min_size                           ? TF_IS_SHORT
        : mode->products && !mode->products->can_multiply() ? TF_IS_FOREIGN
                                                            : TF_OBEYED;
    if (fate != TF_OBEYED) {
        return fate;
    }
    const struct tf_blas_mode *here = tf_blas_mode_here(mode, last, seen);
    if (!here) {
        return TF_IS_OUTSIDE;
    }
    *in_force = here;
    return TF_OBEYED;
}

/* -- products ---------------------------------------------------------------------- */

/* The number of calls of BLAS that this thread has made. */
static _Thread_local unsigned caught __attribute__((tls_model("initial-exec")));

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The decision about a call: either all products of a batch run in the precision, or
 * none. */
struct verdict {
    const struct tf_blas_mode *mode; /* that of the call site after the first TF_OBEYED */
    const void *_Atomic *last_place;
    enum tf_blas_fate fate;
    struct tf_blas_sizes sizes; /* of the first product; multiply_adds of all */
    ptrdiff_t count;
};

static int judge(void *context, const struct tf_blas_product *product)
{
    struct verdict *verdict = context;
    const double before = verdict->sizes.multiply_adds;
    if (verdict->count++ == 0) {
        verdict->sizes = (struct tf_blas_sizes){product->m, product->n, product->k, 0};
    }
    verdict->sizes.multiply_adds = before + tf_blas_multiply_adds(product);
    if (verdict->fate == TF_OBEYED) {
        const struct tf_operands_seen seen = {.product = product};
        verdict->fate = tf_blas_fate_of(&verdict->mode, verdict->last_place, &seen,
                                        product->type, product->m, product->n, product->k);
    }
    return 0;
}

/* Fills in the verdict. Returns -1 if there is no product, or if BLAS refuses the call. */
static int judge_call(const struct tf_blas_target *target,
                      const struct tf_blas_arguments *arguments, struct verdict *verdict)
{
    if (tf_blas_read_sizes(&target->name, arguments, &verdict->sizes) == 0) {
        const struct tf_operands_seen seen = {.name = &target->name, .arguments = arguments};
        verdict->count = 1;
        verdict->fate = tf_blas_fate_of(&verdict->mode, verdict->last_place, &seen,
                                        target->name.type, verdict->sizes.m,
                                        verdict->sizes.n, verdict->sizes.k);
        return 0;
    }
    if (tf_blas_take_apart(&target->name, arguments, judge, verdict) != 0) {
        return -1;
    }
    return verdict->count ? 0 : -1;
}

static int compute(void *context, const struct tf_blas_product *product)
{
    const struct tf_blas_mode *mode = context;
    struct tf_blas_product chosen = *product;
    chosen.products = mode->products;
    return tf_blas_compute(&mode->device.precision, &chosen);
}

/* Computes the products of a call in its precision. Returns 0; TF_STOPPED if a signal
 * stopped them; -1 if memory was short; -2 if BLAS refuses the call. */
static int obey(const struct tf_blas_target *target,
                const struct tf_blas_arguments *arguments, const struct verdict *verdict)
{
    /* Do not stop calls of LAPACK, which would continue with undefined results, maybe
     * long. */
    tf_blas_begin_stops(!target->inner);
    const int status =
        tf_blas_take_apart(&target->name, arguments, compute, (void *)verdict->mode);
    tf_blas_end_stops();
    if (status == -1 && verdict->count > 1) {
        /* Some results may have overwritten their operands. */
        fputs("tf32dtype: no memory for a batch of products\n", stderr);
        abort();
    }
    return status;
}

/* Puts a value where the ABI returns it: each component of a complex value in a register of
 * its own, except that complex64 on x86-64 is in one register. */
static void put_value(struct tf_call *call, char type, const char *value)
{
#if defined(__aarch64__)
    const size_t part = type == 'z' ? 8 : type == 'c' ? 4 : 0;
#else
    const size_t part = type == 'z' ? 8 : 0;
#endif
    memcpy(call->floating[0], value, sizeof call->floating[0]);
    memcpy(call->floating[1], value + part, part);
}

static void make_call(const struct tf_blas_target *target, struct tf_call *call)
{
    if (target->entry) {
        tf_call_twin(target->entry, call);
        return;
    }
    was_judged = target->leads_to_entry;
    tf_stub_call(call);
}

/* Handles a call of BLAS: returns whether it has been done. */
static int do_product(struct tf_blas_target *target, struct tf_call *call)
{
    const struct tf_blas_watcher *watch =
        atomic_load_explicit(&watcher, memory_order_acquire);
    if (is_aside) {
        return 0;
    }
    caught++;
    const struct tf_blas_mode *mode = current_mode();
    struct verdict verdict = {.mode = mode, .last_place = &target->caller->last_place};
    if (target->inner && !(verdict.mode && verdict.mode->lapack) &&
        !(watch && watch->lapack)) {
        return 0;
    }
    char value[sizeof call->floating[0]];
    memcpy(value, call->floating[0], sizeof value);
    const struct tf_blas_arguments arguments = {
        call->integers, TF_INTEGER_REGISTERS, call->stack,
        (const double[]){call->floating[0][0], call->floating[1][0]}, value};
    if (judge_call(target, &arguments, &verdict) < 0) {
        return 0;
    }
    const struct tf_blas_watched seen = {&target->name, &arguments, target->caller,
                                         verdict.sizes};
    void *context = watch ? watch->before(&seen) : NULL;
    const double began = context ? seconds_now() : 0;
    int done = 0;
    if (verdict.fate == TF_OBEYED) {
        const int status = obey(target, &arguments, &verdict);
        if (status == -2) {
            return 0;
        }
        done = status >= 0;
        if (done) {
            put_value(call, target->name.type, value);
        }
        verdict.fate = done ? tf_blas_fate_of_obeying(mode) : TF_NO_MEMORY;
        atomic_fetch_add(&lost, !done);
    }
    tf_blas_count(verdict.fate, target->name.type, target->name.routine,
                  verdict.sizes.multiply_adds);
    if (context) {
        if (!done) {
            make_call(target, call);
            done = 1;
        }
        watch->after(context, &seen, seconds_now() - began);
    }
    return done;
}

int tf_handle_product(struct tf_stub *stub, struct tf_call *call)
{
    struct tf_blas_target *target = stub->facts;
    const int done = do_product(target, call);
    was_judged = !done && target->leads_to_entry;
    return done;
}

int tf_handle_entry(struct tf_stub *stub, struct tf_call *call)
{
    struct tf_blas_target *target = stub->facts;
    const int judged = was_judged;
    was_judged = 0;
    if (judged || !tf_hooks_are_on() || !do_product(target, call)) {
        tf_call_twin(target->entry, call);
    }
    return 1;
}

/* -- calls that are only counted --------------------------------------------------- */

/* Makes a call and counts it, unless BLAS ran in it and `counts_blas` is 0. */
static void count_named(struct tf_stub *stub, struct tf_call *call, int counts_blas)
{
    struct tf_named_count *count = stub->facts;
    const unsigned before = caught;
    const double began = seconds_now();
    tf_stub_call(call);
    if (counts_blas || caught == before) {
        tf_named_call(count, (uint64_t)(1e9 * (seconds_now() - began)));
    }
}

int tf_handle_named(struct tf_stub *stub, struct tf_call *call)
{
    count_named(stub, call, 1);
    return 1;
}

int tf_handle_without_blas(struct tf_stub *stub, struct tf_call *call)
{
    count_named(stub, call, 0);
    return 1;
}
