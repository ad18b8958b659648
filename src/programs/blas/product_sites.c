/* A table of call sites, and the watcher that fills it. */
#include "programs/blas/product_sites.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct tf_site_table table = {
    .count = 1 << 16, .size = sizeof(struct tf_product_site), .has_counts = 1,
    .in_child = tf_product_sites_end};
static const struct tf_source_finder *finder;
static struct tf_product_sites_wanted wanted_now;
static _Atomic size_t bytes_left;
static _Atomic uint64_t left_out, without_site;
static int session; /* how often it was begun */

struct told {
    const struct tf_blas_watched *call;
    const struct tf_source *source;
    int is_complete; /* the source has been filled before */
};

static void fill(struct tf_site *entry, const void *context)
{
    struct tf_product_site *site = (struct tf_product_site *)entry;
    const struct told *told = context;
    site->source = *told->source;
    if (site->source.key && !told->is_complete) {
        finder->fill(&site->source);
    }
    site->session = session;
    site->object = told->call->caller->file;
    site->type = told->call->name->type;
    site->routine = told->call->name->routine;
}

static struct tf_product_site *site_of(const struct tf_blas_watched *call,
                                       const struct tf_source *source, int is_complete)
{
    const struct told told = {call, source, is_complete};
    const uint64_t who = (uint64_t)(uintptr_t)call->caller * 31 +
                         (uint64_t)call->name->routine * 4 + (uint64_t)call->name->type;
    return (struct tf_product_site *)tf_site_of(&table, tf_site_key(source->key, who), fill,
                                                &told);
}

/* -- samples ----------------------------------------------------------------------- */

static double greatest_of(const double *x, const double *imaginary, ptrdiff_t n)
{
    double greatest = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double magnitude = imaginary ? fmax(fabs(x[i]), fabs(imaginary[i]))
                                           : fabs(x[i]);
        if (isfinite(magnitude) && magnitude > greatest) {
            greatest = magnitude;
        }
    }
    return greatest;
}

/* Writes `wanted` of the lines of an operand: first the one with the largest number, then
 * others evenly spread. */
static void sample_lines(const struct tf_blas_matrix *x, char type, int axis,
                         ptrdiff_t count, ptrdiff_t k, ptrdiff_t wanted, double *out,
                         double *imaginary)
{
    ptrdiff_t greatest_at = 0;
    double greatest = -1;
    if (wanted < count) {
        for (ptrdiff_t i = 0; i < count; i++) {
            tf_blas_line(x, type, axis, i, out, imaginary);
            const double here = greatest_of(out, imaginary, k);
            if (here > greatest) {
                greatest = here;
                greatest_at = i;
            }
        }
    }
    for (ptrdiff_t i = 0; i < wanted; i++) {
        ptrdiff_t line = i;
        if (wanted < count && i == 0) {
            line = greatest_at;
        } else if (wanted < count) {
            line = (i - 1) * (count - 1) / (wanted - 1);
            line += line >= greatest_at;
        }
        tf_blas_line(x, type, axis, line, out + i * k, imaginary ? imaginary + i * k : NULL);
    }
}

void tf_free_sample(struct tf_sample *sample)
{
    atomic_fetch_add(&bytes_left, (size_t)((sample->rows + sample->columns) * sample->k) *
                                      sizeof(double) * (sample->imaginary_a ? 2 : 1));
    free(sample->a);
    free(sample);
}

static struct tf_sample *sample_of(const struct tf_blas_product *product)
{
    const ptrdiff_t k = product->k;
    const int parts = tf_blas_is_complex(product->type) ? 2 : 1;
    const ptrdiff_t most = wanted_now.whole ? PTRDIFF_MAX : wanted_now.lines;
    const ptrdiff_t rows = product->m < most ? product->m : most;
    const ptrdiff_t columns = product->n < most ? product->n : most;
    if (rows == 0 || columns == 0 || k == 0) {
        return NULL;
    }
    const double size = ((double)rows + (double)columns) * (double)k * parts * 8;
    size_t left = atomic_load(&bytes_left);
    do {
        if (size > (double)left) {
            atomic_fetch_add(&left_out, 1);
            return NULL;
        }
    } while (!atomic_compare_exchange_weak(&bytes_left, &left, left - (size_t)size));
    struct tf_sample *sample = calloc(1, sizeof *sample);
    double *numbers = malloc((size_t)size ? (size_t)size : 1);
    if (!sample || !numbers) {
        free(sample);
        free(numbers);
        atomic_fetch_add(&bytes_left, (size_t)size);
        atomic_fetch_add(&left_out, 1);
        return NULL;
    }
    *sample = (struct tf_sample){NULL, product->m, product->n, k, rows, columns,
                                 numbers, numbers + rows * k, NULL, NULL};
    if (parts == 2) {
        sample->imaginary_a = numbers + (rows + columns) * k;
        sample->imaginary_b = sample->imaginary_a + rows * k;
    }
    sample_lines(&product->a, product->type, 0, product->m, k, rows, sample->a,
                 sample->imaginary_a);
    sample_lines(&product->b, product->type, 1, product->n, k, columns, sample->b,
                 sample->imaginary_b);
    return sample;
}

/* -- the watcher ------------------------------------------------------------------- */

static void count_shape(struct tf_product_site *site, const struct tf_blas_watched *call)
{
    const struct tf_blas_sizes *p = &call->sizes;
    for (int i = 0; i < TF_SHAPES; i++) {
        struct tf_shape *shape = &site->shapes[i];
        if (!shape->calls) {
            *shape = (struct tf_shape){p->m, p->n, p->k, 0};
            if (i == TF_SHAPES - 1) {
                shape->m = -1;
            }
        }
        if ((shape->m == p->m && shape->n == p->n && shape->k == p->k) || shape->m < 0) {
            shape->calls++;
            return;
        }
    }
}

static int take_sample(void *context, const struct tf_blas_product *product)
{
    struct tf_product_site *site = context;
    struct tf_sample *sample = sample_of(product);
    if (sample) {
        tf_site_lock(&table, &site->site);
        sample->next = site->samples;
        site->samples = sample;
        tf_site_unlock(&site->site);
    }
    return !wanted_now.whole; /* of a batch the first will do */
}

/* A thread without frames, as OpenMP's, works for the last that had some and called
 * from the same object. */
static struct tf_product_site *site_of_thread(const struct tf_blas_watched *call)
{
    struct tf_source source;
    struct tf_blas_caller *caller = call->caller;
    if (finder->find(&source) == 0) {
        struct tf_product_site *site = site_of(call, &source, 0);
        if (atomic_load_explicit(&caller->last, memory_order_relaxed) != site) {
            atomic_store(&caller->last, site);
        }
        return site;
    }
    const struct tf_product_site *last = atomic_load(&caller->last);
    memset(&source, 0, sizeof source);
    return site_of(call, last && last->session == session ? &last->source : &source, 1);
}

/* Whether the operands of this thread's call were sampled. */
static _Thread_local int sampled;

static int tell_made(void *site, const struct tf_blas_product *product)
{
    wanted_now.made(site, product);
    return 1; /* of a batch the first will do */
}

/* Reading the clock, and coming back, takes longer than the smallest products: of many
 * calls one in TIMED is measured. */
enum { ALL_TIMED = 64, TIMED = 16 };

static void *before(const struct tf_blas_watched *call)
{
    const struct tf_blas_sizes *sizes = &call->sizes;
    if ((sizes->m == 1 && sizes->n == 1 && !wanted_now.dots) ||
        (wanted_now.is_inside && !wanted_now.is_inside())) {
        return NULL;
    }
    struct tf_product_site *site = site_of_thread(call);
    if (!site) {
        atomic_fetch_add(&without_site, 1);
        return NULL;
    }
    tf_site_lock(&table, &site->site);
    const uint64_t calls = ++site->calls;
    const int is_timed = calls <= ALL_TIMED || calls % TIMED == 0;
    site->timed += (uint64_t)is_timed;
    site->multiply_adds += (uint64_t)sizes->multiply_adds;
    count_shape(site, call);
    tf_site_unlock(&site->site);
    sampled = 0;
    if (wanted_now.lines && (wanted_now.whole || (calls & (calls - 1)) == 0)) {
        tf_blas_take_apart(call->name, call->arguments, take_sample, site);
        sampled = 1;
    }
    return is_timed ? site : NULL;
}

static void after(void *context, const struct tf_blas_watched *call, double seconds)
{
    struct tf_product_site *site = context;
    if (sampled && wanted_now.made) {
        tf_blas_take_apart(call->name, call->arguments, tell_made, site);
    }
    tf_site_lock(&table, &site->site);
    site->seconds += seconds;
    tf_site_unlock(&site->site);
}

static struct tf_blas_watcher watcher = {0, before, after};

static void drop_samples(struct tf_site *entry)
{
    struct tf_product_site *site = (struct tf_product_site *)entry;
    for (struct tf_sample *sample; (sample = site->samples);) {
        site->samples = sample->next;
        tf_free_sample(sample);
    }
}

int tf_product_sites_begin(const struct tf_source_finder *find,
                           const struct tf_product_sites_wanted *wanted)
{
    if (tf_sites_clear(&table, drop_samples) < 0) {
        return -1;
    }
    session++;
    finder = find;
    wanted_now = *wanted;
    watcher.lapack = wanted->lapack;
    atomic_store(&bytes_left, wanted->bytes);
    atomic_store(&left_out, 0);
    atomic_store(&without_site, 0);
    tf_blas_set_watcher(&watcher);
    return 0;
}

void tf_product_sites_end(void) { tf_blas_set_watcher(NULL); }

const struct tf_product_site *tf_product_sites(size_t number)
{
    return (const struct tf_product_site *)tf_site_at(&table, number);
}

void tf_product_site_copy(const struct tf_product_site *site, struct tf_product_site *copy)
{
    struct tf_product_site *own = (struct tf_product_site *)site;
    tf_site_lock(&table, &own->site);
    *copy = *own;
    tf_site_unlock(&own->site);
}

struct tf_sample *tf_take_samples(const struct tf_product_site *site)
{
    struct tf_product_site *own = (struct tf_product_site *)site;
    tf_site_lock(&table, &own->site);
    struct tf_sample *samples = own->samples;
    own->samples = NULL;
    tf_site_unlock(&own->site);
    return samples;
}

uint64_t tf_samples_left_out(void) { return atomic_load(&left_out); }
uint64_t tf_calls_without_site(void) { return atomic_load(&without_site); }
