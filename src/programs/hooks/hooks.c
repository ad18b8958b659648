/* Keeps the hooks of this process, and hooks libraries that are loaded later. */
#include "programs/hooks/hooks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct tf_hook *hooks;
static int hook_count, room;
static int is_short; /* memory was short for a hook */
static const struct tf_hook_user *user;
static atomic_int users;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards hooks and slots */

void tf_hooks_lock(void) { pthread_mutex_lock(&lock); }
void tf_hooks_unlock(void) { pthread_mutex_unlock(&lock); }
void tf_hooks_are_short(void) { is_short = 1; }

const struct tf_hook *tf_hook(int number)
{
    return number < hook_count ? &hooks[number] : NULL;
}

int tf_hooks_are_on(void) { return atomic_load_explicit(&users, memory_order_relaxed) > 0; }

void *tf_hook_new(void *original, tf_handler_fn *handler, void *facts, int always)
{
    struct tf_stub *stub;
    for (int i = 0; i < hook_count; i++) {
        stub = hooks[i].stub;
        if (hooks[i].handler == handler && stub->original == original &&
            stub->facts == facts) {
            return tf_stub_address(stub);
        }
    }
    if (hook_count == room) {
        const int more = room ? 2 * room : 512;
        struct tf_hook *grown = realloc(hooks, (size_t)more * sizeof *grown);
        if (!grown) {
            is_short = 1;
            return NULL;
        }
        hooks = grown;
        room = more;
    }
    void *address = tf_stub_new(original, &stub);
    if (!address) {
        return NULL;
    }
    stub->facts = facts;
    hooks[hook_count++] = (struct tf_hook){stub, handler, always};
    tf_stub_set(stub, users > 0 || always ? handler : NULL);
    return address;
}

/* -- libraries that are loaded later ------------------------------------------------ */

/* Redirects the slots of new objects. Returns -1 if another thread has the lock, or if
 * memory is short. */
static int look_again(void);

/* The number of further calls of dlsym that look for libraries that dlopen has loaded. */
static atomic_int to_look;
enum { LOOKS = 1000 };

/* Opens a library that is named by a path, and redirects the slots of the new objects.
 * A bare name is left to the original dlopen, by a jump, because the linker searches by the
 * address of its caller. The next LOOKS calls of dlsym then look for new objects: more than
 * one call, because the linker may not have finished by the first. */
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

/* -- looking at objects ------------------------------------------------------------- */

static int is_wanted(const char *symbol)
{
    return strcmp(symbol, "dlopen") == 0 || strcmp(symbol, "dlsym") == 0 ||
           user->wanted(symbol);
}

static int redirect(const struct tf_slot *slot, void **value)
{
    is_short = 0;
    if (strcmp(slot->symbol, "dlopen") == 0) {
        *value = tf_hook_new(slot->original, handle_dlopen, NULL, 0);
    } else if (strcmp(slot->symbol, "dlsym") == 0) {
        *value = tf_hook_new(slot->original, handle_dlsym, NULL, 0);
    } else {
        *value = user->stub_for(slot);
    }
    return is_short ? -1 : 0;
}

static int look(void)
{
    const int failed =
        tf_objects_changed() && tf_redirect_slots(is_wanted, redirect) < 0;
    user->looked();
    return failed ? -1 : 0;
}

static int look_again(void)
{
    if (pthread_mutex_trylock(&lock)) {
        return -1; /* the holder may wait for the linker, whose lock this thread may hold */
    }
    const int status = look();
    pthread_mutex_unlock(&lock);
    return status;
}

/* -- on and off --------------------------------------------------------------------- */

static void switch_all(int on)
{
    for (int i = 0; i < hook_count; i++) {
        if (!hooks[i].always) {
            tf_stub_set(hooks[i].stub, on ? hooks[i].handler : NULL);
        }
    }
}

int tf_hooks_end(void)
{
    const int is_last = atomic_fetch_sub(&users, 1) == 1;
    if (is_last) {
        switch_all(0);
    }
    return is_last;
}

int tf_hooks_begin(const struct tf_hook_user *of)
{
    static int prepared;
    user = of;
    if (!prepared) {
        pthread_atfork(tf_hooks_lock, tf_hooks_unlock, tf_hooks_unlock);
        prepared = 1;
    }
    if (atomic_fetch_add(&users, 1) == 0) {
        switch_all(1);
    }
    const int status = look();
    if (status < 0) {
        tf_hooks_end();
    }
    return status;
}
