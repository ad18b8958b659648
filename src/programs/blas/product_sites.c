/* Keeps a table of call sites, and the watcher that fills it. */
#include "programs/blas/product_sites.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "programs/blas/operand.h"

static struct tf_site_table table = {
    .count = 1 << 16, .size = sizeof(struct tf_product_site), .has_counts = 1,
    .in_child = tf_product_sites_end};
static struct tf_site_table operands = {
    .count = 1 << 15, .size = sizeof(struct tf_product_operand), .has_counts = 1};

/* The name of a matrix, by its digest, and where it is stored. */
struct name {
    struct tf_site site;
    char *text;
    const char *data;
};
static struct tf_site_table names = {.count = 1 << 14, .size = sizeof(struct name)};
static const struct tf_source_finder *finder;
static struct tf_product_sites_wanted wanted_now;
static _Atomic size_t bytes_left;
static _Atomic uint64_t left_out, without_site;
static int session; /* the number of calls of tf_product_sites_begin */

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
    for (int side = 0; side < 2; side++) {
        atomic_store(&site->is_many[side], !wanted_now.operands);
    }
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

enum { BLOCK = 1024 };

/* Return the bits of a finite magnitude, which compare as integers; 0 for Inf and NaN. */
static inline int64_t wide_magnitude(int64_t bits)
{
    const int64_t magnitude = bits & INT64_MAX;
    return magnitude < INT64_C(0x7FF0000000000000) ? magnitude : 0;
}
static inline int32_t magnitude(int32_t bits)
{
    const int32_t magnitude = bits & INT32_MAX;
    return magnitude < 0x7F800000 ? magnitude : 0;
}

/* Defines a function that writes the largest magnitudes of `count` lines that are stored
 * side by side, element by element. */
#define GREATEST_ACROSS(name, type, magnitude)                                        \
    static void name(const char *data, ptrdiff_t step, ptrdiff_t k, ptrdiff_t count,    \
                     type *restrict out)                                                 \
    {                                                                                   \
        for (ptrdiff_t i = 0; i < k; i++) {                                             \
            const type *row = (const type *)(const void *)(data + i * step);            \
            for (ptrdiff_t j = 0; j < count; j++) {                                     \
                const type here = magnitude(row[j]);                                    \
                out[j] = here > out[j] ? here : out[j];                                 \
            }                                                                           \
        }                                                                               \
    }
GREATEST_ACROSS(greatest_across, int32_t, magnitude)
GREATEST_ACROSS(greatest_across_wide, int64_t, wide_magnitude)

/* Defines a function that writes the largest magnitudes of `count` lines whose elements are
 * contiguous. */
#define GREATEST_ALONG(name, type, magnitude)                                         \
    static void name(const char *data, ptrdiff_t step, ptrdiff_t k, ptrdiff_t count,    \
                     type *restrict out)                                                 \
    {                                                                                   \
        for (ptrdiff_t j = 0; j < count; j++) {                                         \
            const type *line = (const type *)(const void *)(data + j * step);           \
            type greatest = 0;                                                          \
            for (ptrdiff_t i = 0; i < k; i++) {                                         \
                const type here = magnitude(line[i]);                                   \
                greatest = here > greatest ? here : greatest;                           \
            }                                                                           \
            out[j] = greatest;                                                          \
        }                                                                               \
    }
GREATEST_ALONG(greatest_along, int32_t, magnitude)
GREATEST_ALONG(greatest_along_wide, int64_t, wide_magnitude)

/* Returns the line with the largest magnitude of a real operand that is stored in full and
 * contiguous along one axis; -1 for other operands. */
static ptrdiff_t greatest_stored(const struct tf_blas_matrix *x, char type, int axis,
                                 ptrdiff_t count, ptrdiff_t k)
{
    const ptrdiff_t size = type == 'd' ? 8 : 4;
    const ptrdiff_t step = x->strides[axis], along = x->strides[!axis];
    const int is_along = along == size;
    if (x->shape != TF_FULL || tf_blas_is_complex(type) || (!is_along && step != size)) {
        return -1;
    }
    ptrdiff_t at = 0;
    int64_t greatest = -1;
    for (ptrdiff_t first = 0; first < count; first += BLOCK) {
        const ptrdiff_t block = count - first < BLOCK ? count - first : BLOCK;
        const char *data = x->data + first * step;
        int32_t found[BLOCK] = {0};
        int64_t wide[BLOCK] = {0};
        if (type == 'd') {
            (is_along ? greatest_along_wide : greatest_across_wide)(
                data, is_along ? step : along, k, block, wide);
        } else {
            (is_along ? greatest_along : greatest_across)(data, is_along ? step : along, k,
                                                          block, found);
        }
        for (ptrdiff_t j = 0; j < block; j++) {
            const int64_t here = type == 'd' ? wide[j] : found[j];
            if (here > greatest) {
                greatest = here;
                at = first + j;
            }
        }
    }
    return at;
}

static ptrdiff_t greatest_line(const struct tf_blas_matrix *x, char type, int axis,
                               ptrdiff_t count, ptrdiff_t k, double *room,
                               double *imaginary)
{
    ptrdiff_t at = greatest_stored(x, type, axis, count, k);
    if (at >= 0) {
        return at;
    }
    double greatest = -1;
    for (ptrdiff_t i = 0; i < count; i++) {
        tf_blas_line(x, type, axis, i, room, imaginary);
        const double here = greatest_of(room, imaginary, k);
        if (here > greatest) {
            greatest = here;
            at = i;
        }
    }
    return at;
}

/* Writes `wanted` lines of an operand: first the line with the largest magnitude, then
 * others evenly spread; or all lines in order if `wanted` is `count`. */
static void sample_lines(const struct tf_blas_matrix *x, char type, int axis,
                         ptrdiff_t count, ptrdiff_t k, ptrdiff_t wanted, double *out,
                         double *imaginary)
{
    const ptrdiff_t greatest_at =
        wanted < count ? greatest_line(x, type, axis, count, k, out, imaginary) : 0;
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

static struct tf_sample *sample_of(const struct tf_blas_product *product,
                                   const uint64_t digests[2])
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
                                 numbers, numbers + rows * k, NULL, NULL,
                                 {digests[0], digests[1]}};
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

/* -- counts ------------------------------------------------------------------------- */

static void count_shape(struct tf_shape *shapes, int count, const struct tf_blas_sizes *p)
{
    for (int i = 0; i < count; i++) {
        struct tf_shape *shape = &shapes[i];
        if (!shape->calls) {
            *shape = (struct tf_shape){p->m, p->n, p->k, 0};
            if (i == count - 1) {
                shape->m = -1;
            }
        }
        if ((shape->m == p->m && shape->n == p->n && shape->k == p->k) || shape->m < 0) {
            shape->calls++;
            return;
        }
    }
}

/* The operands of a call. A side without an entry does not distinguish its operands. */
struct call_operands {
    struct tf_product_site *site;
    uint64_t digests[2];
    const char *data[2];
    struct tf_product_operand *entries[2];
};

static int take_sample(void *context, const struct tf_blas_product *product)
{
    const struct call_operands *call = context;
    struct tf_sample *sample = sample_of(product, call->digests);
    if (sample) {
        tf_site_lock(&table, &call->site->site);
        sample->next = call->site->samples;
        call->site->samples = sample;
        tf_site_unlock(&call->site->site);
    }
    return !wanted_now.whole; /* the first product of a batch is enough */
}

/* -- operands ---------------------------------------------------------------------- */

struct first_use {
    struct tf_product_site *site;
    const struct tf_blas_matrix *matrix;
    uint64_t digest;
    int side;
};

static void fill_operand(struct tf_site *entry, const void *context)
{
    struct tf_product_operand *operand = (struct tf_product_operand *)entry;
    const struct first_use *use = context;
    operand->of = use->site;
    operand->side = use->side;
    operand->rows = use->matrix->rows;
    operand->columns = use->matrix->columns;
    operand->digest = use->digest;
    operand->data = use->matrix->data;
    operand->number = ++use->site->operands[use->side];
    const struct name *name = (const struct name *)tf_site_find(&names, use->digest);
    operand->name = name ? name->text : NULL;
    operand->is_named_buffer = name && name->data == operand->data;
}

static int tell_operands(void *context, const struct tf_blas_product *product)
{
    struct call_operands *call = context;
    struct tf_product_site *site = call->site;
    const struct tf_operands found = tf_operands_of(product);
    for (int side = 0; side < 2; side++) {
        const uint64_t digest = call->digests[side] = found.digests[side];
        call->data[side] = found.matrices[side]->data;
        if (!digest || atomic_load_explicit(&site->is_many[side], memory_order_relaxed)) {
            continue;
        }
        const struct first_use use = {site, found.matrices[side], digest, side};
        const uint64_t who = (uint64_t)(uintptr_t)site * 2 + (uint64_t)side;
        call->entries[side] = (struct tf_product_operand *)tf_site_of(
            &operands, tf_site_key(digest, who), fill_operand, &use);
        if (call->entries[side] && call->entries[side]->number > TF_MOST_OPERANDS) {
            call->entries[side] = NULL;
        }
    }
    return 1; /* only the first product of a batch */
}

static void find_operands(struct call_operands *call, const struct tf_blas_watched *watched)
{
    const int routine = watched->name->routine;
    _Atomic int *const is_many = call->site->is_many;
    if (atomic_load_explicit(&is_many[0], memory_order_relaxed) &&
        atomic_load_explicit(&is_many[1], memory_order_relaxed)) {
        return; /* operands are not wanted, or have been too many on both sides */
    }
    if (routine == TF_BLAS_GEMM || routine == TF_BLAS_GEMV) {
        tf_blas_take_apart(watched->name, watched->arguments, tell_operands, call);
    }
    for (int side = 0; side < 2; side++) {
        if (!call->entries[side]) {
            atomic_store_explicit(&is_many[side], 1, memory_order_relaxed);
        }
    }
}

/* Returns whether this call of an operand is sampled: the first if the operand has a name,
 * otherwise the second; and that number times each power of 16. */
static int is_sampled(const struct tf_product_operand *operand)
{
    uint64_t calls = operand->calls;
    while (calls >= 16 && calls % 16 == 0) {
        calls /= 16;
    }
    return calls == (operand->name ? 1 : 2);
}

static int count_operands(const struct call_operands *call, const struct tf_blas_sizes *sizes)
{
    int sampled = 0;
    for (int side = 0; side < 2; side++) {
        struct tf_product_operand *operand = call->entries[side];
        if (operand) {
            operand->calls++;
            operand->has_moved |= operand->data != call->data[side];
            operand->multiply_adds += (uint64_t)sizes->multiply_adds;
            count_shape(operand->shapes, TF_OPERAND_SHAPES, sizes);
            sampled |= is_sampled(operand);
        }
    }
    return sampled;
}

static void fill_name(struct tf_site *entry, const void *context)
{
    struct name *name = (struct name *)entry;
    const struct name *given = context;
    const size_t size = strlen(given->text) + 1;
    name->text = malloc(size);
    if (name->text) {
        memcpy(name->text, given->text, size);
    }
    name->data = given->data;
}

static void drop_name(struct tf_site *entry) { free(((struct name *)entry)->text); }

void tf_product_name(const struct tf_blas_matrix *matrix, char type, const char *name)
{
    const struct name given = {.text = (char *)name, .data = matrix->data};
    const uint64_t digest = tf_operand_digest(matrix, type);
    if (digest) {
        tf_site_of(&names, digest, fill_name, &given);
    }
}

/* -- the watcher ------------------------------------------------------------------- */

/* Returns the call site of a call. A thread without frames, such as one of OpenMP's, gets
 * the source of the last thread with frames that called from the same object. */
static struct tf_product_site *site_of_thread(const struct tf_blas_watched *call)
{
    struct tf_source source;
    struct tf_blas_caller *caller = call->caller;
    if (finder->find(&source) == 0) {
        struct tf_product_site *site = site_of(call, &source, 0);
        if (site && wanted_now.operands && wanted_now.name_operands &&
            !atomic_load_explicit(&site->is_named, memory_order_relaxed)) {
            wanted_now.name_operands();
            atomic_store(&site->is_named, 1);
        }
        if (atomic_load_explicit(&caller->last, memory_order_relaxed) != site) {
            atomic_store(&caller->last, site);
        }
        return site;
    }
    const struct tf_product_site *last = atomic_load(&caller->last);
    memset(&source, 0, sizeof source);
    return site_of(call, last && last->session == session ? &last->source : &source, 1);
}

/* Operands of this thread's last watched call were sampled. */
static _Thread_local int sampled;

static int tell_made(void *site, const struct tf_blas_product *product)
{
    wanted_now.made(site, product);
    return 1; /* the first product of a batch is enough */
}

/* Reading the clock and calling `after` take longer than the smallest products: after the
 * first ALL_TIMED calls of a call site, only one in TIMED is timed. */
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
    struct call_operands operands_here = {.site = site};
    find_operands(&operands_here, call);
    tf_site_lock(&table, &site->site);
    const uint64_t calls = ++site->calls;
    const int is_timed = calls <= ALL_TIMED || calls % TIMED == 0;
    site->timed += (uint64_t)is_timed;
    site->multiply_adds += (uint64_t)sizes->multiply_adds;
    count_shape(site->shapes, TF_SHAPES, sizes);
    const int is_sampled = count_operands(&operands_here, sizes) || (calls & (calls - 1)) == 0;
    tf_site_unlock(&site->site);
    sampled = 0;
    if (wanted_now.lines && (wanted_now.whole || is_sampled)) {
        tf_blas_take_apart(call->name, call->arguments, take_sample, &operands_here);
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
    if (tf_sites_clear(&table, drop_samples) < 0 || tf_sites_clear(&operands, NULL) < 0 ||
        tf_sites_clear(&names, drop_name) < 0) {
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

const struct tf_product_operand *tf_product_operands(size_t *position)
{
    return (const struct tf_product_operand *)tf_site_from(&operands, position);
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
