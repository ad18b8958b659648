/* A tile of C, the task of a thread: its operands, its way, and sums of split operands with
 * Inf and NaN. */
#include "matmul/tile.h"

#include "formats/casts.h"
#include "matmul/epilogue.h"
#include "matmul/macro_kernel.h"
#include "matmul/plan.h"
#include "matmul/specials.h"
#include "runtime/sizes.h"

/* Replaces sums whose row of A or column of B has an Inf or NaN by those of the numbers
 * that were split: the components of Inf and NaN have other sums. */
static void mend_specials(struct tf_workspace *work, const struct tf_tile *tile,
                          ptrdiff_t k)
{
    struct tf_tile plain = *tile;
    float *more = tf_more_sums(work);
    plain.a.parts = plain.b.parts = 1;
    plain.singles.schedule = &tf_one_term;
    plain.fastest = plain.singles;
    tf_sum_over_k(work, &plain, k, more, 0);
    tf_flag_specials_rows(tile->a, tile->rows, k, work->in_row, work->watch, work->asks);
    tf_flag_specials_rows(tile->b, tile->columns, k, work->in_column, work->watch,
                          work->asks);
    for (size_t i = 0; i < tile->rows; i++) {
        for (size_t j = 0; j < tile->columns; j++) {
            if (work->in_row[i] | work->in_column[j]) {
                work->sums[i * work->ld + j] = more[i * work->ld + j];
            }
        }
    }
}

/* Computes a tile by its path. In split operands, Inf counts as the largest number if the
 * precision `saturates`, else as Inf. */
static void compute_tile(struct tf_workspace *work, const struct tf_tile *tile,
                         const struct tf_tile_path *path, ptrdiff_t k)
{
    const size_t filled = tf_filled(tile->columns, tile->fastest.kernel);
    work->ld = filled <= TF_COMPACT ? filled : TF_LDC;
    work->has_specials = 0;
    path->compute(work, tile, k);
    if (tile->a.parts > 1 && work->has_specials && !tile->precision->saturates &&
        !tf_stops(work)) {
        mend_specials(work, tile, k);
    }
}

/* -- the task of a thread ---------------------------------------------------------- */

/* Sets the memory to prefetch for a stack of small matrices (up to 16 KiB each, 1 MiB or
 * more in all, which L2 may not hold): this C, and the next A and B, which processors do
 * not predict. */
static void prefetch_next(const struct tf_product *product, struct tf_tile *tile,
                          struct tf_matrix a, struct tf_matrix b, struct tf_matrix c)
{
    enum { SMALL = 1 << 14, CACHE = 1 << 20 };
    const ptrdiff_t bytes[3] = {
        product->m * product->k * (ptrdiff_t)tf_kind_size(a.kind),
        product->k * product->n * (ptrdiff_t)tf_kind_size(b.kind),
        product->m * product->n * (ptrdiff_t)tf_kind_size(c.kind),
    };
    const struct tf_matrix matrices[3] = {a, b, c};
    const int cached = product->count * (bytes[0] + bytes[1] + bytes[2]) < CACHE;
    if (cached) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        if (matrices[i].step == bytes[i] && bytes[i] <= SMALL) {
            tile->ahead[i].data = matrices[i].data + (i < 2 ? bytes[i] : 0);
            tile->ahead[i].cache_lines = (size_t)bytes[i] / 64;
        }
    }
}

unsigned tf_multiply_tile(const void *context, struct tf_tile_place place,
                          struct tf_worker *worker)
{
    struct tf_workspace *work = tf_workspace_of(worker);
    const struct tf_plan_of_product *plan = context;
    const struct tf_product *product = &plan->product;
    const ptrdiff_t number = place.number;
    struct tf_matrix a = product->a, b = product->b, c = product->c;
    a.data += number * a.step;
    b.data += number * b.step;
    c.data += number * c.step + place.i * c.strides[0] + place.j * c.strides[1];
    struct tf_tile tile = {
        .a = plan->a,
        .b = plan->b,
        .rows = place.rows,
        .columns = place.columns,
        .fastest = plan->fastest,
        .singles = plan->singles,
        .precision = product->precision,
        .swapped = plan->swapped,
        .accumulators = product->precision->continues ? &c : NULL,
    };
    tile.a.data = a.data;
    tile.b.data = b.data;
    if (plan->scales) {
        tile.a.scales = plan->scales + number * (product->m + product->n);
        tile.b.scales = tile.a.scales + product->m;
    }
    tile.a = tf_operand_from(tile.a, place.i, 0);
    tile.b = tf_operand_from(tile.b, place.j, 0);
    prefetch_next(product, &tile, a, b, c);
    const struct tf_tile_path *path =
        tf_path_of_way(plan, tf_way_of_tile(plan, place.rows, place.columns));
    compute_tile(work, &tile, path, product->alpha == 0 ? 0 : product->k);

    unsigned flags = 0;
    for (size_t j0 = 0; j0 < tile.columns && !tf_stops(work); j0 += TF_NC) {
        struct tf_tile piece = tile;
        piece.b = tf_operand_from(tile.b, (ptrdiff_t)j0, 0);
        piece.columns = tf_min_size(TF_NC, (ptrdiff_t)(tile.columns - j0));
        flags |= tf_store_tile(plan, work, &piece, path, work->sums + j0, c);
        c.data += TF_NC * c.strides[1];
    }
    return flags;
}
