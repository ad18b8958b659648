#include "matmul.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "binary.h"
#include "bytes.h"
#include "casts.h"
#include "elements.h"
#include "fpstatus.h"
#include "pack.h"
#include "strided.h"

#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>
#endif

/* As many as there are threads are kept from call to call: fresh memory costs more
 * than a small product. */
enum { THREADS = 64 };
static _Atomic(struct tf_workspace *) kept[THREADS];

static struct tf_workspace *take_workspace(void)
{
    for (int i = 0; i < THREADS; i++) {
        if (atomic_load_explicit(&kept[i], memory_order_relaxed)) {
            struct tf_workspace *work = atomic_exchange(&kept[i], NULL);
            if (work) {
                return work;
            }
        }
    }
    return aligned_alloc(64, (sizeof(struct tf_workspace) + 63) / 64 * 64);
}

static void return_workspace(struct tf_workspace *work)
{
    for (int i = 0; i < THREADS; i++) {
        struct tf_workspace *none = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &none, work)) {
            return;
        }
    }
    free(work);
}

void tf_matmul_free(void)
{
    for (int i = 0; i < THREADS; i++) {
        free(atomic_exchange(&kept[i], NULL));
    }
}

static size_t least(ptrdiff_t a, ptrdiff_t b) { return (size_t)(a < b ? a : b); }

/* -- pairs, where they are exact ------------------------------------------------------ */

/* Every number that a product of pairs meets is a multiple of 2^g for the sum g of
 * what its operands are multiples of, so that from -126 on none is subnormal. */
enum { LEAST_NORMAL_EXPONENT = -126 };

static struct tf_range no_range(void)
{
    struct tf_range range;
    memset(range.least_less_one, 0xFF, sizeof range.least_less_one);
    memset(range.greatest, 0, sizeof range.greatest);
    return range;
}

/* The exponents of the least and of the greatest numbers of a range, as if all had
 * been normal: subnormal ones are beyond what any product stands, as are Inf and NaN. */
struct exponents {
    int least, greatest;
};

static struct exponents exponents_of(const struct tf_range *range)
{
    uint16_t less_one = UINT16_MAX, greatest = 0;
    for (int i = 0; i < TF_LANES; i++) {
        const uint16_t here = range->least_less_one[i];
        less_one = here < less_one ? here : less_one;
        greatest = range->greatest[i] > greatest ? range->greatest[i] : greatest;
    }
    const int field = (less_one + 1) >> 7 & 0xFF;
    const struct exponents all_zero = {0, 0};
    const struct exponents found = {
        field == 0 ? -1000 : field - 127,
        greatest >= 0x7F80 ? 1000 : (greatest >> 7) - 127,
    };
    return less_one == UINT16_MAX ? all_zero : found;
}

/* bfloat16 numbers are multiples of 2^-7 times their leading bit. */
static int all_normal(const struct tf_range *a, const struct tf_range *b)
{
    const int multiples = exponents_of(a).least - 7 + exponents_of(b).least - 7;
    return multiples >= LEAST_NORMAL_EXPONENT;
}

/* Parts, and their products and sums, are multiples of 2^-23 times the leading bit of
 * the numbers that were split. They are not scaled, as the slow way has them: no sum
 * of theirs may come near Inf, either, when it is. At most 9 * 32 products are added,
 * none of more than 2^2 times the leading bits. */
static int all_parts_normal(const struct tf_range *a, const struct tf_range *b)
{
    enum { GREATEST = 127 - 9 - 2 };
    const struct exponents x = exponents_of(a), y = exponents_of(b);
    return x.least - 23 >= LEAST_NORMAL_EXPONENT && y.least - 23 >= LEAST_NORMAL_EXPONENT &&
           x.least - 23 + y.least - 23 >= LEAST_NORMAL_EXPONENT &&
           x.greatest + y.greatest < GREATEST;
}

/* Whether this processor's instruction is what product.c says: tried once. */
static int pairs_are_chains;

static void check_pairs(void)
{
    enum { SLOTS = 8, SAMPLES = TF_PRODUCT_ROWS * TF_DEPTH / 2 };
    float a[SAMPLES], b[SLOTS * TF_WIDEST], c[TF_PRODUCT_ROWS * TF_WIDEST];
    const size_t width = tf_isa->product->columns;
    const struct tf_term term = {0, 0, 1};
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
    tf_isa->product->pairs(a, b, SLOTS, &term, 1, c, width, 0);
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

static int fits_halves(struct tf_lines x)
{
    return x.parts > 1 ? x.p == 8
                       : x.format < TF_FORMAT_COUNT &&
                             tf_format_rows[x.format]->mantissa_bits <= 7;
}

static int has_pairs(struct tf_lines a, struct tf_lines b)
{
    return pairs_are_chains && fits_halves(a) && fits_halves(b);
}

static int always_normal(struct tf_lines a, struct tf_lines b)
{
    return a.parts == 1 && tf_least_exponent(*tf_format_rows[a.format]) +
                                   tf_least_exponent(*tf_format_rows[b.format]) >=
                               LEAST_NORMAL_EXPONENT;
}

/* -- the terms of a chain ------------------------------------------------------------------ */

enum {
    SPLIT_DEPTH = 32,   /* k of a chain of parts' products */
    SPLIT_LENGTH = 4096 /* k whose sums of 256 make a sum of their own */
};

/* What is multiplied and added one after the other: see matmul.h. */
struct terms {
    struct tf_term terms[TF_PARTS * TF_PARTS];
    size_t count;
    size_t depth; /* k of a chain */
};

/* Products of parts i + j = band make a band; the smallest is first. In a band the
 * one of A's greatest part is first: of B's, if the two have changed places. */
static struct terms terms_of(const struct tf_precision *precision, int p, int swapped,
                             int pairs)
{
    const int parts = precision->parts;
    struct terms terms = {{{0, 0, 1}}, 0, parts > 1 ? SPLIT_DEPTH : TF_DEPTH};
    for (int band = precision->bands - 1; band >= 0; band--) {
        const int first = band < parts ? 0 : band - parts + 1;
        for (int i = first; i <= band - first; i++) {
            const int scales = i == first && terms.count && !pairs;
            const int j = band - i;
            terms.terms[terms.count++] = (struct tf_term){
                (size_t)(swapped ? j : i) * TF_PART_OF_A,
                (size_t)(swapped ? i : j) * TF_PART_OF_B,
                scales ? 1.0f / (float)(1 << p) : 1,
            };
        }
    }
    return terms;
}

/* -- one tile ----------------------------------------------------------------------------- */

/* A tile's operands, and how they are multiplied. */
struct tile {
    struct tf_lines a, b;
    size_t rows, columns;
    struct terms singles, pairs;
};

static struct tile tile_from(struct tile tile, ptrdiff_t k)
{
    tile.a = tf_lines_from(tile.a, 0, k);
    tile.b = tf_lines_from(tile.b, 0, k);
    return tile;
}

static void multiply_band(struct tf_workspace *work, size_t rows, size_t columns,
                          size_t slots, int pairs, const struct terms *terms,
                          float *sums, int adds)
{
    const size_t width = tf_isa->product->columns;
    const size_t length = tf_slots_of(TF_DEPTH, pairs);
    const size_t depth = tf_slots_of(terms->depth, pairs);
    tf_multiply_fn *multiply = pairs ? tf_isa->product->pairs : tf_isa->product->singles;
    float part[TF_PRODUCT_ROWS * TF_WIDEST];
    for (size_t j = 0; j < columns; j += width) {
        for (size_t i = 0; i < rows; i += TF_PRODUCT_ROWS) {
            const float *a = work->a + i * length, *b = work->b + j * slots;
            float *place = sums + i * TF_SUMS + j;
            if (slots <= depth) {
                multiply(a, b, slots, terms->terms, terms->count, place, TF_SUMS, adds);
                continue;
            }
            for (size_t slot = 0; slot < slots; slot += depth) {
                const size_t count = slots - slot < depth ? slots - slot : depth;
                multiply(a + slot, b + slot * width, count, terms->terms, terms->count,
                         part, width, slot != 0);
            }
            for (size_t row = 0; row < TF_PRODUCT_ROWS; row++) {
                const float *from = part + row * width;
                float *to = place + row * TF_SUMS;
                for (size_t column = 0; column < width; column++) {
                    to[column] = adds ? to[column] + from[column] : from[column];
                }
            }
        }
    }
}

/* One depth of a tile. */
static void multiply_block(struct tf_workspace *work, const struct tile *tile,
                           size_t depth, float *sums, int adds)
{
    const int pairs = has_pairs(tile->a, tile->b);
    const int guarded = pairs && !always_normal(tile->a, tile->b);
    const int noted = guarded || tile->a.parts > 1;
    struct tf_range range_of_b = no_range();
    size_t slots = tf_pack_b(work, tile->b, tile->columns, depth, pairs,
                             noted ? &range_of_b : NULL);
    work->has_specials |= exponents_of(&range_of_b).greatest > 127;
    uint8_t left[TF_TILE_ROWS / TF_BAND] = {0};
    int any_left = 0;
    for (size_t i = 0; i < tile->rows; i += TF_BAND) {
        const size_t rows = tile->rows - i < TF_BAND ? tile->rows - i : TF_BAND;
        struct tf_range range_of_a = no_range();
        tf_pack_a(work, tf_lines_from(tile->a, (ptrdiff_t)i, 0), rows, depth, pairs,
                  noted ? &range_of_a : NULL);
        work->has_specials |= exponents_of(&range_of_a).greatest > 127;
        if (guarded && !(tile->a.parts > 1 ? all_parts_normal : all_normal)(
                           &range_of_a, &range_of_b)) {
            any_left = left[i / TF_BAND] = 1;
            continue;
        }
        multiply_band(work, rows, tile->columns, slots, pairs,
                      pairs ? &tile->pairs : &tile->singles, sums + i * TF_SUMS, adds);
    }
    if (!any_left) {
        return;
    }
    slots = tf_pack_b(work, tile->b, tile->columns, depth, 0, &range_of_b);
    for (size_t i = 0; i < tile->rows; i += TF_BAND) {
        if (left[i / TF_BAND]) {
            const size_t rows = tile->rows - i < TF_BAND ? tile->rows - i : TF_BAND;
            tf_pack_a(work, tf_lines_from(tile->a, (ptrdiff_t)i, 0), rows, depth, 0,
                      &range_of_b);
            multiply_band(work, rows, tile->columns, slots, 0, &tile->singles,
                          sums + i * TF_SUMS, adds);
        }
    }
}

/* A part of one row's product, as wide as the kernels are, without packing columns. */
static void multiply_unpacked(struct tf_workspace *work, const float *slots,
                              struct tf_lines b, int always_normal, size_t depth,
                              float *sums, struct tf_range *range)
{
    const int along = tf_runs_along(b);
    const char *data = b.data;
    ptrdiff_t step = along ? b.stride : b.along;
    if (!along && b.kind == b.format && b.stride == 1 &&
        tf_isa->product->row_times_bytes && always_normal) {
        tf_isa->product->row_times_bytes(slots, &tf_byte_tables[b.format], data, step,
                                         depth, sums);
        return;
    }
    /* Columns that run along k are copied too: they lie apart by multiples of what
     * makes lines of a cache compete. */
    if (along || b.kind != tf_bfloat16_index || b.stride != 2) {
        const size_t length = along ? depth : TF_ACROSS;
        const size_t bytes = length * tf_kind_size(b.kind);
        const ptrdiff_t stride = along ? b.along : b.stride;
        uint16_t *halves = (uint16_t *)work->lines;
        for (size_t i = 0; i < (along ? TF_ALONG : depth); i++) {
            uint16_t *line = halves + i * length;
            tf_prefetch(b.data + TF_AHEAD * step, bytes);
            const uint16_t *found =
                tf_load_halves(b, stride, length, !along, line, 0, NULL);
            if (found != line) {
                memcpy(line, found, length * sizeof *line);
            }
            b = along ? tf_lines_from(b, 1, 0) : tf_lines_from(b, 0, 1);
        }
        data = (const char *)halves;
        step = (ptrdiff_t)(length * sizeof *halves);
    }
    (along ? tf_isa->product->row_times_along : tf_isa->product->row_times_across)(
        slots, data, step, depth, sums, range);
}

/* How many columns that takes. */
static size_t row_width(struct tf_lines b)
{
    return tf_runs_along(b) ? TF_ALONG : TF_ACROSS;
}

/* One row's slots, of as many k as there is room for. */
static void pack_row(struct tf_workspace *work, struct tf_lines a, size_t k)
{
    for (size_t k0 = 0; k0 < k; k0 += TF_DEPTH) {
        struct tf_range *range = &work->row_ranges[k0 / TF_DEPTH];
        *range = no_range();
        tf_pack_along(work, tf_lines_from(a, 0, (ptrdiff_t)k0), 1,
                      least(TF_DEPTH, (ptrdiff_t)(k - k0)), 1, work->row + k0 / 2, 0,
                      range);
    }
}

/* The sums of some columns of one row of C over some k, from the row's slots. */
static void multiply_row(struct tf_workspace *work, const struct tile *tile, size_t k,
                         float *sums, int adds)
{
    float part[TF_ACROSS];
    const int normal = always_normal(tile->a, tile->b);
    for (size_t k0 = 0; k0 < k; k0 += TF_DEPTH, adds = 1) {
        const size_t depth = least(TF_DEPTH, (ptrdiff_t)(k - k0));
        const struct tile here = tile_from(*tile, (ptrdiff_t)k0);
        struct tf_range range = no_range();
        int exact = here.columns == row_width(here.b) &&
                    !(tf_runs_along(here.b) && depth % 32);
        if (exact) {
            multiply_unpacked(work, work->row + k0 / 2, here.b, normal, depth, part,
                              &range);
            exact = normal || all_normal(&work->row_ranges[k0 / TF_DEPTH], &range);
        }
        if (!exact) {
            multiply_block(work, &here, depth, sums, adds);
        } else if (adds) {
            tf_isa->binary_f32[TF_ADD](sums, part, sums, here.columns);
        } else {
            memcpy(sums, part, here.columns * sizeof *part);
        }
    }
}

/* The sums of a tile over all of k, if it is one row of halves. */
static void multiply_rows(struct tf_workspace *work, const struct tile *tile,
                          ptrdiff_t k)
{
    const size_t width = row_width(tile->b);
    for (ptrdiff_t k0 = 0; k0 < k; k0 += TF_ROW) {
        const size_t count = least(TF_ROW, k - k0);
        pack_row(work, tf_lines_from(tile->a, 0, k0), count);
        for (size_t j = 0; j < tile->columns; j += width) {
            struct tile piece = tile_from(*tile, k0);
            piece.b = tf_lines_from(piece.b, (ptrdiff_t)j, 0);
            piece.columns = tile->columns - j < width ? tile->columns - j : width;
            multiply_row(work, &piece, count, work->sums + j, k0 != 0);
        }
    }
}

static void multiply_blocks(struct tf_workspace *work, const struct tile *tile,
                            ptrdiff_t k, float *sums)
{
    for (ptrdiff_t k0 = 0; k0 < k; k0 += TF_DEPTH) {
        const struct tile block = tile_from(*tile, k0);
        multiply_block(work, &block, least(TF_DEPTH, k - k0), sums, k0 != 0);
    }
}

/* Where tiles of parts have a second set of sums. */
static float *more_sums(struct tf_workspace *work)
{
    return work->sums + TF_TILE_ROWS / 2 * TF_SUMS;
}

static void multiply_parts(struct tf_workspace *work, const struct tile *tile,
                           ptrdiff_t k)
{
    float *sums = work->sums, *more = more_sums(work);
    for (ptrdiff_t k0 = 0; k0 < k; k0 += SPLIT_LENGTH) {
        const struct tile stretch = tile_from(*tile, k0);
        multiply_blocks(work, &stretch, (ptrdiff_t)least(SPLIT_LENGTH, k - k0),
                        k0 ? more : sums);
        for (size_t i = 0; k0 && i < tile->rows; i++) {
            float *row = sums + i * TF_SUMS;
            tf_isa->binary_f32[TF_ADD](row, more + i * TF_SUMS, row, tile->columns);
        }
    }
}

/* -- Inf and NaN ------------------------------------------------------------------------- */

enum { HAS_INFINITY = 1, HAS_NAN = 2 };

static void mark(const float *numbers, size_t n, uint8_t *marks, size_t step)
{
    for (size_t i = 0; i < n; i++) {
        marks[i * step] |= isnan(numbers[i])   ? HAS_NAN
                           : isinf(numbers[i]) ? HAS_INFINITY
                                               : 0;
    }
}

/* Which lines hold what is not finite, as it is stored. */
static void mark_lines(struct tf_lines x, size_t count, ptrdiff_t k, uint8_t *marks)
{
    float buffer[TF_BLOCK];
    const int along = tf_runs_along(x);
    const ptrdiff_t lines = along ? (ptrdiff_t)count : k;
    const ptrdiff_t length = along ? k : (ptrdiff_t)count;
    memset(marks, 0, count);
    for (ptrdiff_t i = 0; i < lines; i++) {
        for (ptrdiff_t j = 0; j < length; j += TF_BLOCK) {
            const struct tf_lines from =
                along ? tf_lines_from(x, i, j) : tf_lines_from(x, j, i);
            const size_t n = least(TF_BLOCK, length - j);
            const float *numbers = tf_load_floats(
                x.kind, from.data, along ? x.along : x.stride, n, buffer);
            mark(numbers, n, marks + (along ? i : j), !along);
        }
    }
}

static void mark_specials(struct tf_workspace *work, const struct tile *tile, ptrdiff_t k)
{
    mark_lines(tile->a, tile->rows, k, work->in_row);
    mark_lines(tile->b, tile->columns, k, work->in_column);
}

/* What parts make of Inf and NaN is not what the numbers do: where a row or a column
 * holds one, the product of the whole numbers counts. */
static void mend_specials(struct tf_workspace *work, const struct tile *tile, ptrdiff_t k)
{
    static const struct tf_precision whole = {TF_FLOAT32, TF_TIES_TO_EVEN, 0, 1, 1, 0};
    struct tile plain = *tile;
    float *more = more_sums(work);
    plain.a.parts = plain.b.parts = 1;
    plain.singles = terms_of(&whole, 0, 0, 0);
    multiply_blocks(work, &plain, k, more);
    mark_specials(work, tile, k);
    for (size_t i = 0; i < tile->rows; i++) {
        for (size_t j = 0; j < tile->columns; j++) {
            if (work->in_row[i] | work->in_column[j]) {
                work->sums[i * TF_SUMS + j] = more[i * TF_SUMS + j];
            }
        }
    }
}

/* The sums of one tile of C over all of k. */
static void multiply_tile(struct tf_workspace *work, const struct tile *tile,
                          ptrdiff_t k, int saturates)
{
    work->has_specials = 0;
    if (k == 0) { /* else the first sums are stored: -0 does not survive 0 + -0 */
        memset(work->sums, 0, tile->rows * TF_SUMS * sizeof(float));
    } else if (tile->a.parts > 1) {
        multiply_parts(work, tile, k);
        if (work->has_specials && !saturates) {
            mend_specials(work, tile, k);
        }
    } else if (tile->rows == 1 && has_pairs(tile->a, tile->b)) {
        multiply_rows(work, tile, k);
    } else {
        multiply_blocks(work, tile, k, work->sums);
    }
}

/* What the elements of a tile that are not finite raise: Inf from finite
 * operands is an overflow; a NaN that no operand had is an invalid operation. */
static unsigned flags_of_specials(struct tf_workspace *work, const struct tile *tile,
                                  ptrdiff_t k, unsigned overflow)
{
    unsigned flags = 0;
    mark_specials(work, tile, k);
    for (size_t i = 0; i < tile->rows; i++) {
        for (size_t j = 0; j < tile->columns; j++) {
            const float sum = work->sums[i * TF_SUMS + j];
            const int found = work->in_row[i] | work->in_column[j];
            if (isnan(sum) && !(found & HAS_NAN)) {
                flags |= TF_INVALID;
            } else if (isinf(sum) && !found) {
                flags |= overflow;
            }
        }
    }
    return flags;
}

/* Where there is no Inf, and no sum is beyond float32, NaN comes of NaN. */
static int may_raise(struct tf_lines x)
{
    const struct tf_format *f = x.kind < TF_FORMAT_COUNT ? tf_format_rows[x.kind] : NULL;
    return !f || f->specials == TF_IEEE || f->exponent_bits >= 8;
}

/* -- results --------------------------------------------------------------------------- */

static int has_specials(const float *sums, size_t n)
{
    int found = 0;
    for (size_t j = 0; j < n; j++) {
        found |= !isfinite(sums[j]);
    }
    return found;
}

/* A row of sums to where it belongs; whether it has Inf or NaN. */
static int store_row(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                     unsigned *flags)
{
    TF_BUFFER(buffer);
    const int rounds = kind <= TF_FLOAT16;
    const struct tf_conversions *conversions =
        &tf_isa->formats[rounds ? kind : tf_bfloat16_index];
    const size_t itemsize = tf_kind_size(kind);
    void *items = kind == TF_FLOAT32 ? sums : tf_target(out, stride, itemsize, buffer);
    const struct tf_suspects suspects =
        rounds ? conversions->pack(sums, items, n) : conversions->suspect(sums, n);
    const int special = suspects.beyond && has_specials(sums, n);
    if (special) {
        tf_canonical_nans(sums, n);
    }
    if (kind == TF_FLOAT64) {
        tf_isa->widen(sums, items, n);
    } else if (rounds) {
        if (special) {
            conversions->pack(sums, items, n);
        }
        if (tf_may_raise(kind, suspects) & ~*flags) {
            *flags |= conversions->flags(sums, items, n);
        }
    }
    tf_scatter(items, out, stride, itemsize, n);
    return special;
}

/* What a product does with its sums before they are rounded. */
struct update {
    float alpha, beta;
    const float *row_scales, *column_scales; /* of a tile; NULL: none */
    int columns_first;                       /* of the scales */
};

static void times(float *sums, size_t n, float factor)
{
    for (size_t j = 0; j < n; j++) {
        sums[j] *= factor;
    }
}

static void update_row(const struct update *update, float *sums, size_t i, size_t n,
                       int kind, const char *c, ptrdiff_t stride)
{
    float buffer[TF_BLOCK];
    for (int side = 0; side < 2 && update->row_scales; side++) {
        if (side == update->columns_first) {
            times(sums, n, update->row_scales[i]);
        } else {
            for (size_t j = 0; j < n; j++) {
                sums[j] *= update->column_scales[j];
            }
        }
    }
    if (update->alpha != 1) {
        times(sums, n, update->alpha);
    }
    if (update->beta != 0) {
        const float *old = tf_load_floats(kind, c, stride, n, buffer);
        for (size_t j = 0; j < n; j++) {
            sums[j] = fmaf(update->beta, old[j], sums[j]);
        }
    }
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

/* Small enough that every thread finds work: two tiles or more. Parts need room for
 * two sets of sums. */
static struct tiling tile_up(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count,
                             ptrdiff_t threads, int parts)
{
    struct tiling t = {parts > 1 ? TF_TILE_ROWS / 2 : TF_TILE_ROWS, TF_TILE_COLUMNS, 0, 0};
    for (;;) {
        t.vertical = pieces(m, t.rows);
        t.across = pieces(n, t.columns);
        const int enough = threads == 1 || t.vertical * t.across * count >= 2 * threads;
        if (enough || (t.rows <= TF_BAND && t.columns <= 2 * TF_WIDEST)) {
            return t;
        }
        if (t.rows > TF_BAND && (t.columns <= 2 * TF_WIDEST || t.rows >= t.columns)) {
            t.rows = pieces(t.rows / 2, TF_BAND) * TF_BAND;
        } else {
            t.columns /= 2;
        }
    }
}

struct call {
    const struct tf_precision *precision;
    struct tf_matrix a, b, c;
    ptrdiff_t m, n, k;
    struct tiling tiling;
    struct terms singles, pairs;
    float alpha, beta;
    float *scales; /* of rows of A and columns of B, matrix after matrix; or NULL */
    int swapped;   /* A and B, and rows and columns of C, have changed places */
};

static struct tf_lines lines_of(const struct call *call, struct tf_matrix x, int axis)
{
    const struct tf_precision *precision = call->precision;
    const int rounds = x.kind == TF_FLOAT32 || x.kind == TF_FLOAT64;
    const int splits = precision->parts > 1;
    return (struct tf_lines){
        .data = x.data,
        .stride = x.strides[axis],
        .along = x.strides[1 - axis],
        .kind = x.kind,
        .format = splits ? TF_FLOAT32 : rounds ? precision->format : x.kind,
        .rounding = precision->rounding,
        .parts = splits ? precision->parts : 1,
        .p = precision->format == tf_bfloat16_index ? 8 : 11,
    };
}

static unsigned multiply_one(const struct call *call, ptrdiff_t task,
                             struct tf_workspace *work)
{
    const struct tiling t = call->tiling;
    const ptrdiff_t number = task / (t.vertical * t.across);
    const ptrdiff_t i = task / t.across % t.vertical * t.rows;
    const ptrdiff_t j = task % t.across * t.columns;
    struct tf_matrix a = call->a, b = call->b, c = call->c;
    a.data += number * a.step;
    b.data += number * b.step;
    c.data += number * c.step + i * c.strides[0] + j * c.strides[1];
    struct tile tile = {
        .a = lines_of(call, a, 0),
        .b = lines_of(call, b, 1),
        .rows = least(t.rows, call->m - i),
        .columns = least(t.columns, call->n - j),
        .singles = call->singles,
        .pairs = call->pairs,
    };
    if (call->scales) {
        tile.a.scales = call->scales + number * (call->m + call->n);
        tile.b.scales = tile.a.scales + call->m;
    }
    tile.a = tf_lines_from(tile.a, i, 0);
    tile.b = tf_lines_from(tile.b, j, 0);
    multiply_tile(work, &tile, call->alpha == 0 ? 0 : call->k,
                  call->precision->saturates);

    const struct update update = {call->alpha, call->beta, tile.a.scales,
                                  tile.b.scales, call->swapped};
    unsigned flags = 0;
    int special = 0;
    for (size_t row = 0; row < tile.rows; row++, c.data += c.strides[0]) {
        float *sums = work->sums + row * TF_SUMS;
        update_row(&update, sums, row, tile.columns, c.kind, c.data, c.strides[1]);
        special |=
            store_row(c.kind, sums, c.data, c.strides[1], tile.columns, &flags);
    }
    const unsigned overflow =
        c.kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[c.kind]) : TF_OVER;
    const unsigned left = (overflow | TF_INVALID) & ~flags;
    if (special && left && call->alpha != 0 && (may_raise(tile.a) || may_raise(tile.b))) {
        flags |= flags_of_specials(work, &tile, call->k, overflow);
    }
    return flags;
}

static struct tf_matrix transposed(struct tf_matrix x)
{
    const struct tf_matrix t = {x.data, {x.strides[1], x.strides[0]}, x.step, x.kind};
    return t;
}

/* Of one line, or of many as if they were one. */
static void find_scales(struct tf_lines x, ptrdiff_t count, ptrdiff_t k, int lines,
                        float *scales)
{
    float buffer[TF_BLOCK];
    float greatest = 0;
    const float maximum = (float)tf_double_from_code(
        *tf_format_rows[x.format], tf_maximum_magnitude(*tf_format_rows[x.format]));
    for (ptrdiff_t i = 0; i < count; i++) {
        greatest = lines ? 0 : greatest;
        for (ptrdiff_t j = 0; j < k; j += TF_BLOCK) {
            const size_t n = least(TF_BLOCK, k - j);
            const float *numbers = tf_load_floats(
                x.kind, tf_lines_from(x, i, j).data, x.along, n, buffer);
            for (size_t q = 0; q < n; q++) {
                const float magnitude = fabsf(numbers[q]);
                greatest = isfinite(magnitude) && magnitude > greatest ? magnitude
                                                                       : greatest;
            }
        }
        const float scale = greatest / maximum;
        scales[i] = greatest == 0 ? 1 : scale < 0x1p-126f ? 0x1p-126f : scale;
    }
    for (ptrdiff_t i = 0; !lines && i < count; i++) {
        scales[i] = scales[count - 1];
    }
}

static int scale_operands(struct call *call, ptrdiff_t count)
{
    const size_t lines = (size_t)(call->m + call->n);
    if (call->precision->scaling == TF_UNSCALED || call->alpha == 0 || count == 0 ||
        lines == 0) {
        return 0;
    }
    call->scales = malloc((size_t)count * lines * sizeof(float));
    if (!call->scales) {
        return -1;
    }
    const int own = call->precision->scaling == TF_SCALED_LINES;
    for (ptrdiff_t number = 0; number < count; number++) {
        struct tf_lines a = lines_of(call, call->a, 0), b = lines_of(call, call->b, 1);
        a.data += number * call->a.step;
        b.data += number * call->b.step;
        float *scales = call->scales + number * (ptrdiff_t)lines;
        find_scales(a, call->m, call->k, own, scales);
        find_scales(b, call->n, call->k, own, scales + call->m);
    }
    return 0;
}

static int run(struct call *call, ptrdiff_t count, ptrdiff_t threads)
{
    const ptrdiff_t tasks = call->tiling.vertical * call->tiling.across * count;
    struct tf_workspace *works[THREADS];
    ptrdiff_t ready = 0;
    while (ready < threads && ready < tasks && (works[ready] = take_workspace())) {
        ready++;
    }
    if (!ready && tasks) {
        return -1;
    }
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    const int failed = scale_operands(call, count);
    if (failed) {
        /* nothing has been written */
    } else if (ready <= 1) {
        for (ptrdiff_t task = 0; task < tasks; task++) {
            flags |= multiply_one(call, task, works[0]);
        }
    } else {
#if defined(_OPENMP)
#pragma omp parallel num_threads((int)ready) reduction(| : flags)
        {
            const struct tf_fp own = tf_fp_begin();
#pragma omp for schedule(dynamic)
            for (ptrdiff_t task = 0; task < tasks; task++) {
                flags |= multiply_one(call, task, works[omp_get_thread_num()]);
            }
            tf_fp_end(own, 0);
        }
#endif
    }
    free(call->scales);
    for (ptrdiff_t i = 0; i < ready; i++) {
        return_workspace(works[i]);
    }
    tf_fp_end(saved, flags);
    return failed;
}

/* Blocks of C are wide, and stored row by row: is its transpose what suits them? */
static int is_tall(struct tf_matrix c, ptrdiff_t m, ptrdiff_t n)
{
    const int columns_are_close = labs(c.strides[0]) < labs(c.strides[1]);
    return m > n && n < TF_PRODUCT_ROWS    ? 1
           : n > m && m < TF_PRODUCT_ROWS ? 0
                                          : columns_are_close;
}

static int multiply(const struct tf_precision *precision, struct tf_matrix a,
                    struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                    ptrdiff_t k, ptrdiff_t count, float alpha, float beta)
{
    const int p = precision->format == tf_bfloat16_index ? 8 : 11;
    const int swapped = is_tall(c, m, n);
    struct call call = {
        .precision = precision,
        .a = swapped ? transposed(b) : a,
        .b = swapped ? transposed(a) : b,
        .c = swapped ? transposed(c) : c,
        .m = swapped ? n : m,
        .n = swapped ? m : n,
        .k = k,
        .singles = terms_of(precision, p, swapped, 0),
        .pairs = terms_of(precision, p, swapped, 1),
        .alpha = alpha,
        .beta = beta,
        .swapped = swapped,
    };
    const double products = (double)call.singles.count;
    const ptrdiff_t threads =
        threads_for((double)m * (double)n * (double)k * (double)count * products);
    call.tiling = tile_up(call.m, call.n, count, threads, precision->parts);
    return run(&call, count, threads);
}

int tf_matmul(const struct tf_precision *precision, struct tf_matrix a,
              struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
              ptrdiff_t k, ptrdiff_t count)
{
    return multiply(precision, a, b, c, m, n, k, count, 1, 0);
}

void tf_split(const float *in, ptrdiff_t n, int p, int parts, float *out)
{
    struct tf_range range = no_range();
    tf_isa->product->split_singles(in, (size_t)n, p, parts, out, (size_t)n, &range);
}

/* -- BLAS's shape --------------------------------------------------------------------------- */

static int transposes(char trans) { return strchr("TtCc", trans) != NULL; }

static struct tf_matrix columns_from(const void *data, int kind, ptrdiff_t ld, int trans)
{
    const ptrdiff_t size = (ptrdiff_t)tf_kind_size(kind);
    const struct tf_matrix x = {(char *)data, {size, ld * size}, 0, kind};
    return trans ? transposed(x) : x;
}

int tf_gemm(const struct tf_precision *precision, struct tf_kinds kinds, char transa,
            char transb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha,
            const void *a, ptrdiff_t lda, const void *b, ptrdiff_t ldb, float beta,
            void *c, ptrdiff_t ldc)
{
    enum { TRANSA = 1, TRANSB, M, N, K, LDA = 8, LDB = 10, LDC = 13 };
    const ptrdiff_t rows_of_a = transposes(transa) ? k : m;
    const ptrdiff_t rows_of_b = transposes(transb) ? n : k;
    const struct {
        int wrong, argument;
    } checks[] = {
        {!transa || !strchr("NnTtCc", transa), TRANSA},
        {!transb || !strchr("NnTtCc", transb), TRANSB},
        {m < 0, M},
        {n < 0, N},
        {k < 0, K},
        {lda < 1 || lda < rows_of_a, LDA},
        {ldb < 1 || ldb < rows_of_b, LDB},
        {ldc < 1 || ldc < m, LDC},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].wrong) {
            return checks[i].argument;
        }
    }
    if (m == 0 || n == 0 || ((alpha == 0 || k == 0) && beta == 1)) {
        return 0;
    }
    return multiply(precision, columns_from(a, kinds.a, lda, transposes(transa)),
                    columns_from(b, kinds.b, ldb, transposes(transb)),
                    columns_from(c, kinds.c, ldc, 0), m, n, k, 1, alpha, beta);
}
