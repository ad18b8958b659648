/* A handler before the one that there is, and what it counts. */
#define _POSIX_C_SOURCE 200809L /* sigaction */

#include "blas/interrupts.h"

#include <stddef.h>

#include "runtime/stops.h"

static _Thread_local int begun; /* the count then; of this thread */
static _Thread_local int can_be_stopped;
static _Thread_local int handled; /* the count when no signal was waiting */
static int (*ask_whether_waiting)(void);

#if defined(_WIN32)

void tf_interrupts_count(int (*is_waiting)(void)) { (void)is_waiting; }
void tf_interrupts_forget(void) {}
static int count_now(void) { return 0; }
static int is_main_thread(void) { return 0; }

#else

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static struct sigaction before;
static atomic_int count;
static int counts;
static pthread_t main_thread;

static void on_signal(int number, siginfo_t *information, void *context)
{
    atomic_fetch_add(&count, 1);
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, information, context);
    } else if (before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL) {
        before.sa_handler(number);
    }
}

static int is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

void tf_interrupts_count(int (*is_waiting)(void))
{
    struct sigaction found;
    ask_whether_waiting = is_waiting;
    if (sigaction(SIGINT, NULL, &found) || is_ours(&found) ||
        (!(found.sa_flags & SA_SIGINFO) &&
         (found.sa_handler == SIG_IGN || found.sa_handler == SIG_DFL))) {
        return;
    }
    before = found;
    main_thread = pthread_self();
    struct sigaction own = found;
    own.sa_flags |= SA_SIGINFO;
    own.sa_sigaction = on_signal;
    counts = sigaction(SIGINT, &own, NULL) == 0;
}

void tf_interrupts_forget(void)
{
    struct sigaction found;
    if (counts && !sigaction(SIGINT, NULL, &found) && is_ours(&found)) {
        sigaction(SIGINT, &before, NULL);
    }
    counts = 0;
}

static int count_now(void) { return atomic_load_explicit(&count, memory_order_relaxed); }
static int is_main_thread(void) { return counts && pthread_equal(main_thread, pthread_self()); }

#endif

void tf_blas_begin_stops(int can_stop)
{
    begun = count_now();
    can_be_stopped = can_stop && is_main_thread();
    if (can_be_stopped && begun != handled) {
        handled = begun;
        begun -= ask_whether_waiting();
    }
    tf_stop_by(tf_blas_is_stopped);
}

void tf_blas_end_stops(void)
{
    can_be_stopped = 0;
    tf_stop_by(NULL);
}

int tf_blas_is_stopped(void) { return can_be_stopped && count_now() != begun; }
