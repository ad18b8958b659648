/* Threads, and the scratch memory that each works in. */
#ifndef TF32DTYPE_RUNTIME_THREAD_POOL_H
#define TF32DTYPE_RUNTIME_THREAD_POOL_H

#include <stddef.h>

#include "runtime/stops.h"

/* A thread of a call, as its tasks see it. */
struct tf_worker {
    struct tf_watch *watch; /* of the call */
    int asks;               /* this thread made the call: see tf_is_stopped */
    void *scratch;          /* of the pool's size, page-aligned, with whatever it holds */
};

/* Whether the call is to stop; what is in the scratch then does not count. */
static inline int tf_worker_stops(struct tf_worker *worker)
{
    return tf_is_stopped(worker->watch, worker->asks);
}

/* Returns the number of threads for work of `shares` units, each worth a thread: 1 if
 * there are less than two, and no more than OpenMP offers. A unit of products is TF_SHARE
 * multiply-adds. */
ptrdiff_t tf_threads_for(double shares);

enum { TF_SHARE = 1 << 22 };

/* A task's number, and what they have in common; the flags that it raises. */
typedef unsigned tf_task_fn(const void *context, ptrdiff_t task, struct tf_worker *worker);

/* Does `count` of them, each in the default floating-point environment, and adds what
 * they raise to *flags. Returns -1, with nothing done, if memory is short; or, with
 * some done, if the call was stopped. */
int tf_do_tasks(tf_task_fn *function, const void *context, ptrdiff_t count,
                ptrdiff_t threads, unsigned *flags);

/* Sets the bytes of scratch that each thread gets. To be called once, before any task. */
void tf_workers_prepare(size_t scratch);

/* Gives back the memory that is kept from call to call. What an ended thread needed is
 * given back by itself. */
void tf_workers_free(void);

/* Returns how many scratch areas there are, in use or kept. */
ptrdiff_t tf_workspaces(void);

#endif
