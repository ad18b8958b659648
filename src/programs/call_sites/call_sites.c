/* Hash tables with open addressing, whose entries never move. */
#include "programs/call_sites/call_sites.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/platform.h"

enum { PROBES = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tf_site_table *tables; /* a list of all tables that have memory */

static void note_child(void)
{
    pthread_mutex_init(&mutex, NULL);
    for (struct tf_site_table *table = tables; table; table = table->next) {
        atomic_store(&table->is_stopped, table->has_counts);
        if (table->in_child) {
            table->in_child();
        }
    }
}

/* Returns a table's entries, which are never freed, or NULL if memory is short. The caller
 * holds the mutex. */
static char *sites_of(struct tf_site_table *table)
{
    char *sites = atomic_load(&table->sites);
    if (!sites && (sites = calloc(table->count, table->size))) {
        if (!tables) {
            tf_at_fork(note_child);
        }
        table->next = tables;
        tables = table;
        atomic_store(&table->sites, sites);
    }
    return sites;
}

struct tf_site *tf_site_probe(struct tf_site_table *table, uint64_t key,
                              tf_site_fill_fn *fill, const void *context)
{
    char *sites = atomic_load_explicit(&table->sites, memory_order_acquire);
    if (atomic_load_explicit(&table->is_stopped, memory_order_relaxed)) {
        return NULL;
    }
    struct tf_site *site = NULL;
    int is_full = sites != NULL;
    for (size_t probe = 0; is_full && probe < PROBES; probe++) {
        site = tf_site_in(table, sites, (size_t)(key >> 32) + probe);
        const uint64_t found = atomic_load_explicit(&site->key, memory_order_acquire);
        if (found == key) {
            return site;
        }
        is_full = found != 0;
    }
    if (is_full) {
        return NULL;
    }
    site = NULL;
    pthread_mutex_lock(&mutex);
    sites = sites_of(table);
    for (size_t probe = 0; sites && probe < PROBES && !site; probe++) {
        struct tf_site *one = tf_site_in(table, sites, (size_t)(key >> 32) + probe);
        const uint64_t found = atomic_load(&one->key);
        if (!found) {
            fill(one, context);
            atomic_store_explicit(&one->key, key, memory_order_release);
        }
        site = !found || found == key ? one : NULL;
    }
    pthread_mutex_unlock(&mutex);
    return site;
}

struct tf_site *tf_site_find(const struct tf_site_table *table, uint64_t key)
{
    char *sites = atomic_load_explicit(&table->sites, memory_order_acquire);
    for (size_t probe = 0; sites && probe < PROBES; probe++) {
        struct tf_site *site = tf_site_in(table, sites, (size_t)(key >> 32) + probe);
        const uint64_t found = atomic_load_explicit(&site->key, memory_order_acquire);
        if (found == key) {
            return site;
        }
        if (!found) {
            return NULL;
        }
    }
    return NULL;
}

struct tf_site *tf_site_from(const struct tf_site_table *table, size_t *position)
{
    char *sites = atomic_load(&table->sites);
    while (sites && *position < table->count) {
        struct tf_site *site = tf_site_in(table, sites, (*position)++);
        if (atomic_load_explicit(&site->key, memory_order_acquire)) {
            return site;
        }
    }
    return NULL;
}

struct tf_site *tf_site_at(const struct tf_site_table *table, size_t number)
{
    struct tf_site *site = NULL;
    size_t position = 0;
    do {
        site = tf_site_from(table, &position);
    } while (site && number--);
    return site;
}

int tf_sites_clear(struct tf_site_table *table, void (*drop)(struct tf_site *site))
{
    pthread_mutex_lock(&mutex);
    char *sites = sites_of(table);
    for (size_t i = 0; sites && i < table->count; i++) {
        struct tf_site *site = tf_site_in(table, sites, i);
        if (atomic_load(&site->key)) { /* so that untouched pages take no memory */
            if (drop) {
                drop(site);
            }
            memset(site, 0, table->size);
        }
    }
    atomic_store(&table->is_stopped, 0);
    pthread_mutex_unlock(&mutex);
    return sites ? 0 : -1;
}

void tf_sites_update(struct tf_site_table *table, void (*update)(struct tf_site *site))
{
    pthread_mutex_lock(&mutex);
    char *sites = atomic_load(&table->sites);
    for (size_t i = 0; sites && i < table->count; i++) {
        struct tf_site *site = tf_site_in(table, sites, i);
        if (atomic_load(&site->key)) {
            update(site);
        }
    }
    pthread_mutex_unlock(&mutex);
}

void tf_site_lock(const struct tf_site_table *table, struct tf_site *site)
{
    while (!atomic_load_explicit(&table->is_stopped, memory_order_relaxed) &&
           __atomic_exchange_n(&site->lock, 1, __ATOMIC_ACQUIRE)) {
    }
}

void tf_site_unlock(struct tf_site *site)
{
    __atomic_store_n(&site->lock, 0, __ATOMIC_RELEASE);
}
