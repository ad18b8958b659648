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

static struct exponents exponents_of(struct tf_range *range)
{
    tf_isa->product->gather_range(range);
    const uint16_t less_one = range->least_less_one[0], greatest = range->greatest[0];
    const int field = (less_one + 1) >> 7 & 0xFF;
    const struct exponents all_zero = {0, 0};
    const struct exponents found = {
        field == 0 ? -1000 : field - 127,
        greatest >= 0x7F80 ? 1000 : (greatest >> 7) - 127,
    };
    return less_one == UINT16_MAX ? all_zero : found;
}

/* bfloat16 numbers are multiples of 2^-7 times their leading bit. */
static int all_normal(struct exponents a, struct exponents b)
{
    return a.least - 7 + b.least - 7 >= LEAST_NORMAL_EXPONENT;
}

/* Parts, and their products and sums, are multiples of 2^-23 times the leading bit of
 * the numbers that were split. They are not scaled, as the slow way has them: no sum
 * of theirs may come near Inf, either, when it is. At most 9 * 32 products are added,
 * none of more than 2^2 times the leading bits. */
static int all_parts_normal(struct exponents a, struct exponents b)
{
    enum { GREATEST = 127 - 9 - 2 };
    return a.least - 23 >= LEAST_NORMAL_EXPONENT && b.least - 23 >= LEAST_NORMAL_EXPONENT &&
           a.least - 23 + b.least - 23 >= LEAST_NORMAL_EXPONENT &&
           a.greatest + b.greatest < GREATEST;
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
    tf_isa->product->pairs(a, TF_DEPTH / 2, b, SLOTS, &term, 1, c, width, 0);
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
    const struct terms *singles, *pairs;
};

static struct tile tile_from(struct tile tile, ptrdiff_t k)
{
    tile.a = tf_lines_from(tile.a, 0, k);
    tile.b = tf_lines_from(tile.b, 0, k);
    return tile;
}

/* Packed rows of A, `lda` slots apart, and what multiplies them. */
struct band {
    tf_multiply_fn *multiply;
    size_t rows, lda;
    const struct terms *terms;
    size_t depth; /* slots of a chain */
};

static void multiply_band(struct tf_workspace *work, struct band band, size_t columns,
                          size_t slots, float *sums, int adds)
{
    const size_t width = tf_isa->product->columns, ld = work->ld;
    const struct tf_term *terms = band.terms->terms;
    const size_t count = band.terms->count;
    float part[TF_PRODUCT_ROWS * TF_WIDEST];
    for (size_t j = 0; j < columns; j += width) {
        for (size_t i = 0; i < band.rows; i += TF_PRODUCT_ROWS) {
            const float *a = work->a + i * band.lda, *b = work->b + j * slots;
            float *place = sums + i * ld + j;
            if (slots <= band.depth) {
                band.multiply(a, band.lda, b, slots, terms, count, place, ld, adds);
                continue;
            }
            for (size_t slot = 0; slot < slots; slot += band.depth) {
                const size_t here = slots - slot < band.depth ? slots - slot : band.depth;
                band.multiply(a + slot, band.lda, b + slot * width, here, terms, count,
                              part, width, slot != 0);
            }
            for (size_t r = 0; r < TF_PRODUCT_ROWS; r++) {
                const float *from = part + r * width;
                float *to = place + r * ld;
                for (size_t column = 0; column < width; column++) {
                    to[column] = adds ? to[column] + from[column] : from[column];
                }
            }
        }
    }
}

/* Where tiles of parts have a second set of sums. */
static float *more_sums(struct tf_workspace *work)
{
    return work->sums + TF_TILE_ROWS / 2 * TF_SUMS;
}

static void add_row(const float *from, float *to, size_t n, int adds)
{
    if (adds) {
        tf_isa->binary_f32[TF_ADD](to, from, to, n);
    } else {
        memcpy(to, from, n * sizeof *to);
    }
}

static const struct exponents ANY = {0, 0};

/* Some rows of A for the kernels; their exponents, if they are `noted`. */
static struct band pack_band(struct tf_workspace *work, const struct tile *tile, size_t i,
                             size_t depth, int pairs, int noted,
                             struct exponents *exponents)
{
    struct tf_range range = no_range();
    struct band band = {
        .multiply = pairs ? tf_isa->product->pairs : tf_isa->product->singles,
        .rows = tile->rows - i < TF_BAND ? tile->rows - i : TF_BAND,
        .terms = pairs ? tile->pairs : tile->singles,
    };
    band.lda = tf_pack_a(work, tf_lines_from(tile->a, (ptrdiff_t)i, 0), band.rows, depth,
                         pairs, noted ? &range : NULL);
    band.depth = tf_slots_of(band.terms->depth, pairs);
    *exponents = noted ? exponents_of(&range) : ANY;
    work->has_specials |= exponents->greatest > 127;
    return band;
}

/* One depth of a tile. */
static void multiply_block(struct tf_workspace *work, const struct tile *tile,
                           size_t depth, float *sums, int adds)
{
    const int pairs = has_pairs(tile->a, tile->b);
    const int guarded = pairs && !always_normal(tile->a, tile->b);
    const int split = tile->a.parts > 1;
    const int noted = guarded || split;
    struct tf_range range = no_range();
    size_t slots = tf_pack_b(work, tile->b, tile->columns, depth, pairs,
                             noted ? &range : NULL);
    const struct exponents b = noted ? exponents_of(&range) : ANY;
    work->has_specials |= b.greatest > 127;
    uint8_t left[TF_TILE_ROWS / TF_BAND] = {0};
    int any_left = 0;
    struct exponents a;
    for (size_t i = 0; i < tile->rows; i += TF_BAND) {
        const struct band band =
            pack_band(work, tile, i, depth, pairs, noted, &a);
        if (guarded && !(split ? all_parts_normal : all_normal)(a, b)) {
            any_left = left[i / TF_BAND] = 1;
            continue;
        }
        multiply_band(work, band, tile->columns, slots, sums + i * work->ld, adds);
    }
    if (!any_left) {
        return;
    }
    slots = tf_pack_b(work, tile->b, tile->columns, depth, 0, &range);
    for (size_t i = 0; i < tile->rows; i += TF_BAND) {
        if (left[i / TF_BAND]) {
            const struct band band = pack_band(work, tile, i, depth, 0, split, &a);
            multiply_band(work, band, tile->columns, slots, sums + i * work->ld, adds);
        }
    }
}

/* -- one row --------------------------------------------------------------------------------- */

/* Some columns of a tile over one depth, the general way; one row of sums. */
static void multiply_row_block(struct tf_workspace *work, const struct tile *tile,
                               size_t depth, float *sums, int adds)
{
    float *block = more_sums(work); /* where blocks may be wider and higher than that */
    for (size_t j = 0; j < tile->columns; j += TF_TILE_COLUMNS) {
        struct tile piece = *tile;
        piece.b = tf_lines_from(tile->b, (ptrdiff_t)j, 0);
        piece.columns = least(TF_TILE_COLUMNS, (ptrdiff_t)(tile->columns - j));
        multiply_block(work, &piece, depth, block, 0);
        add_row(block, sums + j, piece.columns, adds);
    }
}

/* The row's slots, of as many k as there is room for, and what magnitudes it has. */
static struct exponents pack_row(struct tf_workspace *work, struct tf_lines a, size_t k)
{
    struct tf_range range = no_range();
    for (size_t k0 = 0; k0 < k; k0 += TF_DEPTH) {
        tf_pack_along(work, tf_lines_from(a, 0, (ptrdiff_t)k0), 1,
                      least(TF_DEPTH, (ptrdiff_t)(k - k0)), 1, work->row + k0 / 2, 0,
                      &range);
    }
    return exponents_of(&range);
}

/* Whether the kernels read a matrix as it lies in memory: its numbers' distance is
 * `stride`. */
static int is_direct(struct tf_lines b, ptrdiff_t stride, int normal)
{
    return b.kind == b.format && stride == (ptrdiff_t)tf_kind_size(b.kind) &&
           (b.kind == tf_bfloat16_index || normal);
}

/* Columns side by side, over one depth; `exponents` are the row's. */
static void multiply_row_across(struct tf_workspace *work, const struct tile *tile,
                                const float *slots, struct exponents exponents,
                                size_t depth, float *sums, int adds)
{
    enum { PIECE = 512 }; /* of what has to be copied */
    const struct tf_row *row = tf_isa->product->row;
    const int normal = always_normal(tile->a, tile->b);
    const int direct = is_direct(tile->b, tile->b.stride, normal);
    const int bytes = direct && tile->b.kind != tf_bfloat16_index;
    float *part = work->sums + 2 * TF_WIDE_ROW;
    for (size_t j = 0, width; j < tile->columns; j += width) {
        struct tile piece = tile_from(*tile, 0);
        piece.b = tf_lines_from(tile->b, (ptrdiff_t)j, 0);
        piece.columns = least(direct ? TF_WIDE_ROW : PIECE, (ptrdiff_t)(tile->columns - j));
        const size_t whole = piece.columns / TF_ROW_COLUMNS * TF_ROW_COLUMNS;
        piece.columns = width = whole ? whole : piece.columns;
        struct tf_range range = no_range();
        if (whole && direct) {
            (bytes ? row->across_bytes : row->across_halves)(
                &tf_byte_tables[bytes ? tile->b.kind : 0], slots, piece.b.data,
                piece.b.along, depth, whole, part, &range);
        } else if (whole) {
            uint16_t *copy = (uint16_t *)work->lines;
            for (size_t k = 0; k < depth; k++, copy += whole) {
                const uint16_t *halves =
                    tf_load_halves(tf_lines_from(piece.b, 0, (ptrdiff_t)k),
                                   piece.b.stride, whole, 1, copy, 0, NULL);
                if (halves != copy) {
                    memcpy(copy, halves, whole * sizeof *copy);
                }
            }
            row->across_halves(NULL, slots, (const char *)work->lines,
                               (ptrdiff_t)(whole * sizeof *copy), depth, whole, part,
                               &range);
        }
        if (whole && (normal || all_normal(exponents, exponents_of(&range)))) {
            add_row(part, sums + j, whole, adds);
        } else {
            multiply_row_block(work, &piece, depth, sums + j, adds);
        }
    }
}

/* Columns along k: lanes of a group are depths of one column, or of as many as there
 * are lanes for. */
struct lanes {
    size_t depths, columns; /* of a group */
    size_t last;            /* k of the last depth */
};

static struct lanes lanes_for(size_t k)
{
    struct lanes lanes;
    lanes.depths = (k + TF_DEPTH - 1) / TF_DEPTH;
    lanes.columns = TF_ROW_GROUP / lanes.depths;
    lanes.last = k - (lanes.depths - 1) * TF_DEPTH;
    return lanes;
}

/* The row's slots for these lanes; unused lanes and the rest of the last depth are 0. */
static void spread_row(struct tf_workspace *work, struct lanes lanes)
{
    enum { SLOTS = TF_DEPTH / 2 };
    float *rest = work->row + (lanes.depths - 1) * SLOTS + tf_slots_of(lanes.last, 1);
    memset(rest, 0, (SLOTS - tf_slots_of(lanes.last, 1)) * sizeof *rest);
    for (size_t slot = 0; slot < SLOTS; slot++) {
        float *out = work->lanes + slot * TF_ROW_GROUP;
        memset(out, 0, TF_ROW_GROUP * sizeof *out);
        for (size_t lane = 0; lane < lanes.columns * lanes.depths; lane++) {
            out[lane] = work->row[lane % lanes.depths * SLOTS + slot];
        }
    }
}

/* A line of one column and depth as the kernels read it. */
static const char *line_for(struct tf_lines b, size_t depth, int direct, int bytes,
                            uint16_t *copy)
{
    if (direct && depth == TF_DEPTH) {
        return b.data;
    }
    memset(copy, 0, TF_DEPTH * sizeof *copy);
    if (bytes) {
        memcpy(copy, b.data, depth);
        return (const char *)copy;
    }
    const uint16_t *halves = tf_load_halves(b, b.along, depth, 0, copy, 0, NULL);
    if (halves != copy) {
        memcpy(copy, halves, depth * sizeof *copy);
    }
    return (const char *)copy;
}

/* The lines of `count` columns from column j on; those of the group before it are known
 * if they are followed by these in equal steps. */
static void find_lines(struct tf_workspace *work, const struct tf_lines *b,
                       struct lanes lanes, size_t j, size_t count, int direct,
                       int bytes, const char *lines[TF_ROW_LINES])
{
    const size_t together = TF_ROW_GROUPS * lanes.columns;
    if (j > 0 && direct && lanes.last == TF_DEPTH && count == together) {
        for (size_t i = 0; i < TF_ROW_LINES; i++) {
            lines[i] += (ptrdiff_t)together * b->stride;
        }
        return;
    }
    for (size_t i = 0; i < TF_ROW_LINES; i++) {
        const size_t lane = i % TF_ROW_GROUP;
        const size_t column = i / TF_ROW_GROUP * lanes.columns + lane / lanes.depths;
        const size_t d = lane % lanes.depths;
        lines[i] = lines[0]; /* of what is not used */
        if (column < count && lane < lanes.columns * lanes.depths) {
            lines[i] = line_for(
                tf_lines_from(*b, (ptrdiff_t)(j + column), (ptrdiff_t)(d * TF_DEPTH)),
                d + 1 < lanes.depths ? TF_DEPTH : lanes.last, direct, bytes,
                (uint16_t *)work->lines + i * TF_DEPTH);
        }
    }
}

static void multiply_row_along(struct tf_workspace *work, const struct tile *tile,
                               struct exponents exponents, size_t k, float *sums,
                               int adds)
{
    enum { AHEAD = 4 }; /* groups */
    const struct lanes lanes = lanes_for(k);
    const int normal = always_normal(tile->a, tile->b);
    const int direct = is_direct(tile->b, tile->b.along, normal);
    const int bytes = direct && tile->b.kind != tf_bfloat16_index;
    const size_t together = TF_ROW_GROUPS * lanes.columns;
    const char *lines[TF_ROW_LINES], *ahead[TF_ROW_GROUPS];
    float part[TF_ROW_LINES];
    spread_row(work, lanes);
    for (size_t j = 0; j < tile->columns; j += together) {
        const size_t count = least((ptrdiff_t)together, (ptrdiff_t)(tile->columns - j));
        find_lines(work, &tile->b, lanes, j, count, direct, bytes, lines);
        for (size_t g = 0; g < TF_ROW_GROUPS; g++) {
            ahead[g] = tf_lines_from(tile->b,
                                     (ptrdiff_t)(j + (g + AHEAD) * lanes.columns), 0)
                           .data;
        }
        struct tf_range range = no_range();
        (bytes ? tf_isa->product->row->along_bytes : tf_isa->product->row->along_halves)(
            &tf_byte_tables[bytes ? tile->b.kind : 0], work->lanes, lines, ahead, part,
            &range);
        const int exact = normal || all_normal(exponents, exponents_of(&range));
        for (size_t column = 0; column < count; column++) {
            const float *from = part + column / lanes.columns * TF_ROW_GROUP +
                                column % lanes.columns * lanes.depths;
            float sum = adds ? sums[j + column] + from[0] : from[0];
            for (size_t d = 1; d < lanes.depths; d++) {
                sum += from[d];
            }
            sums[j + column] = exact ? sum : sums[j + column];
            work->failed[j + column] = !exact;
        }
    }
    /* Where that is not exact: as many columns together as there are. */
    for (size_t j = 0, count; j < tile->columns; j += count) {
        for (count = 1; j + count < tile->columns &&
                        work->failed[j + count] == work->failed[j]; count++) {
        }
        struct tile piece = *tile;
        piece.b = tf_lines_from(tile->b, (ptrdiff_t)j, 0);
        piece.columns = count;
        for (size_t k0 = 0; work->failed[j] && k0 < k; k0 += TF_DEPTH) {
            const struct tile block = tile_from(piece, (ptrdiff_t)k0);
            multiply_row_block(work, &block, least(TF_DEPTH, (ptrdiff_t)(k - k0)),
                               sums + j, adds || k0);
        }
    }
}

static int is_row(struct tf_lines a, struct tf_lines b, ptrdiff_t rows)
{
    return rows == 1 && a.parts == 1 && has_pairs(a, b) &&
           tf_isa->product->row->across_halves;
}

/* The sums of a tile over all of k, if it is such a row. */
static void multiply_row(struct tf_workspace *work, const struct tile *tile, ptrdiff_t k)
{
    for (ptrdiff_t k0 = 0; k0 < k; k0 += TF_ROW) {
        const size_t count = least(TF_ROW, k - k0);
        const struct tile here = tile_from(*tile, k0);
        const struct exponents exponents = pack_row(work, here.a, count);
        if (tf_runs_along(tile->b)) {
            multiply_row_along(work, &here, exponents, count, work->sums, k0 != 0);
            continue;
        }
        for (size_t k1 = 0; k1 < count; k1 += TF_DEPTH) {
            const struct tile block = tile_from(here, (ptrdiff_t)k1);
            multiply_row_across(work, &block, work->row + k1 / 2, exponents,
                                least(TF_DEPTH, (ptrdiff_t)(count - k1)), work->sums,
                                k0 || k1);
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

static void multiply_parts(struct tf_workspace *work, const struct tile *tile,
                           ptrdiff_t k)
{
    float *sums = work->sums, *more = more_sums(work);
    for (ptrdiff_t k0 = 0; k0 < k; k0 += SPLIT_LENGTH) {
        const struct tile stretch = tile_from(*tile, k0);
        multiply_blocks(work, &stretch, (ptrdiff_t)least(SPLIT_LENGTH, k - k0),
                        k0 ? more : sums);
        for (size_t i = 0; k0 && i < tile->rows; i++) {
            add_row(more + i * work->ld, sums + i * work->ld, tile->columns, 1);
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
    const struct terms terms = terms_of(&whole, 0, 0, 0);
    plain.singles = &terms;
    multiply_blocks(work, &plain, k, more);
    mark_specials(work, tile, k);
    for (size_t i = 0; i < tile->rows; i++) {
        for (size_t j = 0; j < tile->columns; j++) {
            if (work->in_row[i] | work->in_column[j]) {
                work->sums[i * work->ld + j] = more[i * work->ld + j];
            }
        }
    }
}

/* The sums of one tile of C over all of k. */
static void multiply_tile(struct tf_workspace *work, const struct tile *tile,
                          ptrdiff_t k, int saturates)
{
    const size_t width = tf_isa->product->columns;
    const size_t panels = (tile->columns + width - 1) / width;
    work->ld = panels * width <= 2 * TF_WIDEST ? panels * width : TF_SUMS;
    work->has_specials = 0;
    if (k == 0) { /* else the first sums are stored: -0 does not survive 0 + -0 */
        memset(work->sums, 0, tile->rows * work->ld * sizeof(float));
    } else if (tile->a.parts > 1) {
        multiply_parts(work, tile, k);
        if (work->has_specials && !saturates) {
            mend_specials(work, tile, k);
        }
    } else if (is_row(tile->a, tile->b, (ptrdiff_t)tile->rows)) {
        multiply_row(work, tile, k);
    } else {
        multiply_blocks(work, tile, k, work->sums);
    }
}

/* What the elements of a tile that are not finite raise: Inf from finite
 * operands is an overflow; a NaN that no operand had is an invalid operation. */
static unsigned flags_of_specials(struct tf_workspace *work, const struct tile *tile,
                                  const float *sums, ptrdiff_t k, unsigned overflow)
{
    unsigned flags = 0;
    mark_specials(work, tile, k);
    for (size_t i = 0; i < tile->rows; i++) {
        for (size_t j = 0; j < tile->columns; j++) {
            const float sum = sums[i * work->ld + j];
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
                             ptrdiff_t threads, int parts, int row)
{
    struct tiling t = {parts > 1 ? TF_TILE_ROWS / 2 : TF_TILE_ROWS,
                       row ? TF_WIDE_ROW : TF_TILE_COLUMNS, 0, 0};
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

static unsigned store_tile(const struct call *call, struct tf_workspace *work,
                           const struct tile *tile, float *sums, struct tf_matrix c)
{
    const struct update update = {call->alpha, call->beta, tile->a.scales,
                                  tile->b.scales, call->swapped};
    const ptrdiff_t itemsize = (ptrdiff_t)tf_kind_size(c.kind);
    const size_t columns = tile->columns;
    const int joined = work->ld == columns && c.strides[1] == itemsize &&
                       c.strides[0] == itemsize * (ptrdiff_t)columns;
    const size_t together = joined ? TF_BLOCK / columns : 1;
    const int updates = update.row_scales || update.alpha != 1 || update.beta != 0;
    unsigned flags = 0;
    int special = 0;
    for (size_t i = 0; i < tile->rows; i += together) {
        const size_t rows = tile->rows - i < together ? tile->rows - i : together;
        char *data = c.data + (ptrdiff_t)i * c.strides[0];
        for (size_t r = i; updates && r < i + rows; r++) {
            update_row(&update, sums + r * work->ld, r, columns, c.kind,
                       c.data + (ptrdiff_t)r * c.strides[0], c.strides[1]);
        }
        special |= store_row(c.kind, sums + i * work->ld, data, c.strides[1],
                             rows * columns, &flags);
    }
    const unsigned overflow =
        c.kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[c.kind]) : TF_OVER;
    const unsigned left = (overflow | TF_INVALID) & ~flags;
    if (special && left && call->alpha != 0 &&
        (may_raise(tile->a) || may_raise(tile->b))) {
        flags |= flags_of_specials(work, tile, sums, call->k, overflow);
    }
    return flags;
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
        .singles = &call->singles,
        .pairs = &call->pairs,
    };
    if (call->scales) {
        tile.a.scales = call->scales + number * (call->m + call->n);
        tile.b.scales = tile.a.scales + call->m;
    }
    tile.a = tf_lines_from(tile.a, i, 0);
    tile.b = tf_lines_from(tile.b, j, 0);
    multiply_tile(work, &tile, call->alpha == 0 ? 0 : call->k,
                  call->precision->saturates);

    unsigned flags = 0;
    for (size_t j0 = 0; j0 < tile.columns; j0 += TF_TILE_COLUMNS) {
        struct tile piece = tile;
        piece.b = tf_lines_from(tile.b, (ptrdiff_t)j0, 0);
        piece.columns = least(TF_TILE_COLUMNS, (ptrdiff_t)(tile.columns - j0));
        flags |= store_tile(call, work, &piece, work->sums + j0, c);
        c.data += TF_TILE_COLUMNS * c.strides[1];
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
    const int row = is_row(lines_of(&call, call.a, 0), lines_of(&call, call.b, 1), call.m);
    call.tiling = tile_up(call.m, call.n, count, threads, precision->parts, row);
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
