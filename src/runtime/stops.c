/* Asks every tenth of a second whether a call of seconds is to stop. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */

#include "runtime/stops.h"

#include <time.h>

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

int64_t tf_coarse_time(void)
{
#if defined(CLOCK_MONOTONIC_COARSE)
    const clockid_t clock = CLOCK_MONOTONIC_COARSE;
#else
    const clockid_t clock = CLOCK_MONOTONIC;
#endif
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
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
