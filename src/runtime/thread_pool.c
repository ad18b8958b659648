/* A pool of scratch memory, and tasks that OpenMP's threads take from a list. */
#include "runtime/thread_pool.h"

#include <stdatomic.h>

#include "runtime/asserts.h"
#include "runtime/fp_environment.h"
#include "runtime/platform.h"
#include "runtime/reserve.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

/* -- memory ------------------------------------------------------------------------ */

/* Fresh memory costs more than a small matrix product. The pool therefore keeps areas from
 * call to call: as many as the living threads have needed at once, each in one call. The
 * areas are not malloc's, which would keep the memory that a thread's arena got. */
enum { THREADS = 64 };
static size_t scratch_size;
static _Atomic(void *) kept[THREADS];
static atomic_ptrdiff_t existing, wanted;
static tf_thread_key share; /* of `wanted`: a thread's own */

static void *take_kept(void)
{
    for (int i = 0; i < THREADS; i++) {
        if (atomic_load_explicit(&kept[i], memory_order_relaxed)) {
            void *area = atomic_exchange(&kept[i], NULL);
            if (area) {
                return area;
            }
        }
    }
    return NULL;
}

static void *take_scratch(void)
{
    if (tf_in_reserve()) {
        return tf_room(scratch_size);
    }
    void *area = take_kept();
    if (area) {
        return area;
    }
    area = tf_pages_take(scratch_size);
    if (area) {
        atomic_fetch_add(&existing, 1);
    }
    return area;
}

static void free_scratch(void *area)
{
    tf_pages_give(area, scratch_size);
    atomic_fetch_sub(&existing, 1);
}

static void free_unwanted(void)
{
    while (atomic_load(&existing) > atomic_load(&wanted)) {
        void *area = take_kept();
        if (!area) {
            return; /* in use: return_scratch does the same later */
        }
        free_scratch(area);
    }
}

static void return_scratch(void *area)
{
    if (tf_in_reserve()) {
        tf_room_free(area);
        return;
    }
    for (int i = 0; i < THREADS; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &none, area)) {
            free_unwanted();
            return;
        }
    }
    free_scratch(area);
}

/* Records that this thread has needed `count` areas at once. */
static void note_share(ptrdiff_t count)
{
    const ptrdiff_t before = (ptrdiff_t)tf_thread_get(share);
    if (count > before && !tf_thread_set(share, (void *)count)) {
        atomic_fetch_add(&wanted, count - before);
    }
}

/* Withdraws a thread's share of `wanted` when the thread ends. */
static void end_share(void *count)
{
    atomic_fetch_sub(&wanted, (ptrdiff_t)count);
    free_unwanted();
}

ptrdiff_t tf_workspaces(void) { return atomic_load(&existing); }

void tf_workers_free(void)
{
    for (void *area; (area = take_kept());) {
        free_scratch(area);
    }
}

/* -- threads ----------------------------------------------------------------------- */

/* Set in a forked child, which must not wait for the threads that OpenMP started in its
 * parent: they do not exist in the child. */
static int forked;

static void note_fork(void) { forked = 1; }

void tf_workers_prepare(size_t scratch)
{
    scratch_size = scratch;
    tf_thread_key_make(&share, end_share);
#if defined(_OPENMP)
    tf_at_fork(note_fork);
#else
    (void)note_fork;
#endif
}

ptrdiff_t tf_threads_for(double shares)
{
    ptrdiff_t threads = 1;
    if (shares < 2 || tf_in_reserve()) {
        return 1;
    }
#if defined(_OPENMP)
    threads = forked || omp_in_parallel() ? 1 : omp_get_max_threads();
#endif
    threads = shares < (double)threads ? (ptrdiff_t)shares : threads;
    return threads < 1 ? 1 : threads > THREADS ? THREADS : threads;
}

/* The tasks of a call, of which each thread takes the next. */
struct tasks {
    tf_task_fn *function;
    const void *context;
    ptrdiff_t count;
    atomic_ptrdiff_t taken, done;
    struct tf_watch watch;
};

/* Does `task`, which this thread has already taken, and then those that it takes. */
static unsigned do_share(struct tasks *tasks, ptrdiff_t task, struct tf_worker *worker)
{
    const struct tf_fp own = tf_fp_begin();
    unsigned raised = 0;
    while (task < tasks->count && !tf_worker_stops(worker)) {
        raised |= tasks->function(tasks->context, task, worker);
        atomic_fetch_add_explicit(&tasks->done, 1, memory_order_relaxed);
        task = atomic_fetch_add_explicit(&tasks->taken, 1, memory_order_relaxed);
    }
    tf_fp_end(own, 0);
    return raised;
}

#if defined(_OPENMP)
/* Waits for the other threads in a long call. While OpenMP waits, no thread asks whether to
 * stop. Tasks are alike, and the caller has done one: the rest of a short call is short. */
static void await_others(struct tasks *tasks, struct tf_worker *worker, int64_t began)
{
    enum { LONG = 10000000, NAP = 50000 }; /* ns */
    if (tf_coarse_time() - began < LONG) {
        return;
    }
    while (atomic_load_explicit(&tasks->done, memory_order_relaxed) < tasks->count &&
           !tf_worker_stops(worker)) {
        tf_nap(NAP);
    }
}
#endif

int tf_do_tasks(tf_task_fn *function, const void *context, ptrdiff_t count,
                ptrdiff_t threads, unsigned *flags)
{
    TF_ASSERT(count == 0 || (count > 0 && threads > 0));
    TF_ASSERT(scratch_size > 0);
    struct tasks tasks = {.function = function, .context = context, .count = count};
    struct tf_worker workers[THREADS];
    ptrdiff_t ready = 0;
    for (void *scratch; ready < threads && ready < count && (scratch = take_scratch());) {
        workers[ready] = (struct tf_worker){&tasks.watch, ready == 0, scratch};
        ready++;
    }
    if (!ready) {
        return count ? -1 : 0;
    }
    if (!tf_in_reserve()) {
        note_share(ready);
    }
    unsigned raised = 0;
    atomic_store_explicit(&tasks.taken, 1, memory_order_relaxed); /* by the caller */
    if (ready == 1) {
        raised = do_share(&tasks, 0, &workers[0]);
    } else {
#if defined(_OPENMP)
        const int64_t began = tf_coarse_time();
#pragma omp parallel num_threads((int)ready) reduction(| : raised)
        {
            const int thread = omp_get_thread_num();
            if (thread == 0) {
                raised |= do_share(&tasks, 0, &workers[0]);
                await_others(&tasks, &workers[0], began);
            } else {
                raised |= do_share(
                    &tasks,
                    atomic_fetch_add_explicit(&tasks.taken, 1, memory_order_relaxed),
                    &workers[thread]);
            }
        }
#endif
    }
    for (ptrdiff_t i = 0; i < ready; i++) {
        return_scratch(workers[i].scratch);
    }
    *flags |= raised;
    return atomic_load_explicit(&tasks.watch.stopped, memory_order_relaxed) ? -1 : 0;
}
