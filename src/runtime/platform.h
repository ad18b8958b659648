/* Functions of the operating system: platform_posix.c or platform_windows.c has them. */
#ifndef TF32DTYPE_RUNTIME_PLATFORM_H
#define TF32DTYPE_RUNTIME_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

/* Returns fresh pages of zeros, or NULL if memory is short. */
void *tf_pages_take(size_t size);
void tf_pages_give(void *pages, size_t size);

/* A key of one pointer per thread, NULL at first. When a thread ends whose pointer is not
 * NULL, `end` is called with the pointer. */
typedef unsigned long tf_thread_key;
void tf_thread_key_make(tf_thread_key *key, void (*end)(void *));
void *tf_thread_get(tf_thread_key key);
int tf_thread_set(tf_thread_key key, void *value); /* 0, or not 0 if memory is short */

/* Registers a function that each process forked from this one calls after the fork. */
void tf_at_fork(void (*in_child)(void));

void tf_nap(int64_t nanoseconds);

/* Returns nanoseconds since a fixed moment, to some milliseconds: cheap to read. */
int64_t tf_coarse_time(void);

#endif
