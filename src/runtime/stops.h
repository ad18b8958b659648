/* Calls of seconds that can be stopped, for example by Ctrl-C.
 *
 * The thread that made a call asks every tenth of a second whether to continue, by a
 * function from outside. The threads that help it read the answer. */
#ifndef TF32DTYPE_RUNTIME_STOPS_H
#define TF32DTYPE_RUNTIME_STOPS_H

#include <stdatomic.h>

/* The state of one call; all zero at first. */
struct tf_watch {
    atomic_int stopped;
};

/* Returns whether to stop. Any thread may call it. */
typedef int tf_asked_fn(void);

void tf_stops_prepare(tf_asked_fn *asked);

/* Sets the function that calls of this thread ask, NULL for the one of tf_stops_prepare.
 * Code that cannot receive an exception sets its own. Returns the function before. */
tf_asked_fn *tf_stop_by(tf_asked_fn *asked);

/* Asks whether to stop, unless this thread has asked during the last tenth of a second. */
void tf_ask(struct tf_watch *watch);

/* Returns whether a call is known to be stopped. If this thread `asks`, it made the call.
 * Call this after each 10 ms of work, or sooner. A stopped call stays stopped. */
static inline int tf_is_stopped(struct tf_watch *watch, int asks)
{
    if (asks) {
        tf_ask(watch);
    }
    return atomic_load_explicit(&watch->stopped, memory_order_relaxed);
}

#endif
