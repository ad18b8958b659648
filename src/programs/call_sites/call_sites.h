/* Call sites: lines of source that a call comes from, and tables of facts about them.
 *
 * A table finds an entry by a key. Threads find entries without a lock; a new entry is made
 * under the one mutex that all tables share. Facts that change (counts) have a lock of
 * their own in each entry. Nothing here is safe in a signal handler.
 *
 * A lock that another thread held at a fork is never released in the child. Therefore the
 * child makes a new mutex, and stops tables of counts: until such a table is cleared, it
 * finds no entries, and its locks do nothing. */
#ifndef TF32DTYPE_PROGRAMS_CALL_SITES_CALL_SITES_H
#define TF32DTYPE_PROGRAMS_CALL_SITES_CALL_SITES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A call site, as the struct tf_source_finder of a language describes it. */
struct tf_source {
    uint64_t key;                 /* the same for the same call site; 0 if not known */
    const char *file[2];          /* of the user, and of a library; or NULL */
    const char *function[2];
    int line[2];
    const void *details[4];       /* for `fill` */
    int offsets[2];
};

/* `find` runs in every call and sets the key; `fill` sets the rest of a new call site. */
struct tf_source_finder {
    int (*find)(struct tf_source *source); /* returns 0, or -1 if there is no call site */
    void (*fill)(struct tf_source *source);
};

/* The head of each entry of a table. */
struct tf_site {
    _Atomic uint64_t key; /* 0 while the entry is unused */
    int lock;
};

/* A table is static, or never freed. Its owner sets the members before `sites`. */
struct tf_site_table {
    size_t count, size; /* number of entries, a power of two, and bytes per entry */
    int has_counts;     /* entries change, under their locks */
    void (*in_child)(void); /* is called in a forked child; or NULL */
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

/* Fills a new entry. It is called with the mutex. */
typedef void tf_site_fill_fn(struct tf_site *site, const void *context);

/* Does the work of tf_site_of if the first entry that the key leads to is another one. */
struct tf_site *tf_site_probe(struct tf_site_table *table, uint64_t key,
                              tf_site_fill_fn *fill, const void *context);

static inline struct tf_site *tf_site_in(const struct tf_site_table *table, char *sites,
                                         size_t number)
{
    return (struct tf_site *)(void *)(sites + (number & (table->count - 1)) * table->size);
}

/* Returns the entry of a key, and makes it if it does not exist. Returns NULL if the table
 * is full or stopped, or if memory is short. */
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

/* Returns the entry of a key, or NULL if it does not exist. Takes no lock. */
struct tf_site *tf_site_find(const struct tf_site_table *table, uint64_t key);

/* Returns the entry of a number, from 0 on; NULL after the last. */
struct tf_site *tf_site_at(const struct tf_site_table *table, size_t number);

/* Returns the first entry from `position` on, and advances `position` past it; NULL at the
 * end. */
struct tf_site *tf_site_from(const struct tf_site_table *table, size_t *position);

/* Calls `drop`, unless it is NULL, for each entry, empties the table, and ends a stop.
 * Threads may still have pointers to entries. Returns -1 if memory is short. */
int tf_sites_clear(struct tf_site_table *table, void (*drop)(struct tf_site *site));

/* Calls `update` for each entry, with the mutex. */
void tf_sites_update(struct tf_site_table *table, void (*update)(struct tf_site *site));

/* Locks and unlocks an entry of a table of counts. */
void tf_site_lock(const struct tf_site_table *table, struct tf_site *site);
void tf_site_unlock(struct tf_site *site);

#endif
