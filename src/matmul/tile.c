/* The choice of what computes a tile; and what Inf and NaN make of numbers in parts. */
#include "matmul/tile.h"

#include "matmul/bf16_dot.h"
#include "matmul/dot_tile.h"
#include "matmul/epilogue.h"
#include "matmul/gemv.h"
#include "matmul/macro_kernel.h"
#include "matmul/specials.h"

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

/* Writes +0, the sum of no products: with k = 0 no KC step would store anything. */
static void compute_nothing(struct tf_workspace *work, const struct tf_tile *tile,
                            ptrdiff_t k)
{
    (void)k;
    const size_t size = tile->rows == 1 ? tile->columns : tile->rows * work->ld;
    memset(work->sums, 0, size * sizeof(float));
}

static const struct tf_tile_path path_of_nothing = {compute_nothing, tf_store_sums};

static const struct tf_tile_path *path_of(const struct tf_tile *tile, ptrdiff_t k)
{
    return tile->precision->path                         ? tile->precision->path
           : k == 0                                      ? &path_of_nothing
           : tile->rows * tile->columns == 1             ? &tf_dot_path
           : tf_is_gemv(tile->a, (ptrdiff_t)tile->rows) ? &tf_gemv_path
                                                         : &tf_macro_kernel_path;
}

const struct tf_tile_path *tf_matmul_tile(struct tf_workspace *work,
                                          const struct tf_tile *tile, ptrdiff_t k,
                                          int saturates)
{
    const struct tf_tile_path *path = path_of(tile, k);
    const struct tf_kernel kernel =
        tf_kernel_of(tf_slot_of(tile->a, tile->b), tile->columns);
    const size_t filled = tf_filled(tile->columns, kernel);
    work->ld = filled <= TF_COMPACT ? filled : TF_LDC;
    work->has_specials = 0;
    path->compute(work, tile, k);
    if (tile->a.parts > 1 && work->has_specials && !saturates && !tf_stops(work)) {
        mend_specials(work, tile, k);
    }
    return path;
}
