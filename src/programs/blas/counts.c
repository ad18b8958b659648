/* Keeps one block of counts per thread, so that counting needs no lock. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, F_ADD_SEALS */

#include "programs/blas/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers older than Linux 3.17, on which wheels are built, have none of these. */
#if defined __linux__ && !defined SYS_memfd_create
#if defined __x86_64__
#define SYS_memfd_create 319
#elif defined __aarch64__
#define SYS_memfd_create 279
#endif
#endif
#ifndef MFD_CLOEXEC
enum { MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2 };
#endif
#ifndef F_ADD_SEALS
enum { F_ADD_SEALS = 1033, F_GET_SEALS, F_SEAL_SEAL = 1, F_SEAL_SHRINK, F_SEAL_GROW = 4 };
#endif

enum { BLOCKS = 256, NAMES = 512, SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW };

/* The shared memory, of which untouched pages take no physical memory. The owner of a block
 * is the number of a process; 0 if the block is free. */
struct shared {
    atomic_int names_taken;
    atomic_int owners[BLOCKS];
    struct tf_blas_counts blocks[BLOCKS];
    struct tf_named_count names[NAMES];
};

static struct shared *_Atomic shared; /* never changes after it has been set */
static int of_a_file;
static pthread_key_t key;
/* The initial-exec model finds this variable without a call. Its static space in the
 * process is small, and is enough for this library. */
static _Thread_local struct tf_blas_counts *own __attribute__((tls_model("initial-exec")));

/* Frees the block of a thread that ends. Its counts stay; another thread may use it. */
static void give_back(void *block)
{
    const ptrdiff_t number = (struct tf_blas_counts *)block - shared->blocks;
    atomic_store(&shared->owners[number], 0);
}

static void forget_block(void)
{
    own = NULL; /* the block belongs to the parent */
    pthread_setspecific(key, NULL);
}

int tf_counts_are_shared(void) { return of_a_file; }

/* Returns a memory file with a copy of the counts, whose size is sealed, or -1. No folder
 * contains the file, so that it ends with the last process that has it open or mapped. Its
 * descriptor is at least 512 if possible: programs close or replace low ones. */
static int new_file(void)
{
#ifdef SYS_memfd_create
    const int file = (int)syscall(SYS_memfd_create, "tf32dtype counts",
                                  MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && write(file, shared, sizeof *shared) == (ssize_t)sizeof *shared &&
        fcntl(file, F_ADD_SEALS, SEALS) == 0) {
        const int high = fcntl(file, F_DUPFD_CLOEXEC, 512);
        if (high < 0) {
            return file;
        }
        close(file);
        return high;
    }
    close(file);
#endif
    return -1;
}

int tf_counts_share(char *path, size_t size)
{
    const int file = tf_counts_prepare() < 0 ? -1 : new_file();
    if (file < 0) {
        return -1;
    }
    /* Map the file at the same address, because threads have pointers into it. */
    if (mmap(shared, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
             0) == MAP_FAILED) {
        close(file);
        return -1;
    }
    /* The file stays open for processes that open this path. */
    snprintf(path, size, "/proc/%ld/fd/%d", (long)getpid(), file);
    return 0;
}

/* Returns whether a file is one that `new_file` of any process made. */
static int is_of_counts(int file)
{
    struct stat found;
    const int seals = fcntl(file, F_GET_SEALS); /* some systems add other seals */
    return seals >= 0 && (seals & SEALS) == SEALS && fstat(file, &found) == 0 &&
           (size_t)found.st_size == sizeof(struct shared);
}

static void prepare(void)
{
    const char *path = getenv("TF32DTYPE_BLAS_COUNTS");
    void *memory = MAP_FAILED;
    const int file = path && *path ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file >= 0 && is_of_counts(file)) {
        memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED,
                      file, 0);
        of_a_file = memory != MAP_FAILED;
    }
    if (file >= 0) {
        close(file);
    }
    if (memory == MAP_FAILED) {
        memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    if (memory == MAP_FAILED) {
        return;
    }
    pthread_key_create(&key, give_back);
    pthread_atfork(NULL, NULL, forget_block);
    atomic_store_explicit(&shared, memory, memory_order_release);
}

int tf_counts_prepare(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!shared) {
        prepare(); /* tries again if memory was short before */
    }
    pthread_mutex_unlock(&lock);
    return shared ? 0 : -1;
}

static struct tf_blas_counts *take_block(void)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < BLOCKS; i++) {
            int owner = atomic_load(&shared->owners[i]);
            /* In the second pass, take blocks of processes that ended without freeing
             * them. */
            const int is_free = owner == 0 || (pass && kill(owner, 0) && errno == ESRCH);
            if (is_free &&
                atomic_compare_exchange_strong(&shared->owners[i], &owner, getpid())) {
                own = &shared->blocks[i];
                pthread_setspecific(key, own);
                return own;
            }
        }
    }
    own = &shared->blocks[BLOCKS - 1]; /* many threads share the last: some calls are lost */
    return own;
}

/* Adds to a count that only this thread writes, which is cheaper than an atomic
 * addition. */
static void add_to(_Atomic uint64_t *sum, uint64_t more)
{
    const uint64_t before = atomic_load_explicit(sum, memory_order_relaxed);
    atomic_store_explicit(sum, before + more, memory_order_relaxed);
}

void tf_blas_count(int fate, char type, int routine, double multiply_adds)
{
    if (!atomic_load_explicit(&shared, memory_order_acquire)) {
        return;
    }
    struct tf_blas_counts *block = own ? own : take_block();
    const int number = type == 's' ? 0 : type == 'd' ? 1 : type == 'c' ? 2 : 3;
    struct tf_blas_count *count = &block->of[fate][number][routine];
    add_to(&count->calls, 1);
    add_to(&count->multiply_adds, (uint64_t)multiply_adds);
}

void tf_blas_total(struct tf_blas_counts *total)
{
    memset(total, 0, sizeof *total);
    if (!shared) {
        return;
    }
    const size_t count = sizeof *total / sizeof(struct tf_blas_count);
    struct tf_blas_count *sum = &total->of[0][0][0];
    for (int block = 0; block < BLOCKS; block++) {
        const struct tf_blas_count *one = &shared->blocks[block].of[0][0][0];
        for (size_t i = 0; i < count; i++) {
            add_to(&sum[i].calls, one[i].calls);
            add_to(&sum[i].multiply_adds, one[i].multiply_adds);
        }
    }
}

/* Takes no lock, because a process that is killed would keep it. Two threads may therefore
 * make two counts of one name; readers add them. */
struct tf_named_count *tf_named_count(int kind, const char *name)
{
    const int taken = atomic_load(&shared->names_taken);
    for (int i = 0; i < taken && i < NAMES; i++) {
        struct tf_named_count *one = &shared->names[i];
        if (atomic_load(&one->is_ready) && one->kind == kind &&
            strcmp(one->name, name) == 0) {
            return one;
        }
    }
    const int number = taken < NAMES ? atomic_fetch_add(&shared->names_taken, 1) : NAMES;
    if (number >= NAMES) {
        return NULL;
    }
    struct tf_named_count *fresh = &shared->names[number];
    fresh->kind = kind;
    strncpy(fresh->name, name, sizeof fresh->name - 1);
    atomic_store(&fresh->is_ready, 1);
    return fresh;
}

void tf_named_call(struct tf_named_count *count, uint64_t nanoseconds)
{
    atomic_fetch_add(&count->calls, 1);
    atomic_fetch_add(&count->nanoseconds, nanoseconds);
}

const struct tf_named_count *tf_named_counts(int number)
{
    return shared && number < NAMES && number < atomic_load(&shared->names_taken)
               ? &shared->names[number]
               : NULL;
}
