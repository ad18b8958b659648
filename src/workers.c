#include "workers.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "fpstatus.h"
#include "pack.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>
#endif

/* -- memory ------------------------------------------------------------------------ */

/* As many as there are threads are kept from call to call: fresh memory costs more than
 * a small product. */
enum { THREADS = 64 };
static _Atomic(struct tf_workspace *) kept[THREADS];

static struct tf_workspace *take_workspace(void)
{
    for (int i = 0; i < THREADS; i++) {
        if (atomic_load_explicit(&kept[i], memory_order_relaxed)) {
            struct tf_workspace *work = atomic_exchange(&kept[i], NULL);
            if (work) {
                return work;
            }
        }
    }
    return aligned_alloc(64, (sizeof(struct tf_workspace) + 63) / 64 * 64);
}

static void return_workspace(struct tf_workspace *work)
{
    for (int i = 0; i < THREADS; i++) {
        struct tf_workspace *none = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &none, work)) {
            return;
        }
    }
    free(work);
}

void tf_workers_free(void)
{
    for (int i = 0; i < THREADS; i++) {
        free(atomic_exchange(&kept[i], NULL));
    }
#if defined(__GLIBC__)
    /* Else pieces of this size are kept, once one has been freed. */
    malloc_trim(0);
#endif
}

/* -- threads ----------------------------------------------------------------------- */

/* A thread that OpenMP has started does not live on in a forked child, which would wait
 * for it for ever. */
static int forked;

static void note_fork(void) { forked = 1; }

void tf_workers_prepare(void)
{
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

int tf_do_tasks(tf_task_fn *function, const void *context, ptrdiff_t tasks,
                ptrdiff_t threads, unsigned *flags)
{
    struct tf_workspace *works[THREADS];
    ptrdiff_t ready = 0;
    while (ready < threads && ready < tasks && (works[ready] = take_workspace())) {
        ready++;
    }
    if (!ready) {
        return tasks ? -1 : 0;
    }
    unsigned raised = 0;
    if (ready == 1) {
        const struct tf_fp own = tf_fp_begin();
        for (ptrdiff_t task = 0; task < tasks; task++) {
            raised |= function(context, task, works[0]);
        }
        tf_fp_end(own, 0);
    } else {
#if defined(_OPENMP)
#pragma omp parallel num_threads((int)ready) reduction(| : raised)
        {
            const struct tf_fp own = tf_fp_begin();
#pragma omp for schedule(dynamic)
            for (ptrdiff_t task = 0; task < tasks; task++) {
                raised |= function(context, task, works[omp_get_thread_num()]);
            }
            tf_fp_end(own, 0);
        }
#endif
    }
    for (ptrdiff_t i = 0; i < ready; i++) {
        return_workspace(works[i]);
    }
    *flags |= raised;
    return 0;
}
