/* Calls of seconds that can be stopped, as by Ctrl-C.
 *
 * The thread that made a call asks every tenth of a second whether to go on, by a
 * function from outside; the threads that help it look at what the answer was. */
#ifndef TF32DTYPE_RUNTIME_STOPS_H
#define TF32DTYPE_RUNTIME_STOPS_H

#include <stdatomic.h>

/* Of a call; all zero at first. */
struct tf_watch {
    atomic_int stopped;
};

/* Whether to stop. Any thread may call it. */
typedef int tf_asked_fn(void);

void tf_stops_prepare(tf_asked_fn *asked);

/* Has calls of this thread ask another function, NULL for the one from outside: those of
 * code that cannot be told of an exception. Returns the one before. */
tf_asked_fn *tf_stop_by(tf_asked_fn *asked);

/* Asks, if this thread has not done so for a tenth of a second. */
void tf_ask(struct tf_watch *watch);

/* Whether a call is to stop, by what is known; if this thread `asks`, it made the call.
 * To be called after each some 10 ms of work, or sooner. Once it is so it stays so. */
static inline int tf_is_stopped(struct tf_watch *watch, int asks)
{
    if (asks) {
        tf_ask(watch);
    }
    return atomic_load_explicit(&watch->stopped, memory_order_relaxed);
}

#endif
