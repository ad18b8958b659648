/* A table of places, and the watcher that fills it. */
#include "programs/blas/places.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 1 << 16, PROBES = 64 };

static struct tf_place *places;
static const struct tf_source_finder *finder;
static struct tf_places_wanted wanted_now;
static _Atomic size_t bytes_left;
static _Atomic uint64_t left_out, without_place;
static int session; /* how often it was begun */

static void lock_place(struct tf_place *place)
{
    while (__atomic_exchange_n(&place->lock, 1, __ATOMIC_ACQUIRE)) {
    }
}

static void unlock_place(struct tf_place *place)
{
    __atomic_store_n(&place->lock, 0, __ATOMIC_RELEASE);
}

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* The place of a call; a new one is filled by the first who comes, unless the source has
 * been told already. */
static struct tf_place *place_of(const struct tf_blas_watched *call,
                                 const struct tf_source *source, int is_told)
{
    const uint64_t who = (uint64_t)(uintptr_t)call->caller * 31 +
                         (uint64_t)call->name->routine * 4 + (uint64_t)call->name->type;
    const uint64_t key = mixed(source->key ^ mixed(who)) | 1;
    size_t at = key % PLACES;
    for (int probe = 0; probe < PROBES; probe++, at = (at + 1) % PLACES) {
        struct tf_place *place = &places[at];
        if (atomic_load_explicit(&place->key, memory_order_acquire) == key) {
            return place;
        }
        if (!atomic_load(&place->key)) {
            lock_place(place);
            if (!atomic_load(&place->key)) {
                place->source = *source;
                if (source->key && !is_told) {
                    finder->fill(&place->source);
                }
                place->session = session;
                place->object = call->caller->file;
                place->type = call->name->type;
                place->routine = call->name->routine;
                atomic_store_explicit(&place->key, key, memory_order_release);
            }
            unlock_place(place);
            if (atomic_load(&place->key) == key) {
                return place;
            }
        }
    }
    return NULL; /* too many: it is not watched */
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

/* Writes `wanted` of the lines of an operand, the greatest first, the others spread. */
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
    /* Of the others each is the next one that is spread evenly, but for the greatest. */
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

static void count_shape(struct tf_place *place, const struct tf_blas_watched *call)
{
    const struct tf_blas_sizes *p = &call->sizes;
    for (int i = 0; i < TF_SHAPES; i++) {
        struct tf_shape *shape = &place->shapes[i];
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
    struct tf_place *place = context;
    struct tf_sample *sample = sample_of(product);
    if (sample) {
        lock_place(place);
        sample->next = place->samples;
        place->samples = sample;
        unlock_place(place);
    }
    return !wanted_now.whole; /* of a batch the first will do */
}

/* A thread without frames, as OpenMP's, works for the last that had some and called
 * from the same object. */
static struct tf_place *place_of_thread(const struct tf_blas_watched *call)
{
    struct tf_source source;
    struct tf_blas_caller *caller = call->caller;
    if (finder->find(&source) == 0) {
        struct tf_place *place = place_of(call, &source, 0);
        if (atomic_load_explicit(&caller->last, memory_order_relaxed) != place) {
            atomic_store(&caller->last, place);
        }
        return place;
    }
    const struct tf_place *last = atomic_load(&caller->last);
    memset(&source, 0, sizeof source);
    return place_of(call, last && last->session == session ? &last->source : &source, 1);
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
    struct tf_place *place = place_of_thread(call);
    if (!place) {
        atomic_fetch_add(&without_place, 1);
        return NULL;
    }
    lock_place(place);
    const uint64_t calls = ++place->calls;
    const int is_timed = calls <= ALL_TIMED || calls % TIMED == 0;
    place->timed += (uint64_t)is_timed;
    place->multiply_adds += (uint64_t)sizes->multiply_adds;
    count_shape(place, call);
    unlock_place(place);
    if (wanted_now.lines && (wanted_now.whole || (calls & (calls - 1)) == 0)) {
        tf_blas_take_apart(call->name, call->arguments, take_sample, place);
    }
    return is_timed ? place : NULL;
}

static void after(void *context, double seconds)
{
    struct tf_place *place = context;
    lock_place(place);
    place->seconds += seconds;
    unlock_place(place);
}

static struct tf_blas_watcher watcher = {0, before, after};

/* Another thread may have held a place's lock. */
static void end_in_child(void) { tf_blas_set_watcher(NULL); }

static void prepare(void)
{
    places = calloc(PLACES, sizeof *places);
    if (places) {
        pthread_atfork(NULL, NULL, end_in_child);
    }
}

int tf_places_begin(const struct tf_source_finder *find,
                    const struct tf_places_wanted *wanted)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    if (!places) {
        return -1;
    }
    for (size_t i = 0; i < PLACES; i++) {
        for (struct tf_sample *sample; (sample = places[i].samples);) {
            places[i].samples = sample->next;
            tf_free_sample(sample);
        }
        if (atomic_load(&places[i].key)) {
            memset(&places[i], 0, sizeof places[i]);
        }
    }
    session++;
    finder = find;
    wanted_now = *wanted;
    watcher.lapack = wanted->lapack;
    atomic_store(&bytes_left, wanted->bytes);
    atomic_store(&left_out, 0);
    atomic_store(&without_place, 0);
    tf_blas_set_watcher(&watcher);
    return 0;
}

void tf_places_end(void) { tf_blas_set_watcher(NULL); }

const struct tf_place *tf_places(size_t number)
{
    for (size_t i = 0; places && i < PLACES; i++) {
        if (atomic_load_explicit(&places[i].key, memory_order_acquire) && number-- == 0) {
            return &places[i];
        }
    }
    return NULL;
}

void tf_place_copy(const struct tf_place *place, struct tf_place *copy)
{
    struct tf_place *own = (struct tf_place *)place;
    lock_place(own);
    *copy = *own;
    unlock_place(own);
}

struct tf_sample *tf_take_samples(const struct tf_place *place)
{
    struct tf_place *own = (struct tf_place *)place;
    lock_place(own);
    struct tf_sample *samples = own->samples;
    own->samples = NULL;
    unlock_place(own);
    return samples;
}

uint64_t tf_samples_left_out(void) { return atomic_load(&left_out); }
uint64_t tf_calls_without_place(void) { return atomic_load(&without_place); }
