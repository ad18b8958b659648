/* Hooks: stubs in the slots of this process's libraries, and the handler of each stub.
 *
 * This folder writes into the code and data of other libraries: it makes functions (stubs),
 * redirects pointers (slots), and overwrites first instructions (jumps). It does not know
 * which functions are hooked, or why: a struct tf_hook_user says so.
 *
 * | function                      | lock                  | in a signal handler | in a fork's child |
 * |-------------------------------|-----------------------|---------------------|-------------------|
 * | a stub without a handler      | none                  | safe                | safe              |
 * | tf_stub_call, tf_is_stub      | none                  | safe                | safe              |
 * | tf_stub_set                   | none (one word)       | safe                | safe              |
 * | tf_stub_new                   | the caller holds ours | no: mmap            | safe              |
 * | tf_redirect_slots, tf_jump    | the caller holds ours | no: malloc, dlopen  | safe              |
 * | tf_hook_new, tf_hooks_begin   | the caller holds ours | no: malloc          | safe              |
 * | tf_hook, tf_hooks_end         | the caller holds ours | no: the lock        | safe              |
 * | tf_hooks_are_on               | none                  | safe                | safe              |
 *
 * A handler runs in the thread that makes the call, without our lock. It must not wait for
 * the lock: the thread that holds it may itself wait for the dynamic linker, whose lock the
 * calling thread may hold. The handler of dlopen only tries it.
 *
 * A fork takes our lock first and releases it in parent and child, so that the hooks of the
 * child are complete. Hooks that are on stay on in the child. */
#ifndef TF32DTYPE_PROGRAMS_HOOKS_HOOKS_H
#define TF32DTYPE_PROGRAMS_HOOKS_HOOKS_H

#include "programs/hooks/slots.h"
#include "programs/hooks/stubs.h"

struct tf_hook {
    struct tf_stub *stub;
    tf_handler_fn *handler; /* the stub's handler while hooks are on */
    int always;             /* the stub keeps its handler while hooks are off */
};

/* The user of the hooks, who chooses the functions. All members are called with the
 * lock. */
struct tf_hook_user {
    tf_wanted_fn *wanted;
    /* Returns the new function of a slot, or NULL to leave the slot as it is. */
    void *(*stub_for)(const struct tf_slot *slot);
    /* Is called after all new objects were visited. */
    void (*looked)(void);
};

void tf_hooks_lock(void);
void tf_hooks_unlock(void);

/* Returns the stub of a hook: the one of an earlier call with the same original, handler
 * and facts, or a new one. Returns NULL if no stub is left, or if memory is short. The
 * caller holds the lock. */
void *tf_hook_new(void *original, tf_handler_fn *handler, void *facts, int always);

/* Returns the hook of a number, from 0 on; NULL after the last. The caller holds the
 * lock. */
const struct tf_hook *tf_hook(int number);

/* Reports from stub_for that memory was short: the visit of objects then fails, and a later
 * visit repeats it. The caller holds the lock. */
void tf_hooks_are_short(void);

/* Switches hooks on until as many calls of tf_hooks_end, and redirects the slots of objects
 * that were loaded since. Returns -1 if memory is short; hooks then are on or off as
 * before. `user` is the same in all calls. The caller holds the lock. */
int tf_hooks_begin(const struct tf_hook_user *user);

/* Ends the use that one tf_hooks_begin began. Returns whether hooks are off now. The caller
 * holds the lock. */
int tf_hooks_end(void);

/* Returns whether hooks are on. Needs no lock, so that handlers can call it. */
int tf_hooks_are_on(void);

#endif
