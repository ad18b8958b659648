/* Implements platform.h with POSIX. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, CLOCK_MONOTONIC_COARSE */

#include "runtime/platform.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/asserts.h"

void *tf_pages_take(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void tf_pages_give(void *pages, size_t size) { munmap(pages, size); }

TF_STATIC_ASSERT(sizeof(pthread_key_t) <= sizeof(tf_thread_key), "a key fits");

void tf_thread_key_make(tf_thread_key *key, void (*end)(void *))
{
    pthread_key_t made = 0;
    pthread_key_create(&made, end);
    *key = made;
}

void *tf_thread_get(tf_thread_key key) { return pthread_getspecific((pthread_key_t)key); }

int tf_thread_set(tf_thread_key key, void *value)
{
    return pthread_setspecific((pthread_key_t)key, value);
}

void tf_at_fork(void (*in_child)(void)) { pthread_atfork(NULL, NULL, in_child); }

void tf_nap(int64_t nanoseconds)
{
    const int64_t second = INT64_C(1000000000);
    const struct timespec nap = {.tv_sec = (time_t)(nanoseconds / second),
                                 .tv_nsec = (long)(nanoseconds % second)};
    nanosleep(&nap, NULL);
}

int64_t tf_coarse_time(void)
{
#if defined(CLOCK_MONOTONIC_COARSE)
    const clockid_t clock = CLOCK_MONOTONIC_COARSE;
#else
    const clockid_t clock = CLOCK_MONOTONIC;
#endif
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#else
typedef int tf_no_posix; /* C has no empty file */
#endif
