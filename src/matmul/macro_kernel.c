/* Computes tiles of any size: packs A and B, and runs the micro-kernel on the packed words.
 * The loops have the numbers of BLIS; loop 5 is over tiles of NC columns (tiles.c). */
#include "matmul/macro_kernel.h"

#include <string.h>

#include "matmul/bf16_dot.h"
#include "matmul/epilogue.h"
#include "matmul/pack.h"
#include "runtime/asserts.h"
#include "runtime/sizes.h"

/* -- one k-step -------------------------------------------------------------------- */

/* Packed rows of A, `lda` words apart, with the micro-kernel and the terms for them. */
struct mc_panel {
    struct tf_kernel kernel;
    size_t rows, lda;
    const struct tf_split_schedule *terms;
    size_t depth; /* words of a chain */
};

/* Returns the most cache lines of an entry of tile->ahead. */
static size_t cache_lines_ahead(const struct tf_tile *tile)
{
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        most = tf_max_size(tile->ahead[i].cache_lines, most);
    }
    return most;
}

/* Prefetches `count` of the cache lines in tile->ahead, from number `first` on. */
static void prefetch_packed(const struct tf_tile *tile, size_t first, size_t count)
{
    for (int i = 0; i < 3; i++) {
        for (size_t cache_line = first; cache_line < first + count; cache_line++) {
            if (cache_line < tile->ahead[i].cache_lines) {
                __builtin_prefetch(tile->ahead[i].data + 64 * cache_line, 0, 2);
            }
        }
    }
}

/* Loops 2 and 1, around the micro-kernel: NR columns of packed B, and MR rows of packed A.
 * Each chain is computed for all rows before the next chain. So its words of a panel of B
 * stay in L1 if they fit, and the panel's micro-tiles of C stay in L2. If operands are
 * split, the sums of chains of 32 k are added up before they are added to C. */
static void macro_kernel_rows(struct tf_workspace *work, const struct tf_tile *tile,
                          struct mc_panel panel, size_t words, float *sums, int adds)
{
    const struct tf_split_product *terms = panel.terms->terms;
    const size_t count = panel.terms->count, height = panel.kernel.rows;
    const size_t width = panel.kernel.columns;
    TF_ASSERT(panel.rows > 0 && panel.rows <= TF_MC && words <= TF_PACKED_WORDS);
    TF_ASSERT(tf_round_up(tile->columns, width) <= work->ld);
    const int apart = tile->a.parts > 1 && words > panel.depth && adds;
    /* Spreads the prefetches over the calls of the micro-kernel. */
    const size_t steps = tf_ceil_div(tile->rows, height) *
                         tf_ceil_div(tile->columns, width) *
                         tf_ceil_div(words, panel.depth);
    const size_t fetched = tf_ceil_div(cache_lines_ahead(tile), steps);
    size_t cache_line = 0;
    for (size_t j = 0; j < tile->columns; j += width) {
        float *place = apart ? work->part : sums + j;
        const size_t ld = apart ? width : work->ld;
        for (size_t word = 0; word < words; word += panel.depth) {
            const size_t depth = tf_min_size(words - word, panel.depth);
            const int goes_on = word != 0 || (adds && !apart);
            for (size_t i = 0; i < panel.rows; i += height) {
                prefetch_packed(tile, cache_line, fetched);
                cache_line += fetched;
                panel.kernel.multiply(work->a + i * panel.lda + word, panel.lda,
                                      work->b + j * words + word * width, depth, terms,
                                      count, panel.rows - i, place + i * ld, ld,
                                      goes_on ? TF_SUMS_ADD : TF_SUMS_WRITE);
            }
        }
        for (size_t i = 0; apart && i < panel.rows; i++) {
            tf_add_row(place + i * ld, sums + i * work->ld + j, width, 1);
        }
    }
}

static const struct tf_exponents no_exponents = {0, 0};

/* Packs up to MC rows of A, from row i on. Writes their exponents if they are `noted`. */
static struct mc_panel pack_mc_panel(struct tf_workspace *work,
                                     const struct tf_tile *tile, size_t i, size_t depth,
                                     struct tf_packed_way way, int noted,
                                     struct tf_exponents *exponents)
{
    struct tf_magnitude_range range = tf_no_range();
    const struct mc_panel panel = {
        .kernel = way.kernel,
        .rows = tf_min_size(tile->rows - i, TF_MC),
        .lda = tf_lda_of(tf_packed_words(depth, way.packing)),
        .terms = way.schedule,
        .depth = tf_packed_words(way.schedule->depth, way.packing),
    };
    tf_pack_a(work, tf_operand_from(tile->a, (ptrdiff_t)i, 0), panel.rows,
              way.kernel.rows, depth, way.packing, panel.lda, noted ? &range : NULL);
    *exponents = noted ? tf_exponents_of(&range) : no_exponents;
    work->has_specials |= exponents->greatest > 127;
    return panel;
}

/* Loop 3, over one k-step: packs B, then packs and multiplies MC rows of A at a time. Bit i
 * of `done` is set if MC panel i has been computed. Returns `done` with the panels of this
 * call, which as pairs are only those that are exact. */
static unsigned multiply_mc_panels(struct tf_workspace *work, const struct tf_tile *tile,
                                   size_t depth, struct tf_packed_way way, unsigned done,
                                   float *sums, int adds)
{
    const int guarded = way.packing == TF_PAIRS && !tf_always_normal(tile->a, tile->b);
    const int split = tile->a.parts > 1;
    const int noted = guarded || split;
    struct tf_magnitude_range range = tf_no_range();
    const size_t words = tf_pack_b(work, tile->b, tile->columns, depth, way.packing,
                                   way.kernel.columns, noted ? &range : NULL);
    const struct tf_exponents b = noted ? tf_exponents_of(&range) : no_exponents;
    work->has_specials |= b.greatest > 127;
    for (size_t i = 0; i < tile->rows && !tf_stops(work); i += TF_MC) {
        const unsigned bit = 1u << i / TF_MC;
        struct tf_exponents a;
        if (done & bit) {
            continue;
        }
        const struct mc_panel panel =
            pack_mc_panel(work, tile, i, depth, way, noted, &a);
        const int exact = !guarded ? 1
                          : split  ? tf_bf16_split_dot_is_exact(a, b)
                                   : tf_bf16_dot_is_exact(a, b);
        if (exact) {
            macro_kernel_rows(work, tile, panel, words, sums + i * work->ld, adds);
            done |= bit;
        }
    }
    return done;
}

/* Loop 4, over k: as many k at a time as packed lines have room for. */
void tf_sum_over_k(struct tf_workspace *work, const struct tf_tile *tile,
                   ptrdiff_t k, float *sums, int adds)
{
    const unsigned all = (1u << tf_ceil_div(tile->rows, TF_MC)) - 1;
    const int is_single = tile->fastest.packing == TF_SINGLES;
    const ptrdiff_t singles = tile->a.parts > 1 ? TF_KC : TF_PACKED_WORDS;
    const int is_deep = !is_single && tile->a.parts == 1;
    const ptrdiff_t deep = is_deep ? 2 * singles : singles;
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += deep) {
        const ptrdiff_t end = k - k0 < deep ? k : k0 + deep;
        unsigned done = 0;
        if (!is_single) {
            const struct tf_tile k_step = tf_tile_from(*tile, k0);
            done = multiply_mc_panels(work, &k_step, (size_t)(end - k0),
                                      tile->fastest, 0, sums, adds || k0);
        }
        /* MC panels that are not exact as pairs are computed as singles. */
        for (ptrdiff_t k1 = k0; done != all && k1 < end; k1 += singles) {
            const struct tf_tile k_step = tf_tile_from(*tile, k1);
            multiply_mc_panels(work, &k_step, tf_min_size(singles, end - k1),
                               tile->singles, done, sums, adds || k1);
        }
    }
}

static void sum_over_k_split(struct tf_workspace *work, const struct tf_tile *tile,
                             ptrdiff_t k)
{
    float *sums = work->sums, *more = tf_more_sums(work);
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_SPLIT_SUM) {
        const struct tf_tile stretch = tf_tile_from(*tile, k0);
        tf_sum_over_k(work, &stretch, tf_min_size(TF_SPLIT_SUM, k - k0),
                      k0 ? more : sums, 0);
        for (size_t i = 0; k0 && i < tile->rows; i++) {
            tf_add_row(more + i * work->ld, sums + i * work->ld, tile->columns, 1);
        }
    }
}

static void compute(struct tf_workspace *work, const struct tf_tile *tile, ptrdiff_t k)
{
    if (tile->a.parts > 1) {
        sum_over_k_split(work, tile, k);
    } else {
        tf_sum_over_k(work, tile, k, work->sums, 0);
    }
}

static void compute_zeros(struct tf_workspace *work, const struct tf_tile *tile,
                          ptrdiff_t k)
{
    (void)k;
    const size_t size = tile->rows == 1 ? tile->columns : tile->rows * work->ld;
    memset(work->sums, 0, size * sizeof(float));
}

const struct tf_tile_path tf_macro_kernel_path = {compute, tf_store_sums};
const struct tf_tile_path tf_zero_path = {compute_zeros, tf_store_sums};
