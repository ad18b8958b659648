/* What is asked of the operating system: platform_posix.c or platform_windows.c does it. */
#ifndef TF32DTYPE_RUNTIME_PLATFORM_H
#define TF32DTYPE_RUNTIME_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

/* Fresh pages, all zero; NULL if memory is short. */
void *tf_pages_take(size_t size);
void tf_pages_give(void *pages, size_t size);

/* A pointer a thread, NULL at first. When a thread ends whose pointer is not NULL, `end`
 * is called with it. */
typedef unsigned long tf_thread_key;
void tf_thread_key_make(tf_thread_key *key, void (*end)(void *));
void *tf_thread_get(tf_thread_key key);
int tf_thread_set(tf_thread_key key, void *value); /* 0, or not if memory is short */

/* Has a function called in each process that is forked from this one. */
void tf_at_fork(void (*in_child)(void));

void tf_nap(int64_t nanoseconds);

/* Nanoseconds since some moment, to some milliseconds: cheap to read. */
int64_t tf_coarse_time(void);

#endif
