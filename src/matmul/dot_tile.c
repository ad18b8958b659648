/* Computes tiles of one element: the product of two lines, which may be split. */
#include "matmul/dot_tile.h"

#include "matmul/dot.h"
#include "matmul/epilogue.h"
#include "matmul/pack.h"
#include "runtime/sizes.h"

static float add_up(const float *sums, size_t n)
{
    float total = sums[0];
    for (size_t i = 1; i < n; i++) {
        total += sums[i];
    }
    return total;
}

/* Returns the product of two lines that have a kernel. */
static float multiply_in_place(struct tf_workspace *work, const struct tf_tile *tile,
                               ptrdiff_t k)
{
    tf_dot_fn *kernel = tf_dot_kernel(tile->a, tile->b);
    float sums[TF_DOT_LINES], total = 0;
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_DOT_LONG) {
        const struct tf_tile here = tf_tile_from(*tile, k0);
        const size_t count =
            tf_dot_depths(kernel, here.a, here.b, tf_min_size(TF_DOT_LONG, k - k0),
                          tf_dot_room(work), sums);
        for (size_t i = 0; i < count; i++) {
            total = k0 || i ? total + sums[i] : sums[i];
        }
    }
    return total;
}

/* Returns the product of two lines of any kind, which are converted first. */
static float multiply_copies(struct tf_workspace *work, const struct tf_tile *tile,
                             ptrdiff_t k)
{
    const struct tf_split_schedule *terms = tile->singles.schedule;
    const size_t in_total = TF_KC / terms->depth; /* chains in a sum over 256 k */
    float sums[TF_SPLIT_SUM / TF_SPLIT_KC];
    float total = 0;
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_SPLIT_SUM) {
        const size_t n = tf_min_size(TF_SPLIT_SUM, k - k0);
        const struct tf_tile here = tf_tile_from(*tile, k0);
        work->has_specials |= tf_load_line(here.a, n, work->a, TF_PACKED_A);
        work->has_specials |= tf_load_line(here.b, n, work->b, TF_PACKED_B);
        const size_t whole = n / terms->depth, rest = n % terms->depth;
        const size_t done = whole * terms->depth, chains = whole + (rest != 0);
        tf_isa->matmul->chains(work->a, work->b, terms->depth, terms->terms,
                                terms->count, whole, sums);
        tf_isa->matmul->chains(work->a + done, work->b + done, rest, terms->terms,
                                terms->count, rest != 0, sums + whole);
        size_t totals = 0;
        for (size_t i = 0; i < chains; i += in_total) {
            const size_t count = tf_min_size(chains - i, in_total);
            sums[totals++] = add_up(sums + i, count);
        }
        if (tile->a.parts > 1) {
            sums[0] = add_up(sums, totals);
            totals = 1;
        }
        for (size_t i = 0; i < totals; i++) {
            total = k0 || i ? total + sums[i] : sums[i];
        }
    }
    return total;
}

static void compute(struct tf_workspace *work, const struct tf_tile *tile, ptrdiff_t k)
{
    work->sums[0] = multiply_in_place(work, tile, k);
}

static void compute_copies(struct tf_workspace *work, const struct tf_tile *tile,
                           ptrdiff_t k)
{
    work->sums[0] = multiply_copies(work, tile, k);
}

const struct tf_tile_path tf_dot_path = {compute, tf_store_sums};
const struct tf_tile_path tf_dot_of_copies_path = {compute_copies, tf_store_sums};
