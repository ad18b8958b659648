/* Hooks functions of BLAS and LAPACK: chooses the slots, and makes the stub of each. */
#define _POSIX_C_SOURCE 200809L /* strdup */

#include <stdlib.h>
#include <string.h>

#include "programs/blas/engine.h"
#include "programs/blas/interrupts.h"
#include "programs/blas/lapack_names.h"
#include "programs/hooks/hooks.h"
#include "programs/hooks/jumps.h"
#include "runtime/reserve.h"

/* -- stubs of products -------------------------------------------------------------- */

static int are_same(const struct tf_blas_name *a, const struct tf_blas_name *b)
{
    return a->routine == b->routine && a->type == b->type && a->cblas == b->cblas &&
           a->wide == b->wide && a->sub == b->sub && a->wider == b->wider;
}

/* Returns the stub of an earlier hook with the same facts, or NULL, so that a library that
 * is closed and opened again, any number of times, gets the same stubs. */
static void *stub_of_before(const struct tf_slot *slot, const struct tf_blas_name *name,
                            int inner)
{
    const struct tf_hook *hook;
    for (int i = 0; (hook = tf_hook(i)); i++) {
        const struct tf_blas_target *target = hook->stub->facts;
        if (hook->handler == tf_handle_product && hook->stub->original == slot->original &&
            target->inner == inner && are_same(&target->name, name) &&
            strcmp(target->caller->file, slot->object) == 0) {
            return tf_stub_address(hook->stub);
        }
    }
    return NULL;
}

/* -- objects and their slots -------------------------------------------------------- */

/* Returns the caller for an object's file; NULL if memory is short. It remembers only the
 * last one, because the slots of an object follow each other. */
static struct tf_blas_caller *caller_of(const char *file)
{
    static struct tf_blas_caller *last;
    if (last && strcmp(last->file, file) == 0) {
        return last;
    }
    struct tf_blas_caller *caller = calloc(1, sizeof *caller);
    char *copy = strdup(file);
    if (!caller || !copy) {
        free(caller);
        free(copy);
        return NULL;
    }
    caller->file = copy;
    return last = caller;
}

/* Returns the facts of a stub for calls from an object; NULL if memory is short. */
static struct tf_blas_target *target_of(const struct tf_blas_name *name, int inner,
                                        const char *file)
{
    struct tf_blas_caller *caller = caller_of(file);
    struct tf_blas_target *target = caller ? malloc(sizeof *target) : NULL;
    if (target) {
        *target = (struct tf_blas_target){.name = *name, .inner = inner, .caller = caller};
    }
    if (!target) {
        tf_hooks_are_short();
    }
    return target;
}

static int is_wanted(const char *symbol)
{
    struct tf_blas_name name;
    char plain[16];
    return tf_blas_read_name(symbol, &name) == 0 ||
           tf_lapack_read_name(symbol, plain, sizeof plain) >= 0;
}

/* Returns whether an object contains MKL, as PyTorch's does. MKL does not call itself by
 * the names of BLAS: slots with these names are of the object's other code. */
static int has_mkl(const struct tf_slot *slot)
{
    return tf_defines(slot, "mkl_serv_get_version");
}

/* Returns whether an object is a LAPACK, so that its calls of BLAS are LAPACK's own. */
static int is_lapack(const struct tf_slot *slot)
{
    static const char *const names[] = {"dgetrf_", "dgetrf_64_", "scipy_dgetrf_",
                                        "scipy_dgetrf_64_"};
    if (has_mkl(slot)) {
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

/* One function of each library whose functions are hooked. */
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

static int is_entry(const void *function)
{
    const struct tf_hook *hook;
    for (int i = 0; (hook = tf_hook(i)); i++) {
        if (hook->handler == tf_handle_entry && hook->stub->original == function) {
            return 1;
        }
    }
    return 0;
}

/* Makes a function jump to a stub (entries.h), unless its library calls it by a slot, which
 * is hooked already. Sets `refused` on failure. */
static void redirect_entry(const struct tf_entry *entry, const char *library)
{
    const struct tf_hook *hook;
    for (int i = 0; (hook = tf_hook(i)); i++) {
        const struct tf_blas_target *target = hook->stub->facts;
        if (hook->handler == tf_handle_product && target->inner &&
            hook->stub->original == entry->address) {
            return;
        }
    }
    if (is_entry(entry->address)) {
        return;
    }
    struct tf_blas_target *target = target_of(&entry->name, 1, library);
    struct tf_entry *own = malloc(sizeof *own);
    if (!target || !own) {
        refused = 1;
        return;
    }
    *own = *entry;
    target->entry = own;
    void *stub = tf_hook_new(entry->address, tf_handle_entry, target, 1);
    if (!stub || tf_jump(entry->address, stub) < 0) {
        refused = 1;
        return;
    }
    for (int i = 0; (hook = tf_hook(i)); i++) {
        struct tf_blas_target *caller = hook->stub->facts;
        if (hook->handler == tf_handle_product && hook->stub->original == entry->address) {
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
    tf_hooks_lock();
    wants_lapack = 1;
    redirect_entries();
    const int status = refused ? -1 : 0;
    tf_hooks_unlock();
    return status;
}

/* -- the user of hooks --------------------------------------------------------------- */

/* Returns the stub of a hook; NULL if memory was short for its facts. */
static void *hook_with(void *original, tf_handler_fn *handler, void *facts)
{
    return facts ? tf_hook_new(original, handler, facts, 0) : NULL;
}

static void *stub_for(const struct tf_slot *slot)
{
    struct tf_blas_name name;
    char plain[16];
    const int inner = is_lapack(slot), own = slot->own && !has_mkl(slot);
    if (tf_blas_read_name(slot->symbol, &name) == 0) {
        if (own && !inner) {
            return NULL; /* one interface of a BLAS that calls the other */
        }
        void *stub = stub_of_before(slot, &name, inner);
        if (stub) {
            return stub;
        }
        struct tf_blas_target *target = target_of(&name, inner, slot->object);
        if (target) {
            target->leads_to_entry = is_entry(slot->original);
        }
        note_library(slot->original);
        return hook_with(slot->original, tf_handle_product, target);
    }
    const int kind = tf_lapack_read_name(slot->symbol, plain, sizeof plain);
    if (own || inner) {
        return NULL; /* LAPACK that calls itself */
    }
    note_library(slot->original);
    return hook_with(slot->original, tf_handle_named, tf_named_count(kind, plain));
}

static const struct tf_hook_user hook_user = {is_wanted, stub_for, redirect_entries};

void *tf_blas_counting(void *original, int kind, const char *name, int with_blas)
{
    tf_hooks_lock();
    void *function = tf_counts_prepare() < 0
                         ? NULL
                         : hook_with(original,
                                     with_blas ? tf_handle_named : tf_handle_without_blas,
                                     tf_named_count(kind, name));
    tf_hooks_unlock();
    return function;
}

int tf_blas_is_available(void) { return TF_HAVE_STUBS; }

int tf_blas_begin(void)
{
    int status = -1;
    tf_hooks_lock();
    if (tf_counts_prepare() == 0 && tf_reserve_begin() == 0) {
        status = tf_hooks_begin(&hook_user);
        if (status < 0) {
            tf_reserve_end();
        }
    }
    tf_hooks_unlock();
    return status;
}

void tf_blas_end(void)
{
    tf_hooks_lock();
    if (tf_hooks_are_on()) {
        tf_reserve_end();
        if (tf_hooks_end()) {
            tf_interrupts_forget();
        }
    }
    tf_hooks_unlock();
}
