/* Call sites: lines of source that a call comes from, and tables of facts about them.
 *
 * A table finds an entry by a key. Threads find entries without a lock; a new entry is made
 * under the one mutex that all tables share. Facts that change (counts) have a lock of their
 * own in each entry. Nothing here is safe in a signal handler.
 *
 * In a forked child no thread gives back a lock that another thread held. So the mutex is
 * renewed there, and a table of counts is stopped: until it is cleared, it finds no entries,
 * and its locks do nothing. */
#ifndef TF32DTYPE_PROGRAMS_CALL_SITES_CALL_SITES_H
#define TF32DTYPE_PROGRAMS_CALL_SITES_CALL_SITES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A call site, as the finder of the language describes it. */
struct tf_source {
    uint64_t key;                 /* the same for the same call site; 0: not known */
    const char *file[2];          /* of the user, and of a library; or NULL */
    const char *function[2];
    int line[2];
    const void *details[4];       /* for `fill` */
    int offsets[2];
};

/* `find` gives a key in every call, `fill` the rest when a call site is new. */
struct tf_source_finder {
    int (*find)(struct tf_source *source); /* 0, or -1: none */
    void (*fill)(struct tf_source *source);
};

/* The head of each entry of a table. */
struct tf_site {
    _Atomic uint64_t key; /* 0: no entry yet */
    int lock;
};

/* A table is static, or never freed. Its owner sets the members before `sites`. */
struct tf_site_table {
    size_t count, size; /* entries, a power of two, and the bytes of one */
    int has_counts;     /* entries are locked and changed */
    void (*in_child)(void); /* called in a forked child; or NULL */
    char *_Atomic sites;
    _Atomic int is_stopped;
    struct tf_site_table *next;
};

/* Returns a key that depends on all bits of two numbers, and is not 0. */
static inline uint64_t tf_site_key(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b ^ b >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 32) * UINT64_C(0x94D049BB133111EB);
    return (x ^ x >> 31) | 1;
}

/* Fills a new entry, under the mutex. */
typedef void tf_site_fill_fn(struct tf_site *site, const void *context);

/* tf_site_of, where the entry is not the first that the key leads to. */
struct tf_site *tf_site_probe(struct tf_site_table *table, uint64_t key,
                              tf_site_fill_fn *fill, const void *context);

static inline struct tf_site *tf_site_in(const struct tf_site_table *table, char *sites,
                                         size_t number)
{
    return (struct tf_site *)(void *)(sites + (number & (table->count - 1)) * table->size);
}

/* Returns the entry of a key, a new one if there is none. NULL if the table is full or
 * stopped, or memory is short. */
static inline struct tf_site *tf_site_of(struct tf_site_table *table, uint64_t key,
                                         tf_site_fill_fn *fill, const void *context)
{
    char *sites = atomic_load_explicit(&table->sites, memory_order_acquire);
    if (sites && !atomic_load_explicit(&table->is_stopped, memory_order_relaxed)) {
        struct tf_site *site = tf_site_in(table, sites, (size_t)(key >> 32));
        if (atomic_load_explicit(&site->key, memory_order_acquire) == key) {
            return site;
        }
    }
    return tf_site_probe(table, key, fill, context);
}

/* Returns the entry of a key; NULL if there is none. Takes no lock, not even the mutex. */
struct tf_site *tf_site_find(const struct tf_site_table *table, uint64_t key);

/* Returns one entry after the other, from 0 on; NULL at the end. */
struct tf_site *tf_site_at(const struct tf_site_table *table, size_t number);

/* Returns the first entry from a position on, which becomes the next one's; NULL at the end. */
struct tf_site *tf_site_from(const struct tf_site_table *table, size_t *position);

/* Empties a table, which is no longer stopped, after a call of `drop` for each entry (NULL:
 * none). Threads may still have entries of it. Returns -1 if memory is short. */
int tf_sites_clear(struct tf_site_table *table, void (*drop)(struct tf_site *site));

/* Calls a function for each entry, under the mutex. */
void tf_sites_update(struct tf_site_table *table, void (*update)(struct tf_site *site));

/* Locks an entry of a table of counts. */
void tf_site_lock(const struct tf_site_table *table, struct tf_site *site);
void tf_site_unlock(struct tf_site *site);

#endif
