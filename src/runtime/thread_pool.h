/* Threads, and the scratch memory that each thread works in. */
#ifndef TF32DTYPE_RUNTIME_THREAD_POOL_H
#define TF32DTYPE_RUNTIME_THREAD_POOL_H

#include <stddef.h>

#include "runtime/stops.h"

/* A thread of a call, as the call's tasks see it. */
struct tf_worker {
    struct tf_watch *watch; /* of the call */
    int asks;               /* this thread made the call: see tf_is_stopped */
    void *scratch;          /* of the pool's size, page-aligned, with whatever it holds */
};

/* Returns whether the call is to stop. The contents of the scratch then do not count. */
static inline int tf_worker_stops(struct tf_worker *worker)
{
    return tf_is_stopped(worker->watch, worker->asks);
}

/* Returns the number of threads for work of `shares` units, each enough for one thread: 1
 * for less than two units, and at most OpenMP's number. A unit of matrix products is
 * TF_SHARE multiply-adds. */
ptrdiff_t tf_threads_for(double shares);

enum { TF_SHARE = 1 << 22 };

/* Does one task, given its number and the context of all tasks. Returns raised flags. */
typedef unsigned tf_task_fn(const void *context, ptrdiff_t task, struct tf_worker *worker);

/* Does `count` tasks, each in the default floating-point environment, and adds their flags
 * to *flags. Returns -1 if memory is short, with no task done, or if the call was stopped,
 * with some tasks done. */
int tf_do_tasks(tf_task_fn *function, const void *context, ptrdiff_t count,
                ptrdiff_t threads, unsigned *flags);

/* Sets the bytes of scratch that each thread gets. Call this once, before any task. */
void tf_workers_prepare(size_t scratch);

/* Frees the memory that is kept from call to call. The end of a thread frees the memory
 * that only this thread needed. */
void tf_workers_free(void);

/* Returns the number of scratch areas, in use or kept. */
ptrdiff_t tf_workspaces(void);

#endif
