/* Hooks: stubs in the slots of this process's libraries, and the handler of each.
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
 * A fork takes our lock first and gives it back in parent and child, so that the child finds
 * hooks that are complete. They stay on there if they were on. */
#ifndef TF32DTYPE_PROGRAMS_HOOKS_HOOKS_H
#define TF32DTYPE_PROGRAMS_HOOKS_HOOKS_H

#include "programs/hooks/slots.h"
#include "programs/hooks/stubs.h"

struct tf_hook {
    struct tf_stub *stub;
    tf_handler_fn *handler; /* what the stub has while hooks are on */
    int always;             /* and while they are off, too */
};

/* Who wants which functions. Both are called with the lock. */
struct tf_hook_user {
    tf_wanted_fn *wanted;
    /* Returns what a slot is to lead to, or NULL to leave it. */
    void *(*stub_for)(const struct tf_slot *slot);
    /* Called when all new objects were looked at. */
    void (*looked)(void);
};

void tf_hooks_lock(void);
void tf_hooks_unlock(void);

/* Returns a hook's function: the one that was made before for the same arguments, or a new
 * one; NULL if there are no more stubs, or memory is short. With the lock. */
void *tf_hook_new(void *original, tf_handler_fn *handler, void *facts, int always);

/* Returns one hook after the other, from 0 on; NULL at the end. With the lock. */
const struct tf_hook *tf_hook(int number);

/* Has the look at objects fail, and be repeated later: memory was short. With the lock. */
void tf_hooks_are_short(void);

/* Switches hooks on until as many calls of tf_hooks_end, and looks at the objects that came
 * since. Returns -1 if memory is short; then hooks are as before. `user` is the same in all
 * calls. With the lock. */
int tf_hooks_begin(const struct tf_hook_user *user);

/* Ends what one tf_hooks_begin began. Returns whether hooks are off now. With the lock. */
int tf_hooks_end(void);

/* Whether hooks are on. Without the lock: for handlers. */
int tf_hooks_are_on(void);

#endif
