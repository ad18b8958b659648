/* Installs a handler before the present one, and counts its signals. */
#define _POSIX_C_SOURCE 200809L /* sigaction */

#include "programs/blas/interrupts.h"

#include <stddef.h>

#include "runtime/stops.h"

static _Thread_local int begun; /* the count at tf_blas_begin_stops */
static _Thread_local int can_be_stopped;
static _Thread_local int handled; /* the count at the last call of ask_whether_waiting */
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
static int counts, is_installed; /* is_installed until the handler is removed here */
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

static int are_same(const struct sigaction *a, const struct sigaction *b)
{
    if ((a->sa_flags & SA_SIGINFO) != (b->sa_flags & SA_SIGINFO)) {
        return 0;
    }
    return a->sa_flags & SA_SIGINFO ? a->sa_sigaction == b->sa_sigaction
                                    : a->sa_handler == b->sa_handler;
}

void tf_interrupts_count(int (*is_waiting)(void))
{
    struct sigaction found;
    ask_whether_waiting = is_waiting;
    if (sigaction(SIGINT, NULL, &found) ||
        (!(found.sa_flags & SA_SIGINFO) &&
         (found.sa_handler == SIG_IGN || found.sa_handler == SIG_DFL))) {
        return;
    }
    main_thread = pthread_self();
    counts = 1;
    /* A handler installed after ours may call ours, which must not call that handler
     * again. */
    if (is_ours(&found) || (is_installed && !are_same(&found, &before))) {
        return;
    }
    before = found;
    struct sigaction own = found;
    own.sa_flags |= SA_SIGINFO;
    own.sa_sigaction = on_signal;
    counts = is_installed = sigaction(SIGINT, &own, NULL) == 0;
}

void tf_interrupts_forget(void)
{
    struct sigaction found;
    if (counts && !sigaction(SIGINT, NULL, &found) && is_ours(&found)) {
        is_installed = sigaction(SIGINT, &before, NULL) != 0;
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
