#include "matmul.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "binary.h"
#include "bytes.h"
#include "casts.h"
#include "fpstatus.h"
#include "loops/isa.h"
#include "strided.h"

#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>
#endif

enum {
    BAND = 16 * TF_PRODUCT_ROWS, /* rows of A packed at a time: for the second cache */
    TILE_ROWS = 10 * BAND,       /* of C at a time */
    TILE_COLUMNS = TF_BLOCK,
    /* Rows of sums lie apart by no power of two, which would share cache sets. */
    SUMS = TILE_COLUMNS + 16,
    WIDEST = 64, /* panel of B */
    LINES = TF_ACROSS / 2 > BAND ? TF_ACROSS / 2 : BAND,
    ROW = 32 * TF_DEPTH, /* k at a time of a single row */
};

/* The least nonzero magnitudes of some numbers, less one: see product.c. */
struct least {
    uint16_t lanes[TF_LEAST];
};

/* About 6 MB, of which small products touch little. */
struct workspace {
    float sums[TILE_ROWS * SUMS];
    float b[TF_DEPTH * TILE_COLUMNS];
    float a[BAND * TF_DEPTH];
    float lines[TF_DEPTH * LINES]; /* on their way to a or b */
    float line[TF_BLOCK];
    uint16_t halves[2][TF_BLOCK];
    float row[ROW / 2]; /* of A, if it is one row */
    struct least row_least[ROW / TF_DEPTH];
};
_Static_assert((int)TF_DEPTH <= (int)TF_BLOCK && (int)WIDEST <= (int)BAND, "lines fit");

/* As many as there are threads are kept from call to call: fresh memory costs more
 * than a small product. */
enum { THREADS = 64 };
static _Atomic(struct workspace *) kept[THREADS];

static struct workspace *take_workspace(void)
{
    for (int i = 0; i < THREADS; i++) {
        if (atomic_load_explicit(&kept[i], memory_order_relaxed)) {
            struct workspace *work = atomic_exchange(&kept[i], NULL);
            if (work) {
                return work;
            }
        }
    }
    return aligned_alloc(64, (sizeof(struct workspace) + 63) / 64 * 64);
}

static void return_workspace(struct workspace *work)
{
    for (int i = 0; i < THREADS; i++) {
        struct workspace *none = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &none, work)) {
            return;
        }
    }
    free(work);
}

/* -- packing --------------------------------------------------------------------------- */

static size_t least(ptrdiff_t a, ptrdiff_t b) { return (size_t)(a < b ? a : b); }

static void unpack_row(int format, const char *data, ptrdiff_t stride, float *out,
                       size_t n)
{
    TF_BUFFER(buffer);
    const size_t itemsize = tf_format_rows[format]->itemsize;
    tf_isa->formats[format].unpack(tf_gather(data, stride, itemsize, n, buffer), out, n);
}

/* A matrix seen as lines: `width` of them, each with numbers along k. Rows of A,
 * columns of B. */
struct lines {
    int format;
    const char *data;
    ptrdiff_t stride; /* from line to line */
    ptrdiff_t along;  /* from k to k */
};

static struct lines lines_from(struct lines x, ptrdiff_t line, ptrdiff_t k)
{
    x.data += line * x.stride + k * x.along;
    return x;
}

/* Lines far apart are pages apart, which no processor reads ahead by itself. */
enum { AHEAD = 16 };

static void prefetch(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i += 64) {
        __builtin_prefetch(data + i);
    }
}

static size_t slots_of(size_t depth, int pairs) { return pairs ? (depth + 1) / 2 : depth; }

static int runs_along(struct lines x) { return labs(x.along) <= labs(x.stride); }

/* Numbers of a line as bfloat16, which holds them all; what is left of `whole` is
 * filled with zeros, and the least nonzero magnitude, less one, noted. */
static const uint16_t *load_halves(struct lines x, ptrdiff_t stride, size_t n,
                                   size_t whole, uint16_t *buffer, uint16_t *least)
{
    TF_BUFFER(items);
    const uint16_t *halves = buffer;
    if (x.format == tf_bfloat16_index) {
        halves = tf_gather(x.data, stride, sizeof *halves, n, buffer);
    } else {
        tf_isa->product->halves_of_bytes(&tf_byte_tables[x.format],
                                         tf_gather(x.data, stride, 1, n, items), buffer,
                                         n);
    }
    if (least) {
        tf_isa->product->note_least(halves, n, least);
    }
    if (n < whole) {
        memmove(buffer, halves, n * sizeof *halves);
        memset(buffer + n, 0, (whole - n) * sizeof *halves);
        halves = buffer;
    }
    return halves;
}

/* Slots one line after the other, a whole depth apart: `count` lines of x that run
 * along k. */
static size_t pack_along(struct workspace *work, struct lines x, size_t count,
                         size_t depth, int pairs, float *out, uint16_t *least)
{
    const size_t slots = slots_of(depth, pairs);
    const size_t bytes = depth * tf_format_rows[x.format]->itemsize;
    for (size_t i = 0; i < count; i++, x.data += x.stride) {
        prefetch(x.data + AHEAD * x.stride, bytes);
        float *line = out + i * slots_of(TF_DEPTH, pairs);
        if (pairs) {
            const uint16_t *halves =
                load_halves(x, x.along, depth, 2 * slots, work->halves[0], least);
            tf_isa->product->pair_neighbours(halves, line, slots);
        } else {
            unpack_row(x.format, x.data, x.along, line, depth);
        }
    }
    return slots;
}

/* Slots side by side, x's lines not running along k: in panels of `width`, each
 * `slots` long from k to k. */
static size_t pack_across(struct workspace *work, struct lines x, size_t count,
                          size_t depth, int pairs, float *out, size_t width,
                          uint16_t *least)
{
    const size_t slots = slots_of(depth, pairs);
    const size_t bytes = count * tf_format_rows[x.format]->itemsize;
    for (size_t slot = 0; slot < slots; slot++) {
        const uint16_t *halves[2];
        for (int half = 0; half <= pairs; half++) {
            prefetch(x.data + (AHEAD / 2 + half) * x.along, bytes);
        }
        if (pairs) {
            for (size_t half = 0; half < 2; half++, x.data += x.along) {
                const size_t n = 2 * slot + half < depth ? count : 0;
                halves[half] =
                    load_halves(x, x.stride, n, count, work->halves[half], least);
            }
        } else {
            unpack_row(x.format, x.data, x.stride, work->line, count);
            x.data += x.along;
        }
        for (size_t j = 0; j < count; j += width) {
            const size_t n = count - j < width ? count - j : width;
            float *place = out + j * slots + slot * width;
            if (pairs) {
                tf_isa->product->pair_rows(halves[0] + j, halves[1] + j, place, n);
            } else {
                memcpy(place, work->line + j, n * sizeof *place);
            }
        }
    }
    return slots;
}

/* A band of A: line after line. */
static size_t pack_a(struct workspace *work, struct lines a, size_t rows, size_t depth,
                     int pairs, uint16_t *least)
{
    const size_t distance = slots_of(TF_DEPTH, pairs);
    size_t slots;
    if (runs_along(a)) {
        slots = pack_along(work, a, rows, depth, pairs, work->a, least);
    } else {
        slots = pack_across(work, a, rows, depth, pairs, work->lines, BAND, least);
        tf_isa->product->transpose(work->lines, BAND, slots, rows, work->a, distance);
    }
    for (size_t i = rows; i % TF_PRODUCT_ROWS; i++) {
        memset(work->a + i * distance, 0, slots * sizeof(float));
    }
    return slots;
}

/* B in panels: in each, the slots of one k side by side. */
static void pack_b(struct workspace *work, struct lines b, size_t columns, size_t depth,
                   int pairs, uint16_t *least)
{
    const size_t width = tf_isa->product->columns;
    const size_t slots = slots_of(depth, pairs);
    if (columns % width) {
        memset(work->b + columns / width * width * slots, 0,
               width * slots * sizeof(float));
    }
    if (!runs_along(b)) {
        pack_across(work, b, columns, depth, pairs, work->b, width, least);
        return;
    }
    for (size_t j = 0; j < columns; j += width) {
        const size_t count = columns - j < width ? columns - j : width;
        const size_t distance = slots_of(TF_DEPTH, pairs);
        const struct lines panel = lines_from(b, (ptrdiff_t)j, 0);
        pack_along(work, panel, count, depth, pairs, work->lines, least);
        tf_isa->product->transpose(work->lines, distance, count, slots,
                                   work->b + j * slots, width);
    }
}

/* -- pairs, where they are exact ------------------------------------------------------ */

/* Every number that a product of pairs meets is a multiple of 2^g for the sum g of
 * what its operands are multiples of, so that from -126 on none is subnormal. */
enum { LEAST_NORMAL_EXPONENT = -126 };

static struct least no_least(void)
{
    struct least least;
    memset(&least, 0xFF, sizeof least);
    return least;
}

static int multiples_in(const struct least *least)
{
    uint16_t less_one = UINT16_MAX;
    for (int i = 0; i < TF_LEAST; i++) {
        less_one = least->lanes[i] < less_one ? least->lanes[i] : less_one;
    }
    const int field = (less_one + 1) >> 7 & 0xFF;
    /* All zero: of anything. Subnormal: of too little. */
    return less_one == UINT16_MAX ? 0 : field == 0 ? -1000 : field - 127 - 7;
}

static int all_normal(const struct least *a, const struct least *b)
{
    return multiples_in(a) + multiples_in(b) >= LEAST_NORMAL_EXPONENT;
}

/* Whether this processor's instruction is what product.c says: tried once. */
static int pairs_are_chains;

static void check_pairs(void)
{
    enum { SLOTS = 8, SAMPLES = TF_PRODUCT_ROWS * TF_DEPTH / 2 };
    float a[SAMPLES], b[SLOTS * WIDEST], c[TF_PRODUCT_ROWS * WIDEST];
    const size_t width = tf_isa->product->columns;
    if (!tf_isa->product->pairs) {
        return;
    }
    /* Two numbers of any sign between 2^-24 and 2^24 in each slot. */
    uint32_t state = 1;
    for (size_t i = 0; i < SAMPLES + SLOTS * width; i++) {
        uint32_t slot = 0;
        for (int half = 0; half < 2; half++) {
            state = state * UINT32_C(1664525) + UINT32_C(1013904223);
            const uint32_t exponent = 103 + (state >> 24) % 48;
            slot = slot << 16 | (state >> 8 & 0x8000) | exponent << 7 | (state >> 16 & 0x7F);
        }
        memcpy(i < SAMPLES ? a + i : b + i - SAMPLES, &slot, sizeof slot);
    }
    tf_isa->product->pairs(a, b, SLOTS, c, width, 0);
    pairs_are_chains = 1;
    for (size_t i = 0; i < TF_PRODUCT_ROWS; i++) {
        for (size_t j = 0; j < width; j++) {
            float chain = 0;
            for (size_t k = 0; k < 2 * SLOTS; k++) {
                uint32_t x, y;
                memcpy(&x, a + i * TF_DEPTH / 2 + k / 2, sizeof x);
                memcpy(&y, b + k / 2 * width + j, sizeof y);
                x = k % 2 ? x << 16 : x & UINT32_C(0xFFFF0000);
                y = k % 2 ? y << 16 : y & UINT32_C(0xFFFF0000);
                float p, q;
                memcpy(&p, &x, sizeof p);
                memcpy(&q, &y, sizeof q);
                chain = fmaf(p, q, chain);
            }
            pairs_are_chains &= memcmp(&chain, c + i * width + j, sizeof chain) == 0;
        }
    }
}

static int has_pairs(int format)
{
    return pairs_are_chains && tf_format_rows[format]->mantissa_bits <= 7;
}

static int always_normal(int format)
{
    return 2 * tf_least_exponent(*tf_format_rows[format]) >= LEAST_NORMAL_EXPONENT;
}

/* -- one tile ----------------------------------------------------------------------------- */

static void multiply_band(struct workspace *work, size_t rows, size_t columns,
                          size_t slots, int pairs, float *sums, int adds)
{
    const size_t width = tf_isa->product->columns;
    const size_t distance = slots_of(TF_DEPTH, pairs);
    tf_multiply_fn *multiply = pairs ? tf_isa->product->pairs : tf_isa->product->singles;
    for (size_t j = 0; j < columns; j += width) {
        for (size_t i = 0; i < rows; i += TF_PRODUCT_ROWS) {
            multiply(work->a + i * distance, work->b + j * slots, slots,
                     sums + i * SUMS + j, SUMS, adds);
        }
    }
}

/* One depth of a tile. */
static void multiply_block(struct workspace *work, struct lines a, struct lines b,
                           size_t rows, size_t columns, size_t depth, float *sums,
                           int adds)
{
    const int pairs = has_pairs(a.format);
    const int guarded = pairs && !always_normal(a.format);
    struct least least_b = no_least();
    pack_b(work, b, columns, depth, pairs, guarded ? least_b.lanes : NULL);
    uint8_t left[TILE_ROWS / BAND] = {0};
    int any_left = 0;
    for (size_t i = 0; i < rows; i += BAND) {
        const size_t count = rows - i < BAND ? rows - i : BAND;
        struct least least_a = no_least();
        const size_t slots = pack_a(work, lines_from(a, (ptrdiff_t)i, 0), count, depth,
                                    pairs, guarded ? least_a.lanes : NULL);
        if (guarded && !all_normal(&least_a, &least_b)) {
            any_left = left[i / BAND] = 1;
            continue;
        }
        multiply_band(work, count, columns, slots, pairs, sums + i * SUMS, adds);
    }
    if (!any_left) {
        return;
    }
    pack_b(work, b, columns, depth, 0, NULL);
    for (size_t i = 0; i < rows; i += BAND) {
        if (left[i / BAND]) {
            const size_t count = rows - i < BAND ? rows - i : BAND;
            pack_a(work, lines_from(a, (ptrdiff_t)i, 0), count, depth, 0, NULL);
            multiply_band(work, count, columns, depth, 0, sums + i * SUMS, adds);
        }
    }
}

/* A part of one row's product, as wide as the kernels are, without packing columns. */
static void multiply_unpacked(struct workspace *work, const float *slots,
                              struct lines b, size_t depth, float *sums,
                              struct least *least_b)
{
    const int along = runs_along(b);
    const char *data = b.data;
    ptrdiff_t step = along ? b.stride : b.along;
    if (!along && b.stride == 1 && tf_isa->product->row_times_bytes &&
        always_normal(b.format)) {
        tf_isa->product->row_times_bytes(slots, &tf_byte_tables[b.format], data, step,
                                         depth, sums);
        return;
    }
    /* Columns that run along k are copied too: they lie apart by multiples of what
     * makes lines of a cache compete. */
    if (along || b.format != tf_bfloat16_index || b.stride != 2) {
        const size_t length = along ? depth : TF_ACROSS;
        const size_t itemsize = tf_format_rows[b.format]->itemsize;
        uint16_t *halves = (uint16_t *)work->lines;
        for (size_t i = 0; i < (along ? TF_ALONG : depth); i++) {
            uint16_t *line = halves + i * length;
            const ptrdiff_t stride = along ? b.along : b.stride;
            prefetch(b.data + AHEAD * step, length * itemsize);
            const uint16_t *found = load_halves(b, stride, length, length, line, NULL);
            if (found != line) {
                memcpy(line, found, length * sizeof *line);
            }
            b.data += step;
        }
        data = (const char *)halves;
        step = (ptrdiff_t)(length * sizeof *halves);
    }
    (along ? tf_isa->product->row_times_along : tf_isa->product->row_times_across)(
        slots, data, step, depth, sums, least_b->lanes);
}

/* How many columns that takes. */
static size_t row_width(struct lines b) { return runs_along(b) ? TF_ALONG : TF_ACROSS; }

/* One row's slots, of as many k as there is room for. */
static void pack_row(struct workspace *work, struct lines a, size_t k)
{
    for (size_t k0 = 0; k0 < k; k0 += TF_DEPTH) {
        struct least *least_a = &work->row_least[k0 / TF_DEPTH];
        *least_a = no_least();
        pack_along(work, lines_from(a, 0, (ptrdiff_t)k0), 1,
                   least(TF_DEPTH, (ptrdiff_t)(k - k0)), 1, work->row + k0 / 2,
                   least_a->lanes);
    }
}

/* The sums of some columns of one row of C over some k, from the row's slots. */
static void multiply_row(struct workspace *work, struct lines a, struct lines b,
                         size_t columns, size_t k, float *sums, int adds)
{
    float part[TF_ACROSS];
    for (size_t k0 = 0; k0 < k; k0 += TF_DEPTH, adds = 1) {
        const size_t depth = least(TF_DEPTH, (ptrdiff_t)(k - k0));
        const struct lines b_part = lines_from(b, 0, (ptrdiff_t)k0);
        struct least least_b = no_least();
        int exact = columns == row_width(b) && !(runs_along(b) && depth % 32);
        if (exact) {
            multiply_unpacked(work, work->row + k0 / 2, b_part, depth, part, &least_b);
            exact = all_normal(&work->row_least[k0 / TF_DEPTH], &least_b);
        }
        if (!exact) {
            multiply_block(work, lines_from(a, 0, (ptrdiff_t)k0), b_part, 1, columns,
                           depth, sums, adds);
        } else if (adds) {
            tf_isa->binary_f32[TF_ADD](sums, part, sums, columns);
        } else {
            memcpy(sums, part, columns * sizeof *part);
        }
    }
}

/* The sums of one tile of C over all of k. */
static void multiply_tile(struct workspace *work, struct lines a, struct lines b,
                          size_t rows, size_t columns, ptrdiff_t k)
{
    /* -0 does not survive 0 + -0: the first sums are stored, not added. */
    if (k == 0) {
        memset(work->sums, 0, rows * SUMS * sizeof(float));
    }
    if (rows == 1 && has_pairs(a.format)) {
        const size_t width = row_width(b);
        for (ptrdiff_t k0 = 0; k0 < k; k0 += ROW) {
            const struct lines a_part = lines_from(a, 0, k0);
            const size_t count = least(ROW, k - k0);
            pack_row(work, a_part, count);
            for (size_t j = 0; j < columns; j += width) {
                multiply_row(work, a_part, lines_from(b, (ptrdiff_t)j, k0),
                             columns - j < width ? columns - j : width, count,
                             work->sums + j, k0 != 0);
            }
        }
        return;
    }
    for (ptrdiff_t k0 = 0; k0 < k; k0 += TF_DEPTH) {
        multiply_block(work, lines_from(a, 0, k0), lines_from(b, 0, k0), rows, columns,
                       least(TF_DEPTH, k - k0), work->sums, k0 != 0);
    }
}

/* -- results --------------------------------------------------------------------------- */

static const char *at(struct tf_matrix x, ptrdiff_t i, ptrdiff_t j)
{
    return x.data + i * x.strides[0] + j * x.strides[1];
}

/* Which of a row's or a column's k elements are not finite. */
enum { HAS_INFINITY = 1, HAS_NAN = 2 };

static uint8_t specials_of(int format, const char *data, ptrdiff_t stride, ptrdiff_t k)
{
    float numbers[TF_DEPTH];
    int found = 0;
    for (ptrdiff_t p = 0; p < k; p += TF_DEPTH) {
        const size_t count = least(TF_DEPTH, k - p);
        unpack_row(format, data + p * stride, stride, numbers, count);
        for (size_t i = 0; i < count; i++) {
            found |= isnan(numbers[i]) ? HAS_NAN : isinf(numbers[i]) ? HAS_INFINITY : 0;
        }
    }
    return (uint8_t)found;
}

/* What the elements of a tile that are not finite raise: Inf from finite
 * operands is an overflow; a NaN that no operand had is an invalid operation. */
static unsigned flags_of_specials(int format, const float *sums, struct tf_matrix a,
                                  struct tf_matrix b, ptrdiff_t i0, size_t rows,
                                  ptrdiff_t j0, size_t columns, ptrdiff_t k)
{
    /* Where there is no Inf, and no sum is beyond float32, NaN comes of NaN. */
    const struct tf_format *f = tf_format_rows[format];
    if (f->specials != TF_IEEE && f->exponent_bits < 8) {
        return 0;
    }
    uint8_t in_column[TILE_COLUMNS];
    unsigned flags = 0;
    for (size_t j = 0; j < columns; j++) {
        in_column[j] = specials_of(format, at(b, 0, j0 + (ptrdiff_t)j), b.strides[0], k);
    }
    for (size_t i = 0; i < rows; i++) {
        const uint8_t in_row =
            specials_of(format, at(a, i0 + (ptrdiff_t)i, 0), a.strides[1], k);
        for (size_t j = 0; j < columns; j++) {
            const float sum = sums[i * SUMS + j];
            const int found = in_row | in_column[j];
            if (isnan(sum) && !(found & HAS_NAN)) {
                flags |= TF_INVALID;
            } else if (isinf(sum) && !found) {
                flags |= tf_overflow_flag(*tf_format_rows[format]);
            }
        }
    }
    return flags;
}

static int has_specials(const float *sums, size_t n)
{
    int found = 0;
    for (size_t j = 0; j < n; j++) {
        found |= !isfinite(sums[j]);
    }
    return found;
}

/* A row of sums to where it belongs; whether it has Inf or NaN. */
static int store_row(int format, int into_float32, float *sums, char *out,
                     ptrdiff_t stride, size_t n, unsigned *flags)
{
    const struct tf_conversions *conversions =
        &tf_isa->formats[into_float32 ? tf_bfloat16_index : format];
    const size_t itemsize = into_float32 ? sizeof *sums : tf_format_rows[format]->itemsize;
    TF_BUFFER(buffer);
    void *items = into_float32 ? sums : tf_target(out, stride, itemsize, buffer);
    const struct tf_suspects suspects =
        into_float32 ? conversions->suspect(sums, n) : conversions->pack(sums, items, n);
    const int special = suspects.beyond && has_specials(sums, n);
    if (special) {
        tf_canonical_nans(sums, n);
    }
    if (!into_float32) {
        if (special) {
            conversions->pack(sums, items, n);
        }
        if (tf_may_raise(format, suspects) & ~*flags) {
            *flags |= conversions->flags(sums, items, n);
        }
    }
    tf_scatter(items, out, stride, itemsize, n);
    return special;
}

static unsigned store_tile(struct workspace *work, int format, int into_float32,
                           struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                           ptrdiff_t i0, size_t rows, ptrdiff_t j0, size_t columns,
                           ptrdiff_t k)
{
    unsigned flags = 0;
    int special = 0;
    for (size_t i = 0; i < rows; i++) {
        char *out = (char *)at(c, i0 + (ptrdiff_t)i, j0);
        special |= store_row(format, into_float32, work->sums + i * SUMS, out,
                             c.strides[1], columns, &flags);
    }
    if (special) {
        flags |= flags_of_specials(format, work->sums, a, b, i0, rows, j0, columns, k);
    }
    return flags;
}

/* -- threads ---------------------------------------------------------------------------- */

/* A thread that OpenMP has started does not live on in a forked child, which would
 * wait for it for ever. */
static int forked;

static void note_fork(void) { forked = 1; }

void tf_matmul_prepare(void)
{
    check_pairs();
#if defined(_OPENMP)
    pthread_atfork(NULL, NULL, note_fork);
#else
    (void)note_fork;
#endif
}

/* Multiply-adds that are worth another thread. */
enum { SHARE = 1 << 22 };

static ptrdiff_t threads_for(double work)
{
    ptrdiff_t threads = 1;
#if defined(_OPENMP)
    threads = forked || omp_in_parallel() ? 1 : omp_get_max_threads();
#endif
    const double shares = work / SHARE;
    threads = shares < (double)threads ? (ptrdiff_t)shares : threads;
    return threads < 1 ? 1 : threads > THREADS ? THREADS : threads;
}

static ptrdiff_t pieces(ptrdiff_t whole, ptrdiff_t piece)
{
    return (whole + piece - 1) / piece;
}

/* Tiles of C, all of the same size but for the last ones. */
struct tiling {
    ptrdiff_t rows, columns;    /* of a tile */
    ptrdiff_t vertical, across; /* tiles of a matrix */
};

/* Small enough that every thread finds work: two tiles or more. */
static struct tiling tile(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count, ptrdiff_t threads)
{
    struct tiling t = {TILE_ROWS, TILE_COLUMNS, 0, 0};
    for (;;) {
        t.vertical = pieces(m, t.rows);
        t.across = pieces(n, t.columns);
        const int enough = threads == 1 || t.vertical * t.across * count >= 2 * threads;
        if (enough || (t.rows <= BAND && t.columns <= 2 * WIDEST)) {
            return t;
        }
        if (t.rows > BAND && (t.columns <= 2 * WIDEST || t.rows >= t.columns)) {
            t.rows = pieces(t.rows / 2, BAND) * BAND;
        } else {
            t.columns /= 2;
        }
    }
}

struct call {
    int format, into_float32;
    struct tf_matrix a, b, c;
    ptrdiff_t m, n, k;
    struct tiling tiling;
};

static unsigned multiply_one(const struct call *call, ptrdiff_t task,
                             struct workspace *work)
{
    const struct tiling t = call->tiling;
    const ptrdiff_t number = task / (t.vertical * t.across);
    const ptrdiff_t i = task / t.across % t.vertical * t.rows;
    const ptrdiff_t j = task % t.across * t.columns;
    const size_t rows = least(t.rows, call->m - i);
    const size_t columns = least(t.columns, call->n - j);
    struct tf_matrix a = call->a, b = call->b, c = call->c;
    a.data += number * a.step;
    b.data += number * b.step;
    c.data += number * c.step;
    const struct lines rows_of_a = {call->format, a.data, a.strides[0], a.strides[1]};
    const struct lines columns_of_b = {call->format, b.data, b.strides[1], b.strides[0]};
    multiply_tile(work, lines_from(rows_of_a, i, 0), lines_from(columns_of_b, j, 0),
                  rows, columns, call->k);
    return store_tile(work, call->format, call->into_float32, a, b, c, i, rows, j,
                      columns, call->k);
}

static struct tf_matrix transposed(struct tf_matrix x)
{
    const struct tf_matrix t = {x.data, {x.strides[1], x.strides[0]}, x.step};
    return t;
}

int tf_matmul(int format, int into_float32, struct tf_matrix a, struct tf_matrix b,
              struct tf_matrix c, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
              ptrdiff_t count)
{
    if (n < TF_PRODUCT_ROWS && m > n) { /* blocks of C are wide */
        return tf_matmul(format, into_float32, transposed(b), transposed(a),
                         transposed(c), n, m, k, count);
    }
    const ptrdiff_t threads = threads_for((double)m * (double)n * (double)k * (double)count);
    const struct call call = {
        format, into_float32, a, b, c, m, n, k, tile(m, n, count, threads)};
    const ptrdiff_t tasks = call.tiling.vertical * call.tiling.across * count;

    struct workspace *works[THREADS];
    ptrdiff_t ready = 0;
    while (ready < threads && ready < tasks && (works[ready] = take_workspace())) {
        ready++;
    }
    if (!ready && tasks) {
        return -1;
    }
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    if (ready <= 1) {
        for (ptrdiff_t task = 0; task < tasks; task++) {
            flags |= multiply_one(&call, task, works[0]);
        }
    } else {
#if defined(_OPENMP)
#pragma omp parallel num_threads((int)ready) reduction(| : flags)
        {
            const struct tf_fp own = tf_fp_begin();
#pragma omp for schedule(dynamic)
            for (ptrdiff_t task = 0; task < tasks; task++) {
                flags |= multiply_one(&call, task, works[omp_get_thread_num()]);
            }
            tf_fp_end(own, 0);
        }
#endif
    }
    for (ptrdiff_t i = 0; i < ready; i++) {
        return_workspace(works[i]);
    }
    tf_fp_end(saved, flags);
    return 0;
}
