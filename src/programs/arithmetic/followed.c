/* Follows at most ARRAYS arrays at a time, of which it forgets the oldest first, and keeps
 * a table of their sums. */
#include "programs/arithmetic/followed.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "programs/arithmetic/loops.h"
#include "runtime/fp_environment.h"

enum { ARRAYS = 32, MARKS = 32, FIRST_MARKS = 16, TERMS = 4, SQUARES = 4096 };

/* The number of calls of loops after a product, after which all arrays are forgotten: each
 * call that is examined takes time, and most results are used soon or never. */
enum { LAST_CALL = 256 };

/* NumPy calls a loop for each row of a broadcast or strided array, and a row takes
 * longer to examine than to compute. The first rows are all examined. Later, an
 * examined row also represents the rows skipped before it, which are 1/GAP as many as
 * all rows before them. */
enum { GAP = 8 };

/* The address and the bits of an element, by which an array is recognized later. */
struct mark {
    uintptr_t at;
    uint64_t bits;
};

/* A matrix product whose results are a summand of the elements of an array. */
struct term {
    const void *product; /* NULL: neither this term nor a later one is used */
    double ratio;        /* of root mean squares: of the product's summand to the array */
    /* For a sum that calls are still writing: its entry, and the sum of the squares of the
     * product's summand. */
    struct tf_followed_sum *sum;
    double part;
};

struct array {
    uintptr_t start, end; /* 0, 0: the array is unused */
    char type;
    int is_known; /* a mark was found with the same bits again */
    int mark_count, next_mark;
    struct mark marks[MARKS];
    struct term terms[TERMS];
    double whole;               /* sum of squares of a sum that calls are still writing */
    uintptr_t last;             /* the start of the results of the last call */
    const struct tf_loop *loop; /* of the last call */
};

/* Calls of one loop for the rows of arrays, whose addresses advance by fixed steps. */
struct rows {
    const struct tf_loop *loop; /* NULL: no rows */
    ptrdiff_t n, steps[TF_LOOP_OPERANDS];
    uintptr_t at[TF_LOOP_OPERANDS];      /* the addresses of the last call */
    uintptr_t advance[TF_LOOP_OPERANDS]; /* steps between addresses of successive calls */
    ptrdiff_t count, last, next; /* rows so far; the last examined row, and the next */
    double weight;               /* the number of rows that the last one represents */
    int is_followed;                 /* the examined rows were followed */
    uintptr_t unseen_start, unseen_end; /* written by rows since the last one */
};

static struct rows rows;
static struct array arrays[ARRAYS];
static unsigned oldest;
static _Atomic uintptr_t lowest, highest; /* no array begins below, or ends above */
static unsigned calls;
static struct tf_stub *const *stubs; /* with a handler while `highest` is not 0 */
static size_t stub_count;
static atomic_flag is_busy = ATOMIC_FLAG_INIT; /* if set, other threads do nothing */
static struct tf_site_table table = {
    .count = 1 << 12, .size = sizeof(struct tf_followed_sum), .has_counts = 1};
static const struct tf_source_finder *finder;
static atomic_int is_on;
static atomic_uint begun; /* number of tf_followed_begin, one of which a call may outlast */

static size_t size_of(char type) { return type == 'f' ? sizeof(float) : sizeof(double); }

static uint64_t bits_at(uintptr_t at, char type)
{
    uint64_t bits = 0;
    memcpy(&bits, (const void *)at, size_of(type));
    return bits;
}

static void add_mark(struct array *array, uintptr_t at)
{
    const int count = array->mark_count;
    int slot = count;
    if (count < MARKS) {
        array->mark_count++;
    } else { /* keep the first FIRST_MARKS marks */
        slot = FIRST_MARKS + array->next_mark++ % (MARKS - FIRST_MARKS);
    }
    array->marks[slot] = (struct mark){at, bits_at(at, array->type)};
}

/* Adds a finished sum of an array to the table. */
static void end_sum(struct array *array)
{
    if (!array->terms[0].sum) {
        return;
    }
    const struct tf_fp saved = tf_fp_begin();
    for (int i = 0; i < TERMS; i++) {
        struct term *term = &array->terms[i];
        struct tf_followed_sum *sum = term->sum;
        if (!sum) {
            continue;
        }
        if (isfinite(term->part) && isfinite(array->whole)) {
            tf_site_lock(&table, &sum->site);
            sum->calls++;
            sum->part += term->part;
            sum->whole += array->whole;
            tf_site_unlock(&sum->site);
        }
        term->ratio = sqrt(term->part / array->whole);
        term->sum = NULL;
    }
    tf_fp_end(saved, 0);
}

static void drop(struct array *array)
{
    end_sum(array);
    array->start = array->end = 0;
}

static void drop_overlaps(uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < ARRAYS; i++) {
        if (arrays[i].start < end && start < arrays[i].end) {
            drop(&arrays[i]);
        }
    }
}

/* -- rows ------------------------------------------------------------------------------ */

/* Accounts for the results of skipped rows: extends the array that the rows belong to by
 * their memory and removes its marks there, or drops the arrays that they overwrote. */
static void settle_rows(void)
{
    const uintptr_t start = rows.unseen_start, end = rows.unseen_end;
    if (start == end) {
        return;
    }
    rows.unseen_start = rows.unseen_end = 0;
    for (int i = 0; i < ARRAYS; i++) {
        struct array *array = &arrays[i];
        const int is_within = array->start <= start && end <= array->end;
        if (!rows.is_followed || array->loop != rows.loop ||
            (!is_within && array->end != start)) {
            continue;
        }
        int count = 0;
        for (int j = 0; j < array->mark_count; j++) {
            if (array->marks[j].at < start || array->marks[j].at >= end) {
                array->marks[count++] = array->marks[j];
            }
        }
        array->mark_count = count;
        if (!is_within) {
            drop_overlaps(start, end);
            array->end = end;
        }
        return;
    }
    drop_overlaps(start, end);
}

static void end_rows(void)
{
    settle_rows();
    rows.loop = NULL;
}

/* Returns whether a call is the next row, and is not to be examined. */
static int is_passed_over(const struct tf_loop *loop, char *const *args,
                          const ptrdiff_t *steps, ptrdiff_t n)
{
    const int operands = loop->inputs + loop->outputs;
    int is_next = rows.loop == loop && rows.n == n && loop->outputs == 1;
    int moves = 0;
    for (int i = 0; is_next && i < operands; i++) {
        const uintptr_t advance = (uintptr_t)args[i] - rows.at[i];
        if (rows.count == 1) {
            rows.advance[i] = advance;
        }
        is_next = rows.advance[i] == advance && rows.steps[i] == steps[i];
        moves |= advance != 0;
    }
    const int out = loop->inputs;
    const uintptr_t size = size_of(loop->type), start = (uintptr_t)args[out];
    const uintptr_t length = steps[out] ? (uintptr_t)n * size : size;
    const int is_sum = is_next && !rows.advance[out]; /* a reduction along axis 0, from the third row */
    is_next = is_next && moves && (!steps[out] || steps[out] == (ptrdiff_t)size) &&
              (is_sum || rows.advance[out] == length);
    if (!is_next) {
        end_rows();
        return 0;
    }
    for (int i = 0; i < operands; i++) {
        rows.at[i] = (uintptr_t)args[i];
    }
    rows.count++;
    if (is_sum && rows.count > 2) { /* a reduction ends following: skip its other rows */
        if (rows.count == 3) {
            drop_overlaps(start, start + length);
        }
        return 1;
    }
    if (is_sum || rows.count == rows.next) {
        rows.weight = (double)(rows.next - rows.last);
        rows.last = rows.next;
        rows.next += 1 + rows.count / GAP;
        settle_rows();
        return 0;
    }
    if (rows.unseen_start == rows.unseen_end) {
        rows.unseen_start = start;
    }
    rows.unseen_end = start + length;
    return 1;
}

/* Notes an examined call as the first row of a new series, unless it continues one. */
static void note_row(const struct tf_loop *loop, char *const *args, const ptrdiff_t *steps,
                     ptrdiff_t n, int is_followed)
{
    if (rows.loop != loop) {
        rows = (struct rows){
            .loop = loop, .n = n, .count = 1, .last = 1, .next = 2, .weight = 1};
        for (int i = 0; i < loop->inputs + loop->outputs; i++) {
            rows.at[i] = (uintptr_t)args[i];
            rows.steps[i] = steps[i];
        }
    }
    rows.is_followed = is_followed;
}

static int handle(struct tf_stub *stub, struct tf_call *call);

/* Sets or removes the handler of all stubs: even a handler that returns at once takes
 * time. */
static void set_handlers(tf_handler_fn *handler)
{
    for (size_t i = 0; i < stub_count; i++) {
        tf_stub_set(stubs[i], handler);
    }
}

static struct array *new_array(char type, uintptr_t start, uintptr_t end)
{
    drop_overlaps(start, end);
    struct array *array = &arrays[oldest++ % ARRAYS];
    end_sum(array);
    memset(array, 0, sizeof *array);
    array->start = start;
    array->end = end;
    array->type = type;
    const int is_first = !atomic_load(&highest);
    if (is_first || start < atomic_load(&lowest)) {
        atomic_store(&lowest, start);
    }
    if (end > atomic_load(&highest)) {
        atomic_store(&highest, end);
    }
    if (is_first) {
        set_handlers(handle);
    }
    return array;
}

/* -- products -------------------------------------------------------------------------- */

static int enter(void)
{
    return !atomic_flag_test_and_set_explicit(&is_busy, memory_order_acquire);
}
static void leave(void) { atomic_flag_clear_explicit(&is_busy, memory_order_release); }

void tf_follow_result(const void *site, const struct tf_blas_product *product)
{
    const ptrdiff_t m = product->m, n = product->n;
    if (!atomic_load(&is_on) || tf_blas_is_complex(product->type) || m * n < 2 || !enter()) {
        return;
    }
    end_rows();
    const struct tf_fp saved = tf_fp_begin();
    const char type = product->type == 's' ? 'f' : 'd';
    const uintptr_t data = (uintptr_t)product->c;
    const ptrdiff_t *strides = product->c_strides;
    const uintptr_t end = data + (uintptr_t)((m - 1) * strides[0] + (n - 1) * strides[1]) +
                          size_of(type);
    struct array *array = new_array(type, data, end);
    array->terms[0] = (struct term){.product = site, .ratio = 1};
    calls = 0;
    for (ptrdiff_t i = 0; i < MARKS; i++) {
        const ptrdiff_t row = i * (m - 1) / (MARKS - 1);
        ptrdiff_t column = i * (n - 1) / (MARKS - 1);
        if (!product->triangle) { /* spread the marks beyond the diagonal */
            column = (column + i * 7) % n;
        }
        add_mark(array, data + (uintptr_t)(row * strides[0] + column * strides[1]));
    }
    tf_fp_end(saved, 0);
    leave();
}

/* -- calls of ufuncs ------------------------------------------------------------------- */

struct span {
    uintptr_t start, end;
};

/* Returns the memory of the n elements of an operand. */
static struct span span_of(const char *data, ptrdiff_t step, ptrdiff_t n, size_t size)
{
    const uintptr_t first = (uintptr_t)data, last = first + (uintptr_t)(step * (n - 1));
    return step < 0 ? (struct span){last, first + size} : (struct span){first, last + size};
}

/* Returns the array of an operand; NULL if none is followed, or if its memory may hold
 * other elements by now. */
static struct array *find(struct span span, struct span out, const struct tf_loop *loop)
{
    const char type = loop->type;
    for (int i = 0; i < ARRAYS; i++) {
        struct array *array = &arrays[i];
        if (span.start < array->start || span.end > array->end || !array->end ||
            array->type != type) {
            continue;
        }
        for (int j = 0; j < array->mark_count; j++) {
            const struct mark *mark = &array->marks[j];
            if (mark->at < span.start || mark->at + size_of(type) > span.end) {
                continue;
            }
            if (bits_at(mark->at, type) != mark->bits) {
                drop(array);
                return NULL;
            }
            array->is_known = 1;
        }
        const int is_in_place = array->start <= out.start && out.end <= array->end;
        if (!is_in_place || array->loop != loop || out.start <= array->last) {
            end_sum(array); /* the call is not the next row of a sum in place */
        }
        return array->is_known ? array : NULL;
    }
    return NULL;
}

/* Returns the sum of n squares, an estimate if n >= SQUARES: then one random element of
 * each `apart` represents the others, so that its position does not follow the columns of a
 * matrix. */
static double squares(const char *data, ptrdiff_t step, ptrdiff_t n, char type)
{
    const ptrdiff_t apart = 1 + n / SQUARES, last = n - n % apart;
    double sum = 0;
    uint32_t random = 1;
    for (ptrdiff_t i = 0; i < last; i += apart) {
        const char *at = data + step * (i + (ptrdiff_t)(random >> 16) % apart);
        float single;
        double x;
        if (type == 'f') {
            memcpy(&single, at, sizeof single);
            x = (double)single;
        } else {
            memcpy(&x, at, sizeof x);
        }
        sum += x * x;
        random = random * 1664525 + 1013904223;
    }
    return sum * (double)n / (double)(last / apart);
}

struct asked {
    const void *product;
    const char *function;
    struct tf_source *source;
};

static void fill(struct tf_site *entry, const void *context)
{
    struct tf_followed_sum *sum = (struct tf_followed_sum *)entry;
    const struct asked *asked = context;
    finder->fill(asked->source);
    sum->product = asked->product;
    sum->function = asked->function;
    sum->source = *asked->source;
    sum->calls = 0;
    sum->part = sum->whole = 0;
}

static struct tf_followed_sum *sum_here(const void *product, const char *function)
{
    struct tf_source source;
    if (finder->find(&source) < 0) {
        return NULL;
    }
    const struct asked asked = {product, function, &source};
    const uint64_t who = (uint64_t)(uintptr_t)product * 31 + (uint64_t)(uintptr_t)function;
    return (struct tf_followed_sum *)tf_site_of(&table, tf_site_key(source.key, who), fill,
                                                &asked);
}

/* Adds the terms of an operand, whose sum of squares is `squared`, to those of the
 * result. */
static void add_terms(struct term *result, const struct array *operand, double squared)
{
    for (int i = 0; i < TERMS && operand->terms[i].product; i++) {
        const struct term *term = &operand->terms[i];
        for (int j = 0; j < TERMS; j++) {
            if (result[j].product && result[j].product != term->product) {
                continue;
            }
            result[j].product = term->product;
            result[j].ratio = fmax(result[j].ratio, term->ratio);
            /* Add root mean squares, as the errors may have the same signs, as in x + x. */
            result[j].part = pow(sqrt(result[j].part) + term->ratio * sqrt(squared), 2);
            break;
        }
    }
}

/* Writes the terms of a call's operands before the call; none if no operand is followed. */
static void look_at_operands(const struct tf_loop *loop, char *const *args,
                             const ptrdiff_t *steps, ptrdiff_t n, struct term *terms)
{
    const size_t size = size_of(loop->type);
    const struct span out = span_of(args[loop->inputs], steps[loop->inputs], n, size);
    for (int i = 0; i < loop->inputs; i++) {
        struct array *array =
            loop->is_float[i] && steps[i]
                ? find(span_of(args[i], steps[i], n, size), out, loop)
                : NULL;
        if (array) {
            add_terms(terms, array, squares(args[i], steps[i], n, loop->type));
        }
    }
}

static void begin_sum(struct array *array, const struct tf_loop *loop,
                      const struct term *terms)
{
    array->loop = loop;
    if (!loop->adds || array->terms[0].sum) {
        return;
    }
    array->whole = 0;
    for (int i = 0; i < TERMS; i++) {
        const void *product = terms[i].product;
        array->terms[i] = (struct term){.product = product, .ratio = terms[i].ratio};
        array->terms[i].sum = product ? sum_here(product, loop->name) : NULL;
    }
}

/* Returns the array for the results of a call: an operand's array, if the call writes in
 * place; an array that the call before wrote, extended by this row; or a new array. */
static struct array *array_of(const struct tf_loop *loop, const struct term *terms,
                              uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < ARRAYS; i++) {
        struct array *array = &arrays[i];
        if (array->terms[0].product != terms[0].product) {
            continue;
        }
        if (array->start <= start && end <= array->end) {
            for (int j = 0; j < array->mark_count; j++) {
                if (array->marks[j].at >= start && array->marks[j].at < end) {
                    array->marks[j].bits = bits_at(array->marks[j].at, array->type);
                }
            }
            return array;
        }
        if (array->end == start && array->loop == loop) {
            drop_overlaps(start, end);
            array->end = end;
            return array;
        }
    }
    struct array *array = new_array(loop->type, start, end);
    for (int i = 0; i < TERMS; i++) {
        array->terms[i] = (struct term){.product = terms[i].product,
                                        .ratio = terms[i].ratio};
    }
    return array;
}

static void follow(const struct tf_loop *loop, const struct term *terms, const char *data,
                   ptrdiff_t n)
{
    const ptrdiff_t size = (ptrdiff_t)size_of(loop->type);
    const uintptr_t start = (uintptr_t)data, end = start + (uintptr_t)(n * size);
    struct array *array = array_of(loop, terms, start, end);
    if (end > atomic_load(&highest)) {
        atomic_store(&highest, end);
    }
    begin_sum(array, loop, terms);
    array->last = start;
    if (array->terms[0].sum) {
        array->whole += rows.weight * squares(data, size, n, loop->type);
    }
    for (int i = 0; i < TERMS; i++) {
        array->terms[i].part += rows.weight * terms[i].part;
    }
    add_mark(array, start);
    add_mark(array, start + (uintptr_t)(n / 2 * size));
    add_mark(array, end - (uintptr_t)size);
}

/* Returns whether an operand begins in an array. */
static int is_on_an_array(char *const *args, int operands)
{
    int is_on = 0;
    for (int i = 0; i < operands; i++) {
        for (int j = 0; j < ARRAYS; j++) {
            is_on |= (uintptr_t)args[i] - arrays[j].start <
                     arrays[j].end - arrays[j].start;
        }
    }
    return is_on;
}

/* Returns whether a call reduces elements to one. Drops the arrays at that result, which is
 * not followed. */
static int is_reduction(const struct tf_loop *loop, char *const *args,
                        const ptrdiff_t *steps)
{
    const int out = loop->inputs;
    if (loop->outputs != 1 || steps[out]) {
        return 0;
    }
    drop_overlaps((uintptr_t)args[out], (uintptr_t)args[out] + size_of(loop->type));
    return 1;
}

static void drop_all(void)
{
    rows = (struct rows){0};
    for (int i = 0; i < ARRAYS; i++) {
        drop(&arrays[i]);
    }
    atomic_store(&highest, 0);
    set_handlers(NULL);
}

static int handle(struct tf_stub *stub, struct tf_call *call)
{
    const struct tf_loop *loop = stub->facts;
    char *const *args = (char *const *)(intptr_t)call->integers[0];
    const ptrdiff_t n = *(const ptrdiff_t *)(intptr_t)call->integers[1];
    const ptrdiff_t *steps = (const ptrdiff_t *)(intptr_t)call->integers[2];
    const uintptr_t low = atomic_load(&lowest), high = atomic_load(&highest);
    const int operands = loop->inputs + loop->outputs;
    int is_near = 0;
    for (int i = 0; i < operands; i++) {
        is_near |= (uintptr_t)args[i] - low <= high - low;
    }
    if (!high || !is_near || n <= 0 || !enter()) {
        return 0;
    }
    if (is_passed_over(loop, args, steps, n)) {
        leave();
        return 0;
    }
    if (++calls > LAST_CALL) {
        drop_all();
        leave();
        return 0;
    }
    if (!is_on_an_array(args, operands) || is_reduction(loop, args, steps)) {
        note_row(loop, args, steps, n, 0);
        leave();
        return 0;
    }
    struct tf_fp saved = tf_fp_begin();
    const unsigned began = atomic_load(&begun);
    struct term terms[TERMS] = {{0}};
    look_at_operands(loop, args, steps, n, terms);
    leave();
    tf_fp_end(saved, 0);
    tf_loop_fn *original;
    memcpy(&original, &stub->original, sizeof original);
    original((char **)(intptr_t)args, (const ptrdiff_t *)&n, steps,
             (void *)(intptr_t)call->integers[3]);
    if (!enter()) {
        return 1;
    }
    if (began != atomic_load(&begun) || !atomic_load(&is_on)) {
        leave();
        return 1;
    }
    saved = tf_fp_begin();
    note_row(loop, args, steps, n, terms[0].product != NULL);
    for (int i = loop->inputs; i < operands; i++) {
        if (terms[0].product && loop->outputs == 1 && loop->is_float[i] &&
            steps[i] == (ptrdiff_t)size_of(loop->type)) {
            follow(loop, terms, args[i], n);
        } else {
            const struct span span = span_of(args[i], steps[i], n, size_of(loop->type));
            drop_overlaps(span.start, span.end);
        }
    }
    tf_fp_end(saved, 0);
    leave();
    return 1;
}

static void wait_to_enter(void)
{
    for (int tries = 0; !enter() && tries < 1 << 20; tries++) {
        /* Give up at last: in a forked child, a thread of the parent may hold the flag. */
    }
}

/* -- begin, end ------------------------------------------------------------------------ */

int tf_followed_is_for(const struct tf_loop *loop)
{
    static const char *const scales[] = {"multiply", "divide", "negative", "positive"};
    int is_for = loop->adds;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        is_for |= strcmp(loop->name, scales[i]) == 0;
    }
    return is_for;
}

int tf_followed_begin(const struct tf_source_finder *with, struct tf_stub *const *all,
                      size_t count)
{
    finder = with;
    atomic_fetch_add(&begun, 1);
    wait_to_enter();
    stub_count = 0; /* others may use the former stubs by now */
    drop_all();
    stubs = all;
    stub_count = count;
    const int status = tf_sites_clear(&table, NULL);
    atomic_store(&is_on, 1);
    leave();
    return status;
}

void tf_followed_end(void)
{
    atomic_store(&is_on, 0);
    wait_to_enter();
    drop_all();
    stub_count = 0;
    leave();
}

const struct tf_followed_sum *tf_followed_sums(size_t number)
{
    return (const struct tf_followed_sum *)tf_site_at(&table, number);
}
