/* The handlers of the slots that lead to BLAS, to LAPACK and to dlopen. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, strdup */

#include "blas/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "blas/entries.h"
#include "blas/lapack_names.h"
#include "blas/slots.h"
#include "blas/stubs.h"

/* What a stub before a function of BLAS leads to. */
struct target {
    struct tf_blas_name name;
    int inner; /* the caller is LAPACK */
    const char *object;
    void *_Atomic last;             /* the watcher's */
    const void *_Atomic last_place; /* the place function's */
    struct tf_entry *entry; /* of a function that is called without a slot; or NULL */
    int leads_to_entry;     /* the original is such a function */
};

/* This thread is on its way to an entry by a slot: the call was judged there. */
static _Thread_local int was_judged __attribute__((tls_model("initial-exec")));

static atomic_int users; /* who have calls caught */
static _Atomic(tf_blas_mode_fn *) mode_finder;
static _Atomic(const struct tf_blas_mode *) process_mode;
static _Atomic(tf_blas_place_fn *) place_finder;
static _Atomic(const struct tf_blas_watcher *) watcher;
static _Thread_local int paused __attribute__((tls_model("initial-exec")));

void tf_blas_set_mode_finder(tf_blas_mode_fn *find) { atomic_store(&mode_finder, find); }
void tf_blas_set_mode(const struct tf_blas_mode *mode) { atomic_store(&process_mode, mode); }
void tf_blas_set_places(tf_blas_place_fn *find) { atomic_store(&place_finder, find); }
void tf_blas_set_watcher(const struct tf_blas_watcher *one) { atomic_store(&watcher, one); }
void tf_blas_pause(int is_paused) { paused = is_paused; }

static const struct tf_blas_mode *current_mode(void)
{
    tf_blas_mode_fn *find = atomic_load_explicit(&mode_finder, memory_order_relaxed);
    return find ? find() : atomic_load_explicit(&process_mode, memory_order_acquire);
}

const struct tf_blas_mode *tf_blas_mode_here(const struct tf_blas_mode *mode,
                                             const void *_Atomic *last)
{
    tf_blas_place_fn *find = atomic_load_explicit(&place_finder, memory_order_relaxed);
    return find ? find(mode, last) : mode;
}

int tf_blas_may_obey(void)
{
    static const struct tf_blas_mode any;
    return tf_blas_mode_here(&any, NULL) != NULL;
}

enum tf_blas_fate tf_blas_fate_of(const struct tf_blas_mode **in_force,
                                  const void *_Atomic *last, char type, ptrdiff_t m,
                                  ptrdiff_t n, ptrdiff_t k)
{
    const struct tf_blas_mode *mode = *in_force;
    const int is_double = type == 'd' || type == 'z';
    const int is_complex = type == 'c' || type == 'z';
    if (!mode) {
        return TF_NO_PRECISION;
    }
    const enum tf_blas_fate fate = is_double && !mode->float64       ? TF_IS_FLOAT64
                                   : is_complex && !mode->complex64  ? TF_IS_COMPLEX
                                   : m == 1 && n == 1 && !mode->dots ? TF_IS_DOT
                                   : k < mode->min_size              ? TF_IS_SHORT
                                                                     : TF_OBEYED;
    if (fate != TF_OBEYED) {
        return fate;
    }
    const struct tf_blas_mode *here = tf_blas_mode_here(mode, last);
    if (!here) {
        return TF_IS_OUTSIDE;
    }
    *in_force = here;
    return TF_OBEYED;
}

/* -- products ---------------------------------------------------------------------- */

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What a call comes to. A batch obeys as a whole, or not at all. */
struct verdict {
    const struct tf_blas_mode *mode; /* of the place, once the first product has obeyed */
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
        verdict->fate = tf_blas_fate_of(&verdict->mode, verdict->last_place, product->type,
                                        product->m, product->n, product->k);
    }
    return 0;
}

/* Returns -1 if there is nothing to do, or if BLAS refuses the call. */
static int judge_call(const struct target *target,
                      const struct tf_blas_arguments *arguments, struct verdict *verdict)
{
    if (tf_blas_read_sizes(&target->name, arguments, &verdict->sizes) == 0) {
        verdict->count = 1;
        verdict->fate = tf_blas_fate_of(&verdict->mode, verdict->last_place,
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
    return tf_blas_compute(context, product);
}

/* Returns 0 if all of a call's products were computed; -1 if there was no memory, -2 if
 * BLAS refuses the call. */
static int obey(const struct target *target, const struct tf_blas_arguments *arguments,
                const struct verdict *verdict)
{
    const struct tf_precision *precision = &verdict->mode->device.precision;
    const int status =
        tf_blas_take_apart(&target->name, arguments, compute, (void *)precision);
    if (status == -1 && verdict->count > 1) {
        /* Some of the results lie over what they were computed from. */
        fputs("tf32dtype: no memory for a batch of products\n", stderr);
        abort();
    }
    return status;
}

/* Puts a value where the ABI has it: each part of a complex number in a register of its
 * own, but for a complex64 on x86-64. */
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

static void make_call(const struct target *target, struct tf_call *call)
{
    if (target->entry) {
        tf_call_twin(target->entry, call);
        return;
    }
    was_judged = target->leads_to_entry;
    tf_stub_call(call);
}

/* Does what is to be done with a call: returns whether it has been made. */
static int do_product(struct target *target, struct tf_call *call)
{
    const struct tf_blas_watcher *watch =
        atomic_load_explicit(&watcher, memory_order_acquire);
    if (paused) {
        return 0;
    }
    struct verdict verdict = {.mode = current_mode(), .last_place = &target->last_place};
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
    void *context = NULL;
    if (watch) {
        const struct tf_blas_watched seen = {&target->name, &arguments, target->object,
                                             &target->last, verdict.sizes};
        context = watch->before(&seen);
    }
    const double began = context ? seconds_now() : 0;
    int done = 0;
    if (verdict.fate == TF_OBEYED) {
        const int status = obey(target, &arguments, &verdict);
        if (status == -2) {
            return 0;
        }
        done = status == 0;
        if (done) {
            put_value(call, target->name.type, value);
        } else {
            verdict.fate = TF_NO_MEMORY;
        }
    }
    tf_blas_count(verdict.fate, target->name.type, target->name.routine,
                  verdict.sizes.multiply_adds);
    if (context) {
        if (!done) {
            make_call(target, call);
            done = 1;
        }
        watch->after(context, seconds_now() - began);
    }
    return done;
}

static int handle_product(struct tf_stub *stub, struct tf_call *call)
{
    struct target *target = stub->facts;
    const int done = do_product(target, call);
    was_judged = !done && target->leads_to_entry;
    return done;
}

/* Of an entry; it leads here for ever, also while nobody catches calls. */
static int handle_entry(struct tf_stub *stub, struct tf_call *call)
{
    struct target *target = stub->facts;
    const int judged = was_judged;
    was_judged = 0;
    if (judged || atomic_load_explicit(&users, memory_order_relaxed) == 0 ||
        !do_product(target, call)) {
        tf_call_twin(target->entry, call);
    }
    return 1;
}

/* -- what is only counted ---------------------------------------------------------- */

static int handle_named(struct tf_stub *stub, struct tf_call *call)
{
    struct tf_named_count *count = stub->facts;
    if (paused) {
        return 0;
    }
    const double began = seconds_now();
    tf_stub_call(call);
    atomic_fetch_add(&count->calls, 1);
    atomic_fetch_add(&count->nanoseconds, (uint64_t)(1e9 * (seconds_now() - began)));
    return 1;
}

/* -- which slots ------------------------------------------------------------------- */

/* Objects that came meanwhile are looked at before anybody asks them for a function.
 * Both calls go on as jumps: the linker asks who their caller is. */
static atomic_int opened;

static int handle_dlopen(struct tf_stub *stub, struct tf_call *call)
{
    (void)stub;
    (void)call;
    atomic_store(&opened, 1);
    return 0;
}

static int handle_dlsym(struct tf_stub *stub, struct tf_call *call)
{
    (void)stub;
    (void)call;
    if (atomic_load_explicit(&opened, memory_order_relaxed)) {
        tf_blas_look_again();
    }
    return 0;
}

/* Every stub that was made, with the handler that it has while calls are caught. */
static struct made {
    struct tf_stub *stub;
    tf_handler_fn *handler;
} *made;
static int made_count, made_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these, and of the slots */

static void *stub_before(void *original, tf_handler_fn *handler, void *facts)
{
    struct tf_stub *stub;
    if (!facts && handler != handle_dlopen && handler != handle_dlsym) {
        return NULL;
    }
    if (made_count == made_room) {
        const int room = made_room ? 2 * made_room : 512;
        struct made *more = realloc(made, (size_t)room * sizeof *more);
        if (!more) {
            return NULL;
        }
        made = more;
        made_room = room;
    }
    void *address = tf_stub_new(original, &stub);
    if (!address) {
        return NULL;
    }
    stub->facts = facts;
    made[made_count++] = (struct made){stub, handler};
    tf_stub_set(stub, users > 0 || handler == handle_entry ? handler : NULL);
    return address;
}

static int is_wanted(const char *symbol)
{
    struct tf_blas_name name;
    char plain[16];
    return strcmp(symbol, "dlopen") == 0 || strcmp(symbol, "dlsym") == 0 ||
           tf_blas_read_name(symbol, &name) == 0 ||
           tf_lapack_read_name(symbol, plain, sizeof plain) >= 0;
}

/* Whether an object is a LAPACK, so that its products are LAPACK's inner ones. MKL does
 * not call itself by names: those that an object with an MKL inside has in its slots are
 * that object's. */
static int is_lapack(const struct tf_slot *slot)
{
    static const char *const names[] = {"dgetrf_", "dgetrf_64_", "scipy_dgetrf_",
                                        "scipy_dgetrf_64_"};
    if (tf_defines(slot, "mkl_get_version") || tf_defines(slot, "MKL_Get_Version")) {
        return 0;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (tf_defines(slot, names[i])) {
            return 1;
        }
    }
    return 0;
}

/* -- LAPACK's own calls ------------------------------------------------------------ */

/* A function of each library that callers have called. */
enum { LIBRARIES = 64 };
static void *libraries[LIBRARIES];
static int library_count, wants_lapack, refused;

static void note_library(void *function)
{
    for (int i = 0; i < library_count; i++) {
        if (tf_are_of_one_object(libraries[i], function)) {
            return;
        }
    }
    if (library_count < LIBRARIES) {
        libraries[library_count++] = function;
    }
}

/* What its library calls by a slot needs no entry. */
static void redirect_entry(const struct tf_entry *entry, const char *library)
{
    for (int i = 0; i < made_count; i++) {
        const struct target *target = made[i].stub->facts;
        if ((made[i].handler == handle_product && target->inner &&
             made[i].stub->original == entry->address) ||
            (made[i].handler == handle_entry &&
             target->entry->address == entry->address)) {
            return;
        }
    }
    struct target *target = malloc(sizeof *target);
    struct tf_entry *own = malloc(sizeof *own);
    char *object = strdup(library);
    if (!target || !own || !object) {
        refused = 1;
        return;
    }
    *own = *entry;
    *target = (struct target){entry->name, 1, object, NULL, NULL, own, 0};
    void *stub = stub_before(entry->address, handle_entry, target);
    if (!stub || tf_redirect_entry(entry, stub) < 0) {
        refused = 1;
        return;
    }
    for (int i = 0; i < made_count; i++) {
        struct target *caller = made[i].stub->facts;
        if (made[i].handler == handle_product &&
            made[i].stub->original == entry->address) {
            caller->leads_to_entry = 1;
        }
    }
}

static void redirect_entries(void)
{
    static int done;
    for (; wants_lapack && done < library_count; done++) {
        tf_find_entries(libraries[done], redirect_entry);
    }
}

int tf_blas_enter_lapack(void)
{
    pthread_mutex_lock(&lock);
    wants_lapack = 1;
    redirect_entries();
    const int status = refused ? -1 : 0;
    pthread_mutex_unlock(&lock);
    return status;
}

static void *redirect(const struct tf_slot *slot)
{
    struct tf_blas_name name;
    char plain[16];
    if (strcmp(slot->symbol, "dlopen") == 0) {
        return stub_before(slot->original, handle_dlopen, NULL);
    }
    if (strcmp(slot->symbol, "dlsym") == 0) {
        return stub_before(slot->original, handle_dlsym, NULL);
    }
    const int inner = is_lapack(slot);
    if (tf_blas_read_name(slot->symbol, &name) == 0) {
        if (slot->own && !inner) {
            return NULL; /* one form of BLAS that calls the other */
        }
        struct target *target = malloc(sizeof *target);
        if (target) {
            *target = (struct target){name, inner, slot->object, NULL, NULL, NULL, 0};
        }
        note_library(slot->original);
        return stub_before(slot->original, handle_product, target);
    }
    const int kind = tf_lapack_read_name(slot->symbol, plain, sizeof plain);
    if (slot->own || inner) {
        return NULL; /* LAPACK that calls itself */
    }
    note_library(slot->original);
    return stub_before(slot->original, handle_named, tf_named_count(kind, plain));
}

static int look(void)
{
    const int count = tf_objects_changed() ? tf_redirect_slots(is_wanted, redirect) : 0;
    redirect_entries();
    return count;
}

int tf_blas_look_again(void)
{
    int count = 0;
    if (pthread_mutex_trylock(&lock)) {
        return 0; /* another thread is at it, which may wait for a lock that this holds */
    }
    atomic_store(&opened, 0);
    count = look();
    pthread_mutex_unlock(&lock);
    return count;
}

void *tf_blas_counting(void *original, int kind, const char *name)
{
    pthread_mutex_lock(&lock);
    void *function = tf_counts_prepare() < 0
                         ? NULL
                         : stub_before(original, handle_named, tf_named_count(kind, name));
    pthread_mutex_unlock(&lock);
    return function;
}

static void lock_all(void) { pthread_mutex_lock(&lock); }
static void unlock_all(void) { pthread_mutex_unlock(&lock); }

static void switch_all(int on)
{
    for (int i = 0; i < made_count; i++) {
        if (made[i].handler != handle_entry) {
            tf_stub_set(made[i].stub, on ? made[i].handler : NULL);
        }
    }
}

int tf_blas_is_available(void) { return TF_HAVE_STUBS; }

int tf_blas_begin(void)
{
    static int prepared;
    pthread_mutex_lock(&lock);
    if (tf_counts_prepare() < 0) {
        pthread_mutex_unlock(&lock);
        return -1;
    }
    if (!prepared) {
        pthread_atfork(lock_all, unlock_all, unlock_all);
        prepared = 1;
    }
    if (users++ == 0) {
        switch_all(1);
    }
    look();
    pthread_mutex_unlock(&lock);
    return 0;
}

void tf_blas_end(void)
{
    pthread_mutex_lock(&lock);
    if (users > 0 && --users == 0) {
        switch_all(0);
    }
    pthread_mutex_unlock(&lock);
}
