/* A block of counts a thread, so that counting needs no lock. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include "blas/counts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS = 256, NAMES = 512 };

/* All of it lies in shared memory, which is taken from the machine when it is touched. */
struct shared {
    atomic_int names_taken, lock;
    atomic_int in_use[BLOCKS];
    struct tf_blas_counts blocks[BLOCKS];
    struct tf_named_count names[NAMES];
};

static struct shared *_Atomic shared; /* NULL: nobody counts */
static pthread_key_t key;
/* Found without a call, as this library is no plug-in of many. */
static _Thread_local struct tf_blas_counts *own __attribute__((tls_model("initial-exec")));

/* When a thread ends: its counts stay, its block may be another's. */
static void give_back(void *block)
{
    const ptrdiff_t number = (struct tf_blas_counts *)block - shared->blocks;
    atomic_store(&shared->in_use[number], 0);
}

static void forget_block(void)
{
    own = NULL; /* it is the parent's */
    pthread_setspecific(key, NULL);
}

int tf_counts_prepare(void)
{
    if (shared) {
        return 0;
    }
    void *memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -1;
    }
    shared = memory;
    pthread_key_create(&key, give_back);
    pthread_atfork(NULL, NULL, forget_block);
    return 0;
}

static struct tf_blas_counts *take_block(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        int unused = 0;
        if (atomic_compare_exchange_strong(&shared->in_use[i], &unused, 1)) {
            own = &shared->blocks[i];
            pthread_setspecific(key, own);
            return own;
        }
    }
    return &shared->blocks[BLOCKS - 1]; /* threads share the last: some counts are lost */
}

void tf_blas_count(int fate, char type, int routine, double multiply_adds)
{
    if (!atomic_load_explicit(&shared, memory_order_acquire)) {
        return;
    }
    struct tf_blas_counts *block = own ? own : take_block();
    const int number = type == 's' ? 0 : type == 'd' ? 1 : type == 'c' ? 2 : 3;
    struct tf_blas_count *count = &block->of[fate][number][routine];
    count->calls++;
    count->multiply_adds += (uint64_t)multiply_adds;
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
            sum[i].calls += one[i].calls;
            sum[i].multiply_adds += one[i].multiply_adds;
        }
    }
}

struct tf_named_count *tf_named_count(int kind, const char *name)
{
    struct tf_named_count *found = NULL;
    int unlocked = 0;
    while (!atomic_compare_exchange_weak(&shared->lock, &unlocked, 1)) {
        unlocked = 0;
    }
    const int taken = atomic_load(&shared->names_taken);
    for (int i = 0; i < taken && !found; i++) {
        if (shared->names[i].kind == kind && strcmp(shared->names[i].name, name) == 0) {
            found = &shared->names[i];
        }
    }
    if (!found && taken < NAMES) {
        found = &shared->names[taken];
        found->kind = kind;
        strncpy(found->name, name, sizeof found->name - 1);
        atomic_store(&shared->names_taken, taken + 1);
    }
    atomic_store(&shared->lock, 0);
    return found;
}

const struct tf_named_count *tf_named_counts(int number)
{
    return shared && number < atomic_load(&shared->names_taken) ? &shared->names[number]
                                                                : NULL;
}
