/* Implements platform.h with Windows. */
#if defined(_WIN32)

#include "runtime/platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

void *tf_pages_take(size_t size)
{
    return VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void tf_pages_give(void *pages, size_t size)
{
    (void)size; /* VirtualFree knows the size */
    VirtualFree(pages, 0, MEM_RELEASE);
}

/* Uses fiber-local storage: thread-local storage calls no function when a thread ends. */
void tf_thread_key_make(tf_thread_key *key, void (*end)(void *))
{
    *key = FlsAlloc((PFLS_CALLBACK_FUNCTION)end);
}

void *tf_thread_get(tf_thread_key key) { return FlsGetValue(key); }

int tf_thread_set(tf_thread_key key, void *value) { return !FlsSetValue(key, value); }

void tf_at_fork(void (*in_child)(void)) { (void)in_child; /* no process forks */ }

void tf_nap(int64_t nanoseconds) { Sleep((DWORD)((nanoseconds + 999999) / 1000000)); }

int64_t tf_coarse_time(void) { return (int64_t)GetTickCount64() * 1000000; }

#else
typedef int tf_no_windows; /* C has no empty file */
#endif
