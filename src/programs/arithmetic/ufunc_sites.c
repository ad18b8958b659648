/* Keeps a table of call sites with the figures of each. */
#include "programs/arithmetic/ufunc_sites.h"

#include <stdatomic.h>
#include <string.h>

static struct tf_site_table table = {
    .count = 1 << 14, .size = sizeof(struct tf_ufunc_site), .has_counts = 1};
static const struct tf_source_finder *finder;
static _Atomic uint64_t left_out;

struct told {
    const void *what;
    const struct tf_source *source;
};

static void fill(struct tf_site *entry, const void *context)
{
    struct tf_ufunc_site *site = (struct tf_ufunc_site *)entry;
    const struct told *told = context;
    site->what = told->what;
    site->source = *told->source;
    memset(&site->figures, 0, sizeof site->figures); /* a late call may have changed them */
    if (site->source.key) {
        finder->fill(&site->source);
    }
}

int tf_ufunc_sites_begin(const struct tf_source_finder *with)
{
    atomic_store(&left_out, 0);
    finder = with;
    return tf_sites_clear(&table, NULL);
}

void tf_ufunc_sites_add(const void *what, const struct tf_figures *figures)
{
    struct tf_source source;
    if (finder->find(&source) < 0) {
        memset(&source, 0, sizeof source);
    }
    const struct told told = {what, &source};
    const uint64_t key = tf_site_key(source.key, (uint64_t)(uintptr_t)what);
    struct tf_site *entry = tf_site_of(&table, key, fill, &told);
    if (!entry) {
        atomic_fetch_add(&left_out, 1);
        return;
    }
    tf_site_lock(&table, entry);
    tf_add_figures(&((struct tf_ufunc_site *)entry)->figures, figures);
    tf_site_unlock(entry);
}

struct tf_figures tf_figures_of(const struct tf_ufunc_site *site)
{
    struct tf_ufunc_site *own = (struct tf_ufunc_site *)site;
    tf_site_lock(&table, &own->site);
    const struct tf_figures figures = own->figures;
    tf_site_unlock(&own->site);
    return figures;
}

const struct tf_ufunc_site *tf_ufunc_sites(size_t number)
{
    return (const struct tf_ufunc_site *)tf_site_at(&table, number);
}

uint64_t tf_ufunc_sites_left_out(void) { return atomic_load(&left_out); }
