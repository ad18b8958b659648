/* Which slots lead to us, and while whom. */
#define _POSIX_C_SOURCE 200809L /* strdup */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "programs/blas/engine.h"
#include "programs/blas/handlers.h"
#include "programs/blas/interrupts.h"
#include "programs/blas/lapack_names.h"
#include "programs/hooks/slots.h"
#include "runtime/reserve.h"

/* -- libraries that come later ------------------------------------------------------ */

/* Returns -1 if another thread looks, or memory is short. */
static int look_again(void);

/* How many calls of dlsym are still to look for a library that dlopen may have brought. */
static atomic_int to_look;
enum { LOOKS = 1000 };

/* A path is opened here, and its objects are looked at. A bare name is left to the linker,
 * which asks who its caller is, by a jump: then they are looked at before anybody asks
 * them for a function; not once, since the linker may be at work yet. */
static int handle_dlopen(struct tf_stub *stub, struct tf_call *call)
{
    const char *name = (const char *)(uintptr_t)call->integers[0];
    (void)stub;
    if (name && strchr(name, '/') && !strchr(name, '$')) {
        tf_stub_call(call);
        if (look_again() < 0) {
            atomic_store(&to_look, LOOKS);
        }
        return 1;
    }
    atomic_store(&to_look, LOOKS);
    return 0;
}

static int handle_dlsym(struct tf_stub *stub, struct tf_call *call)
{
    (void)stub;
    (void)call;
    if (atomic_load_explicit(&to_look, memory_order_relaxed) > 0) {
        atomic_fetch_sub(&to_look, 1);
        if (tf_objects_changed()) {
            look_again();
        }
    }
    return 0;
}

/* -- stubs ------------------------------------------------------------------------- */

/* Every stub that was made, with the handler that it has while calls are caught. */
static struct made {
    struct tf_stub *stub;
    tf_handler_fn *handler;
} *made;
static int made_count, made_room;
static int is_short; /* memory, for one of them */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these, and of the slots */

/* One that was made before, or NULL. */
static void *stub_made(void *original, tf_handler_fn *handler, const void *facts)
{
    for (int i = 0; i < made_count; i++) {
        if (made[i].handler == handler && made[i].stub->original == original &&
            made[i].stub->facts == facts) {
            return tf_stub_address(made[i].stub);
        }
    }
    return NULL;
}

static void *stub_before(void *original, tf_handler_fn *handler, void *facts)
{
    struct tf_stub *stub;
    void *known = stub_made(original, handler, facts);
    if (known) {
        return known;
    }
    if (!facts && handler != handle_dlopen && handler != handle_dlsym) {
        return NULL;
    }
    if (made_count == made_room) {
        const int room = made_room ? 2 * made_room : 512;
        struct made *more = realloc(made, (size_t)room * sizeof *more);
        if (!more) {
            is_short = 1;
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
    tf_stub_set(stub, tf_blas_users > 0 || handler == tf_handle_entry ? handler : NULL);
    return address;
}

static int are_same(const struct tf_blas_name *a, const struct tf_blas_name *b)
{
    return a->routine == b->routine && a->type == b->type && a->cblas == b->cblas &&
           a->wide == b->wide && a->sub == b->sub && a->wider == b->wider;
}

/* A library that is closed and opened again, as often as one likes, finds the stubs that
 * it had. */
static void *stub_of_before(const struct tf_slot *slot, const struct tf_blas_name *name,
                            int inner)
{
    for (int i = 0; i < made_count; i++) {
        const struct tf_blas_target *target = made[i].stub->facts;
        if (made[i].handler == tf_handle_product &&
            made[i].stub->original == slot->original && target->inner == inner &&
            are_same(&target->name, name) &&
            strcmp(target->caller->file, slot->object) == 0) {
            return tf_stub_address(made[i].stub);
        }
    }
    return NULL;
}

/* -- objects and their slots -------------------------------------------------------- */

/* The slots of one object come one after the other. NULL if memory is short. */
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

/* What a stub for calls from an object leads to; NULL if memory is short. */
static struct tf_blas_target *target_of(const struct tf_blas_name *name, int inner,
                                        const char *file)
{
    struct tf_blas_caller *caller = caller_of(file);
    struct tf_blas_target *target = caller ? malloc(sizeof *target) : NULL;
    if (target) {
        *target = (struct tf_blas_target){.name = *name, .inner = inner, .caller = caller};
    }
    is_short |= !target;
    return target;
}

static int is_wanted(const char *symbol)
{
    struct tf_blas_name name;
    char plain[16];
    return strcmp(symbol, "dlopen") == 0 || strcmp(symbol, "dlsym") == 0 ||
           tf_blas_read_name(symbol, &name) == 0 ||
           tf_lapack_read_name(symbol, plain, sizeof plain) >= 0;
}

/* Whether an object has an MKL inside, as PyTorch's has. MKL does not call itself by
 * BLAS's names: those that stand in the object's slots are its other code's. */
static int has_mkl(const struct tf_slot *slot)
{
    return tf_defines(slot, "mkl_serv_get_version");
}

/* Whether an object is a LAPACK, so that its products are LAPACK's inner ones. */
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

static int is_entry(const void *function)
{
    for (int i = 0; i < made_count; i++) {
        if (made[i].handler == tf_handle_entry && made[i].stub->original == function) {
            return 1;
        }
    }
    return 0;
}

/* What its library calls by a slot needs no entry. */
static void redirect_entry(const struct tf_entry *entry, const char *library)
{
    for (int i = 0; i < made_count; i++) {
        const struct tf_blas_target *target = made[i].stub->facts;
        if (made[i].handler == tf_handle_product && target->inner &&
            made[i].stub->original == entry->address) {
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
    void *stub = stub_before(entry->address, tf_handle_entry, target);
    if (!stub || tf_redirect_entry(entry, stub) < 0) {
        refused = 1;
        return;
    }
    for (int i = 0; i < made_count; i++) {
        struct tf_blas_target *caller = made[i].stub->facts;
        if (made[i].handler == tf_handle_product &&
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

/* -- all of it ---------------------------------------------------------------------- */

static void *stub_for(const struct tf_slot *slot)
{
    struct tf_blas_name name;
    char plain[16];
    if (strcmp(slot->symbol, "dlopen") == 0) {
        return stub_before(slot->original, handle_dlopen, NULL);
    }
    if (strcmp(slot->symbol, "dlsym") == 0) {
        return stub_before(slot->original, handle_dlsym, NULL);
    }
    const int inner = is_lapack(slot), own = slot->own && !has_mkl(slot);
    if (tf_blas_read_name(slot->symbol, &name) == 0) {
        if (own && !inner) {
            return NULL; /* one form of BLAS that calls the other */
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
        return stub_before(slot->original, tf_handle_product, target);
    }
    const int kind = tf_lapack_read_name(slot->symbol, plain, sizeof plain);
    if (own || inner) {
        return NULL; /* LAPACK that calls itself */
    }
    note_library(slot->original);
    return stub_before(slot->original, tf_handle_named, tf_named_count(kind, plain));
}

static int redirect(const struct tf_slot *slot, void **value)
{
    is_short = 0;
    *value = stub_for(slot);
    return is_short ? -1 : 0;
}

static int look(void)
{
    const int failed =
        tf_objects_changed() && tf_redirect_slots(is_wanted, redirect) < 0;
    redirect_entries();
    return failed ? -1 : 0;
}

static int look_again(void)
{
    if (pthread_mutex_trylock(&lock)) {
        return -1; /* another thread is at it, which may wait for a lock that this holds */
    }
    const int status = look();
    pthread_mutex_unlock(&lock);
    return status;
}

void *tf_blas_counting(void *original, int kind, const char *name, int with_blas)
{
    pthread_mutex_lock(&lock);
    void *function = tf_counts_prepare() < 0
                         ? NULL
                         : stub_before(original,
                                       with_blas ? tf_handle_named : tf_handle_without_blas,
                                       tf_named_count(kind, name));
    pthread_mutex_unlock(&lock);
    return function;
}

static void lock_all(void) { pthread_mutex_lock(&lock); }
static void unlock_all(void) { pthread_mutex_unlock(&lock); }

static void switch_all(int on)
{
    for (int i = 0; i < made_count; i++) {
        if (made[i].handler != tf_handle_entry) {
            tf_stub_set(made[i].stub, on ? made[i].handler : NULL);
        }
    }
}

int tf_blas_is_available(void) { return TF_HAVE_STUBS; }

static void end(void)
{
    tf_reserve_end();
    if (atomic_fetch_sub(&tf_blas_users, 1) == 1) {
        switch_all(0);
        tf_interrupts_forget();
    }
}

int tf_blas_begin(void)
{
    static int prepared;
    pthread_mutex_lock(&lock);
    if (tf_counts_prepare() < 0 || tf_reserve_begin() < 0) {
        pthread_mutex_unlock(&lock);
        return -1;
    }
    if (!prepared) {
        pthread_atfork(lock_all, unlock_all, unlock_all);
        prepared = 1;
    }
    if (atomic_fetch_add(&tf_blas_users, 1) == 0) {
        switch_all(1);
    }
    const int status = look();
    if (status < 0) {
        end();
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void tf_blas_end(void)
{
    pthread_mutex_lock(&lock);
    if (tf_blas_users > 0) {
        end();
    }
    pthread_mutex_unlock(&lock);
}
