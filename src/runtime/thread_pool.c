#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "runtime/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/fp_environment.h"
#include "matmul/pack.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

/* -- memory ------------------------------------------------------------------------ */

/* Fresh memory costs more than a small product, so that it is kept from call to call:
 * as many workspaces as the threads that live have had at once, each in one call. Not
 * malloc's, which would keep what a thread's arena was given. */
enum { THREADS = 64 };
static _Atomic(struct tf_workspace *) kept[THREADS];
static atomic_ptrdiff_t existing, wanted;
static pthread_key_t share; /* of `wanted`: a thread's */

static struct tf_workspace *take_kept(void)
{
    for (int i = 0; i < THREADS; i++) {
        if (atomic_load_explicit(&kept[i], memory_order_relaxed)) {
            struct tf_workspace *work = atomic_exchange(&kept[i], NULL);
            if (work) {
                return work;
            }
        }
    }
    return NULL;
}

static struct tf_workspace *take_workspace(void)
{
    void *work = take_kept();
    if (work) {
        return work;
    }
    work = mmap(NULL, sizeof(struct tf_workspace), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (work == MAP_FAILED) {
        return NULL;
    }
    atomic_fetch_add(&existing, 1);
    return work;
}

static void free_workspace(struct tf_workspace *work)
{
    munmap(work, sizeof *work);
    atomic_fetch_sub(&existing, 1);
}

static void free_unwanted(void)
{
    while (atomic_load(&existing) > atomic_load(&wanted)) {
        struct tf_workspace *work = take_kept();
        if (!work) {
            return; /* it is in use: who returns it comes here too */
        }
        free_workspace(work);
    }
}

static void return_workspace(struct tf_workspace *work)
{
    for (int i = 0; i < THREADS; i++) {
        struct tf_workspace *none = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &none, work)) {
            free_unwanted();
            return;
        }
    }
    free_workspace(work);
}

/* This thread has needed so many at once. */
static void note_share(ptrdiff_t count)
{
    const ptrdiff_t before = (ptrdiff_t)pthread_getspecific(share);
    if (count > before && !pthread_setspecific(share, (void *)count)) {
        atomic_fetch_add(&wanted, count - before);
    }
}

/* When a thread ends. */
static void end_share(void *count)
{
    atomic_fetch_sub(&wanted, (ptrdiff_t)count);
    free_unwanted();
}

ptrdiff_t tf_workspaces(void) { return atomic_load(&existing); }

void tf_workers_free(void)
{
    for (struct tf_workspace *work; (work = take_kept());) {
        free_workspace(work);
    }
}

/* -- threads ----------------------------------------------------------------------- */

/* A thread that OpenMP has started does not live on in a forked child, which would wait
 * for it for ever. */
static int forked;

static void note_fork(void) { forked = 1; }

void tf_workers_prepare(void)
{
    pthread_key_create(&share, end_share);
#if defined(_OPENMP)
    pthread_atfork(NULL, NULL, note_fork);
#else
    (void)note_fork;
#endif
}

ptrdiff_t tf_threads_for(double shares)
{
    ptrdiff_t threads = 1;
    if (shares < 2) {
        return 1;
    }
#if defined(_OPENMP)
    threads = forked || omp_in_parallel() ? 1 : omp_get_max_threads();
#endif
    threads = shares < (double)threads ? (ptrdiff_t)shares : threads;
    return threads < 1 ? 1 : threads > THREADS ? THREADS : threads;
}

/* A call's tasks, of which each thread takes the next. */
struct tasks {
    tf_task_fn *function;
    const void *context;
    ptrdiff_t count;
    atomic_ptrdiff_t taken, done;
    struct tf_watch watch;
};

/* Those that one thread takes, from one on that is its own already. */
static unsigned do_share(struct tasks *tasks, ptrdiff_t task, struct tf_workspace *work)
{
    const struct tf_fp own = tf_fp_begin();
    unsigned raised = 0;
    while (task < tasks->count && !tf_stops(work)) {
        raised |= tasks->function(tasks->context, task, work);
        atomic_fetch_add_explicit(&tasks->done, 1, memory_order_relaxed);
        task = atomic_fetch_add_explicit(&tasks->taken, 1, memory_order_relaxed);
    }
    tf_fp_end(own, 0);
    return raised;
}

#if defined(_OPENMP)
/* The caller waits for the others by itself in a long call: while OpenMP waits nobody
 * asks whether to stop. Tasks are alike, and the caller has done one, so that what is
 * left of a short call is short. */
static void await_others(struct tasks *tasks, struct tf_workspace *work, int64_t began)
{
    enum { LONG = 10000000, NAP = 50000 }; /* ns */
    if (tf_coarse_time() - began < LONG) {
        return;
    }
    while (atomic_load_explicit(&tasks->done, memory_order_relaxed) < tasks->count &&
           !tf_stops(work)) {
        nanosleep(&(struct timespec){0, NAP}, NULL);
    }
}
#endif

int tf_do_tasks(tf_task_fn *function, const void *context, ptrdiff_t count,
                ptrdiff_t threads, unsigned *flags)
{
    struct tasks tasks = {.function = function, .context = context, .count = count};
    struct tf_workspace *works[THREADS];
    ptrdiff_t ready = 0;
    while (ready < threads && ready < count && (works[ready] = take_workspace())) {
        works[ready]->watch = &tasks.watch;
        works[ready]->asks = ready == 0;
        ready++;
    }
    if (!ready) {
        return count ? -1 : 0;
    }
    note_share(ready);
    unsigned raised = 0;
    atomic_store_explicit(&tasks.taken, 1, memory_order_relaxed); /* by the caller */
    if (ready == 1) {
        raised = do_share(&tasks, 0, works[0]);
    } else {
#if defined(_OPENMP)
        const int64_t began = tf_coarse_time();
#pragma omp parallel num_threads((int)ready) reduction(| : raised)
        {
            const int thread = omp_get_thread_num();
            if (thread == 0) {
                raised |= do_share(&tasks, 0, works[0]);
                await_others(&tasks, works[0], began);
            } else {
                raised |= do_share(
                    &tasks,
                    atomic_fetch_add_explicit(&tasks.taken, 1, memory_order_relaxed),
                    works[thread]);
            }
        }
#endif
    }
    for (ptrdiff_t i = 0; i < ready; i++) {
        return_workspace(works[i]);
    }
    *flags |= raised;
    return atomic_load_explicit(&tasks.watch.stopped, memory_order_relaxed) ? -1 : 0;
}
