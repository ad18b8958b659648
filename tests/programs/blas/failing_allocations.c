/* A library to preload: malloc, calloc, realloc and mmap fail for calls from one object
 * while armed, from call number `left` on, or only at that call. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static uintptr_t first, end;
static volatile long left, refused, armed, once;

void arm(uintptr_t from, uintptr_t to, long calls, long only_one)
{
    first = from;
    end = to;
    left = calls;
    once = only_one;
    refused = 0;
    armed = 1;
}

long disarm(void)
{
    armed = 0;
    return refused;
}

static int refuses(const void *caller)
{
    if (!armed || (uintptr_t)caller < first || (uintptr_t)caller >= end || left-- > 0 ||
        (once && refused)) {
        return 0;
    }
    refused++;
    return 1;
}

void *malloc(size_t size)
{
    return refuses(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return refuses(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return refuses(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    if (refuses(__builtin_return_address(0))) {
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}
