/* Asks every tenth of a second whether a call that takes seconds is to stop. */
#include "runtime/stops.h"

#include "runtime/platform.h"

enum { INTERVAL = 100000000 }; /* ns */

static tf_asked_fn *asked_outside;
static _Thread_local tf_asked_fn *asked_instead;

void tf_stops_prepare(tf_asked_fn *asked) { asked_outside = asked; }

tf_asked_fn *tf_stop_by(tf_asked_fn *asked)
{
    tf_asked_fn *before = asked_instead;
    asked_instead = asked;
    return before;
}

void tf_ask(struct tf_watch *watch)
{
    /* The time is of the thread, not of the call: many short calls make a long one. */
    static _Thread_local int64_t next;
    const int64_t now = tf_coarse_time();
    if (now < next) {
        return;
    }
    next = now + INTERVAL;
    tf_asked_fn *asked = asked_instead ? asked_instead : asked_outside;
    if (asked && asked()) {
        atomic_store_explicit(&watch->stopped, 1, memory_order_relaxed);
        next = 0; /* calls before the stop has been reported stop at once */
    }
}
