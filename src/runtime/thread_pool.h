/* Threads, and the memory that each works in. */
#ifndef TF32DTYPE_WORKERS_H
#define TF32DTYPE_WORKERS_H

#include <stddef.h>

struct tf_workspace; /* pack.h */

/* How many threads are to do work that is worth so many; and multiply-adds that are
 * worth one. */
ptrdiff_t tf_threads_for(double shares);

enum { TF_SHARE = 1 << 22 };

/* A task's number, and what they have in common; the flags that it raises. */
typedef unsigned tf_task_fn(const void *context, ptrdiff_t task,
                            struct tf_workspace *work);

/* Does `count` of them, each in the default floating-point environment, and adds what
 * they raise to *flags. Returns -1, with nothing done, if memory is short; or, with
 * some done, if the call was stopped. */
int tf_do_tasks(tf_task_fn *function, const void *context, ptrdiff_t count,
                ptrdiff_t threads, unsigned *flags);

static inline ptrdiff_t tf_pieces(ptrdiff_t whole, ptrdiff_t piece)
{
    return (whole + piece - 1) / piece;
}

/* Once. */
void tf_workers_prepare(void);

/* Gives back the memory that is kept from call to call. What an ended thread needed is
 * given back by itself. */
void tf_workers_free(void);

/* How many workspaces there are. */
ptrdiff_t tf_workspaces(void);

#endif
