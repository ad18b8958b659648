/* Asks every tenth of a second whether a call of seconds is to stop. */
#include "runtime/stops.h"

#include "runtime/platform.h"

enum { INTERVAL = 100000000 }; /* ns */

static tf_asked_fn *asked_outside;
static _Thread_local int never_stops;

void tf_stops_prepare(tf_asked_fn *asked) { asked_outside = asked; }

int tf_never_stop(int never)
{
    const int before = never_stops;
    never_stops = never;
    return before;
}

void tf_ask(struct tf_watch *watch)
{
    /* Of the thread, not of the call: many short calls make a long one. */
    static _Thread_local int64_t next;
    if (never_stops) {
        return;
    }
    const int64_t now = tf_coarse_time();
    if (now < next) {
        return;
    }
    next = now + INTERVAL;
    if (asked_outside && asked_outside()) {
        atomic_store_explicit(&watch->stopped, 1, memory_order_relaxed);
        next = 0; /* what is called before the stop has been told stops at once */
    }
}
