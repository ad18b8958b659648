/* A table of lines. One that is new is entered under a mutex; it is found without. */
#include "programs/arithmetic/lines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/platform.h"

enum { LINES = 1 << 14, PROBES = 64 };

static struct tf_line *lines;
static const struct tf_source_finder *finder;
static pthread_mutex_t entering = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t left_out;
/* Of a forked child: another thread may have held a lock, and it adds nothing. */
static int is_child;

static void note_child(void) { is_child = 1; }

/* The table is kept for ever: a thread may still be adding to it. */
static void prepare(void)
{
    lines = calloc(LINES, sizeof *lines);
    if (lines) {
        tf_at_fork(note_child);
    }
}

int tf_lines_begin(const struct tf_source_finder *with)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    if (!lines) {
        return -1;
    }
    for (size_t i = 0; i < LINES; i++) {
        if (atomic_load(&lines[i].key)) {
            memset(&lines[i], 0, sizeof lines[i]);
        }
    }
    atomic_store(&left_out, 0);
    finder = with;
    return 0;
}

static uint64_t key_of(const void *what, const struct tf_source *source)
{
    uint64_t x = source->key ^ (uint64_t)(uintptr_t)what * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 31) * UINT64_C(0xD6E8FEB86659FD93);
    return (x ^ x >> 32) | 1;
}

static void enter(struct tf_line *line, uint64_t key, const void *what,
                  const struct tf_source *source)
{
    pthread_mutex_lock(&entering);
    if (!atomic_load(&line->key)) {
        line->what = what;
        line->source = *source;
        memset(&line->figures, 0, sizeof line->figures); /* a late call may have added */
        if (source->key) {
            finder->fill(&line->source);
        }
        atomic_store_explicit(&line->key, key, memory_order_release);
    }
    pthread_mutex_unlock(&entering);
}

static struct tf_line *line_of(const void *what)
{
    struct tf_source source;
    if (finder->find(&source) < 0) {
        memset(&source, 0, sizeof source);
    }
    const uint64_t key = key_of(what, &source);
    for (int probe = 0; probe < PROBES; probe++) {
        struct tf_line *line = &lines[((key >> 48) + (uint64_t)probe) % LINES];
        if (!atomic_load_explicit(&line->key, memory_order_acquire)) {
            enter(line, key, what, &source);
        }
        if (atomic_load_explicit(&line->key, memory_order_acquire) == key) {
            return line;
        }
    }
    return NULL;
}

static void lock_line(struct tf_line *line)
{
    while (__atomic_exchange_n(&line->lock, 1, __ATOMIC_ACQUIRE)) {
    }
}

static void unlock_line(struct tf_line *line)
{
    __atomic_store_n(&line->lock, 0, __ATOMIC_RELEASE);
}

void tf_lines_add(const void *what, const struct tf_figures *figures)
{
    struct tf_line *line = is_child ? NULL : line_of(what);
    if (!line) {
        atomic_fetch_add(&left_out, 1);
        return;
    }
    lock_line(line);
    tf_add_figures(&line->figures, figures);
    unlock_line(line);
}

struct tf_figures tf_figures_of(const struct tf_line *line)
{
    struct tf_line *own = (struct tf_line *)line;
    if (is_child) {
        return own->figures; /* which nobody changes */
    }
    lock_line(own);
    const struct tf_figures figures = own->figures;
    unlock_line(own);
    return figures;
}

const struct tf_line *tf_lines(size_t number)
{
    for (size_t i = 0; lines && i < LINES; i++) {
        if (atomic_load(&lines[i].key) && number-- == 0) {
            return &lines[i];
        }
    }
    return NULL;
}

uint64_t tf_lines_left_out(void) { return atomic_load(&left_out); }
