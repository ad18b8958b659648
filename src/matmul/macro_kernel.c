#include "matmul/macro_kernel.h"

#include <math.h>

#include "formats/byte_tables.h"
#include "formats/casts.h"
#include "formats/codec.h"
#include "matmul/dot.h"
#include "matmul/int8_dot.h"
#include "matmul/specials.h"
#include "tensor_core/mma_matmul.h"

/* -- the terms of a chain ---------------------------------------------------------- */

enum {
    SPLIT_DEPTH = 32,   /* k of a chain of parts' products */
    SPLIT_LENGTH = 4096 /* k whose sums of 256 make a sum of their own */
};

/* Products of parts i + j = band make a band; the smallest is first. In a band the
 * one of A's greatest part is first: of B's, if the two have changed places. */
struct tf_split_schedule tf_split_schedule_of(const struct tf_precision *precision, int p, int swapped,
                            int pairs)
{
    const int parts = precision->parts;
    const int bands = parts > 1 ? precision->bands : 1;
    struct tf_split_schedule terms = {{{0, 0, 1}}, 0, parts > 1 ? SPLIT_DEPTH : TF_KC};
    for (int band = bands - 1; band >= 0; band--) {
        const int first = band < parts ? 0 : band - parts + 1;
        for (int i = first; i <= band - first; i++) {
            const int scales = i == first && terms.count && !pairs;
            const int j = band - i;
            terms.terms[terms.count++] = (struct tf_split_product){
                (size_t)(swapped ? j : i) * TF_PACKED_A,
                (size_t)(swapped ? i : j) * TF_PACKED_B,
                scales ? 1.0f / (float)(1 << p) : 1,
            };
        }
    }
    return terms;
}

struct tf_split_schedule tf_terms_of_quads(struct tf_operand a, struct tf_operand b)
{
    return (struct tf_split_schedule){{{0, 0, tf_quad_unit(a, b)}}, 1, TF_KC};
}

/* -- one depth --------------------------------------------------------------------- */

/* Packed rows of A, `lda` slots apart, and what multiplies them. */
struct band {
    struct tf_kernel kernel;
    size_t rows, lda;
    const struct tf_split_schedule *terms;
    size_t depth; /* slots of a chain */
};

static size_t pieces_of(size_t n, size_t piece) { return (n + piece - 1) / piece; }

/* Cache lines of what is ahead of a tile. */
static size_t lines_ahead(const struct tf_tile *tile)
{
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        most = tile->ahead[i].lines > most ? tile->ahead[i].lines : most;
    }
    return most;
}

/* A share of them. */
static void prefetch_packed(const struct tf_tile *tile, size_t first, size_t count)
{
    for (int i = 0; i < 3; i++) {
        for (size_t line = first; line < first + count; line++) {
            if (line < tile->ahead[i].lines) {
                __builtin_prefetch(tile->ahead[i].data + 64 * line, 0, 2);
            }
        }
    }
}

/* A chain of all rows before the next chain: its slots of a panel of B stay in the
 * first cache, and the panel's block of C in the second. Of parts, the sums of chains
 * are summed before they are added. */
static void macro_kernel_rows(struct tf_workspace *work, const struct tf_tile *tile,
                          struct band band, size_t slots, float *sums, int adds)
{
    const struct tf_split_product *terms = band.terms->terms;
    const size_t count = band.terms->count, height = band.kernel.rows;
    const size_t width = band.kernel.columns;
    const int apart = tile->a.parts > 1 && slots > band.depth && adds;
    /* Of a stack of small matrices, in as many steps as there are. */
    const size_t steps = pieces_of(tile->rows, height) *
                         pieces_of(tile->columns, width) *
                         pieces_of(slots, band.depth);
    const size_t fetched = pieces_of(lines_ahead(tile), steps);
    size_t line = 0;
    for (size_t j = 0; j < tile->columns; j += width) {
        float *place = apart ? work->part : sums + j;
        const size_t ld = apart ? width : work->ld;
        for (size_t slot = 0; slot < slots; slot += band.depth) {
            const size_t depth = slots - slot < band.depth ? slots - slot : band.depth;
            const int goes_on = slot != 0 || (adds && !apart);
            for (size_t i = 0; i < band.rows; i += height) {
                prefetch_packed(tile, line, fetched);
                line += fetched;
                band.kernel.multiply(work->a + i * band.lda + slot, band.lda,
                                     work->b + j * slots + slot * width, depth, terms,
                                     count, band.rows - i, place + i * ld, ld, goes_on);
            }
        }
        for (size_t i = 0; apart && i < band.rows; i++) {
            tf_add_row(place + i * ld, sums + i * work->ld + j, width, 1);
        }
    }
}

static const struct tf_exponents no_exponents = {0, 0};

/* Some rows of A for the kernels; their exponents, if they are `noted`. */
static struct band pack_band(struct tf_workspace *work, const struct tf_tile *tile,
                             size_t i, size_t depth, enum tf_slot slot, int noted,
                             struct tf_exponents *exponents)
{
    struct tf_magnitude_range range = tf_no_range();
    struct band band = {
        .kernel = tf_kernel_of(slot, tile->columns),
        .rows = tile->rows - i < TF_MC ? tile->rows - i : TF_MC,
        .terms = slot == TF_QUADS   ? tile->quads
                 : slot == TF_PAIRS ? tile->pairs
                                    : tile->singles,
    };
    band.lda = tf_lda_of(tf_packed_words(depth, slot));
    tf_pack_a(work, tf_operand_from(tile->a, (ptrdiff_t)i, 0), band.rows,
              band.kernel.rows, depth, slot, band.lda, noted ? &range : NULL);
    band.depth = tf_packed_words(band.terms->depth, slot);
    *exponents = noted ? tf_exponents_of(&range) : no_exponents;
    work->has_specials |= exponents->greatest > 127;
    return band;
}

/* Bands of a tile over one depth, as these slots, but for those that are `done`
 * already, a bit each. Returns which are then; as pairs, only those that are exact. */
static unsigned multiply_bands(struct tf_workspace *work, const struct tf_tile *tile,
                               size_t depth, enum tf_slot slot, unsigned done,
                               float *sums, int adds)
{
    const int guarded = slot == TF_PAIRS && !tf_always_normal(tile->a, tile->b);
    const int split = tile->a.parts > 1;
    const int noted = guarded || split;
    struct tf_magnitude_range range = tf_no_range();
    const size_t slots = tf_pack_b(work, tile->b, tile->columns, depth, slot,
                                   tf_kernel_of(slot, tile->columns).columns,
                                   noted ? &range : NULL);
    const struct tf_exponents b = noted ? tf_exponents_of(&range) : no_exponents;
    work->has_specials |= b.greatest > 127;
    for (size_t i = 0; i < tile->rows && !tf_stops(work); i += TF_MC) {
        const unsigned bit = 1u << i / TF_MC;
        struct tf_exponents a;
        if (done & bit) {
            continue;
        }
        const struct band band = pack_band(work, tile, i, depth, slot, noted, &a);
        if (!guarded || (split ? tf_bf16_split_dot_is_exact : tf_bf16_dot_is_exact)(a, b)) {
            macro_kernel_rows(work, tile, band, slots, sums + i * work->ld, adds);
            done |= bit;
        }
    }
    return done;
}

void tf_multiply_blocks(struct tf_workspace *work, const struct tf_tile *tile,
                        ptrdiff_t k, float *sums, int adds)
{
    const unsigned all = (1u << (tile->rows + TF_MC - 1) / TF_MC) - 1;
    const enum tf_slot slot = tf_slot_of(tile->a, tile->b);
    const ptrdiff_t singles = tile->a.parts > 1 ? TF_KC : TF_SLOTS;
    const int is_deep = slot != TF_SINGLES && tile->a.parts == 1;
    const ptrdiff_t deep = is_deep ? 2 * singles : singles;
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += deep) {
        const ptrdiff_t end = k - k0 < deep ? k : k0 + deep;
        unsigned done = 0;
        if (slot != TF_SINGLES) {
            const struct tf_tile block = tf_tile_from(*tile, k0);
            done = multiply_bands(work, &block, (size_t)(end - k0), slot, 0, sums,
                                  adds || k0);
        }
        /* What is not exact as pairs: of as many singles as there is room for. */
        for (ptrdiff_t k1 = k0; done != all && k1 < end; k1 += singles) {
            const struct tf_tile block = tf_tile_from(*tile, k1);
            multiply_bands(work, &block, tf_lesser_size(singles, end - k1), TF_SINGLES,
                           done, sums, adds || k1);
        }
    }
}

static void sum_over_k_split(struct tf_workspace *work, const struct tf_tile *tile,
                           ptrdiff_t k)
{
    float *sums = work->sums, *more = tf_more_sums(work);
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += SPLIT_LENGTH) {
        const struct tf_tile stretch = tf_tile_from(*tile, k0);
        tf_multiply_blocks(work, &stretch,
                           (ptrdiff_t)tf_lesser_size(SPLIT_LENGTH, k - k0),
                           k0 ? more : sums, 0);
        for (size_t i = 0; k0 && i < tile->rows; i++) {
            tf_add_row(more + i * work->ld, sums + i * work->ld, tile->columns, 1);
        }
    }
}

static float add_up(const float *sums, size_t n)
{
    float total = sums[0];
    for (size_t i = 1; i < n; i++) {
        total += sums[i];
    }
    return total;
}

/* The product of two lines where there is a kernel for them. */
static int multiply_depths(struct tf_workspace *work, const struct tf_tile *tile,
                           ptrdiff_t k, float *total)
{
    float sums[TF_DOT_LINES];
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_DOT_LONG) {
        const struct tf_tile here = tf_tile_from(*tile, k0);
        const size_t count =
            tf_dot_depths(here.a, here.b, tf_lesser_size(TF_DOT_LONG, k - k0),
                          tf_dot_room(work), sums);
        if (!count) {
            return 0;
        }
        for (size_t i = 0; i < count; i++) {
            *total = k0 || i ? *total + sums[i] : sums[i];
        }
    }
    return 1;
}

/* The product of two lines: a tile of one element. */
static float dot_1x1(struct tf_workspace *work, const struct tf_tile *tile,
                            ptrdiff_t k)
{
    const struct tf_split_schedule *terms = tile->singles;
    const size_t in_block = TF_KC / terms->depth; /* chains of a sum of 256 */
    float sums[SPLIT_LENGTH / SPLIT_DEPTH];
    float total = 0;
    if (multiply_depths(work, tile, k, &total)) {
        return total;
    }
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += SPLIT_LENGTH) {
        const size_t n = tf_lesser_size(SPLIT_LENGTH, k - k0);
        const struct tf_tile here = tf_tile_from(*tile, k0);
        work->has_specials |= tf_load_line(here.a, n, work->a, TF_PACKED_A);
        work->has_specials |= tf_load_line(here.b, n, work->b, TF_PACKED_B);
        const size_t whole = n / terms->depth, rest = n % terms->depth;
        const size_t done = whole * terms->depth, chains = whole + (rest != 0);
        tf_isa->product->chains(work->a, work->b, terms->depth, terms->terms,
                                terms->count, whole, sums);
        tf_isa->product->chains(work->a + done, work->b + done, rest, terms->terms,
                                terms->count, rest != 0, sums + whole);
        size_t blocks = 0;
        for (size_t i = 0; i < chains; i += in_block) {
            const size_t count = chains - i < in_block ? chains - i : in_block;
            sums[blocks++] = add_up(sums + i, count);
        }
        if (tile->a.parts > 1) {
            sums[0] = add_up(sums, blocks);
            blocks = 1;
        }
        for (size_t i = 0; i < blocks; i++) {
            total = k0 || i ? total + sums[i] : sums[i];
        }
    }
    return total;
}

/* -- Inf and NaN ------------------------------------------------------------------- */

/* What parts make of Inf and NaN is not what the numbers do: where a row or a column
 * holds one, the product of the whole numbers counts. */
static void mend_specials(struct tf_workspace *work, const struct tf_tile *tile,
                          ptrdiff_t k)
{
    static const struct tf_precision whole = {
        .format = TF_FLOAT32, .parts = 1, .bands = 1};
    struct tf_tile plain = *tile;
    float *more = tf_more_sums(work);
    plain.a.parts = plain.b.parts = 1;
    const struct tf_split_schedule terms = tf_split_schedule_of(&whole, 0, 0, 0);
    plain.singles = &terms;
    tf_multiply_blocks(work, &plain, k, more, 0);
    tf_flag_specials_rows(tile->a, tile->rows, k, work->in_row, work->watch, work->asks);
    tf_flag_specials_rows(tile->b, tile->columns, k, work->in_column, work->watch, work->asks);
    for (size_t i = 0; i < tile->rows; i++) {
        for (size_t j = 0; j < tile->columns; j++) {
            if (work->in_row[i] | work->in_column[j]) {
                work->sums[i * work->ld + j] = more[i * work->ld + j];
            }
        }
    }
}

void tf_matmul_tile(struct tf_workspace *work, const struct tf_tile *tile,
                      ptrdiff_t k, int saturates)
{
    const enum tf_slot slot = tf_slot_of(tile->a, tile->b);
    const size_t wide = tf_filled(tile->columns, tf_kernel_of(slot, tile->columns));
    work->ld = wide <= TF_COMPACT ? wide : TF_LDC;
    work->has_specials = 0;
    if (tile->plan) {
        tf_mma_tile(work, tile, k);
    } else if (k == 0) {
        /* Else the first sums are stored: -0 does not survive 0 + -0. */
        const size_t wide = tile->rows == 1 ? tile->columns : tile->rows * work->ld;
        memset(work->sums, 0, wide * sizeof(float));
    } else if (tile->rows * tile->columns == 1) {
        work->sums[0] = dot_1x1(work, tile, k);
    } else if (tile->a.parts > 1) {
        sum_over_k_split(work, tile, k);
    } else if (tf_is_gemv(tile->a, (ptrdiff_t)tile->rows)) {
        tf_gemv(work, tile, k);
    } else {
        tf_multiply_blocks(work, tile, k, work->sums, 0);
    }
    if (tile->a.parts > 1 && work->has_specials && !saturates && !tf_stops(work)) {
        mend_specials(work, tile, k);
    }
}
