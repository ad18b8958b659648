/* A tile of C, the task of a thread: its operands, the choice of what computes it, and
 * what Inf and NaN make of numbers in parts. */
#include "matmul/tile.h"

#include "formats/casts.h"
#include "matmul/bf16_dot.h"
#include "matmul/dot_tile.h"
#include "matmul/epilogue.h"
#include "matmul/gemv.h"
#include "matmul/macro_kernel.h"
#include "matmul/specials.h"
#include "runtime/sizes.h"

/* What parts make of Inf and NaN is not what the numbers do: where a row or a column
 * holds one, the product of the whole numbers counts. */
static void mend_specials(struct tf_workspace *work, const struct tf_tile *tile,
                          ptrdiff_t k)
{
    static const struct tf_precision whole = {
        .format = TF_FLOAT32, .parts = 1, .split_orders = 1};
    struct tf_tile plain = *tile;
    float *more = tf_more_sums(work);
    plain.a.parts = plain.b.parts = 1;
    const struct tf_split_schedule terms = tf_split_schedule_of(&whole, 0, 0, 0);
    plain.singles = &terms;
    tf_sum_over_k(work, &plain, k, more, 0);
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

/* Writes +0, the sum of no products: with k = 0 no k-step would store anything. */
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

/* Computes a tile by the path that suits it, which it returns. Inf in what is split
 * counts as the largest number if it `saturates`, else as itself. */
static const struct tf_tile_path *compute_tile(struct tf_workspace *work,
                                               const struct tf_tile *tile, ptrdiff_t k,
                                               int saturates)
{
    const struct tf_tile_path *path = path_of(tile, k);
    const struct tf_kernel kernel =
        tf_kernel_of(tf_packing_of(tile->a, tile->b), tile->columns);
    const size_t filled = tf_filled(tile->columns, kernel);
    work->ld = filled <= TF_COMPACT ? filled : TF_LDC;
    work->has_specials = 0;
    path->compute(work, tile, k);
    if (tile->a.parts > 1 && work->has_specials && !saturates && !tf_stops(work)) {
        mend_specials(work, tile, k);
    }
    return path;
}

/* -- the task of a thread ---------------------------------------------------------- */

struct tf_operand tf_operand_of(const struct tf_tiled_product *product,
                                struct tf_matrix x, int axis)
{
    const struct tf_precision *precision = product->precision;
    const int rounds = x.kind == TF_FLOAT32 || x.kind == TF_FLOAT64;
    const int splits = precision->parts > 1;
    return (struct tf_operand){
        .data = x.data,
        .stride = x.strides[axis],
        .along = x.strides[1 - axis],
        .kind = x.kind,
        .format = splits   ? TF_FLOAT32
                  : rounds ? precision->format
                           : x.kind,
        .rounding = precision->rounding,
        .parts = splits ? precision->parts : 1,
        .p = precision->format == tf_bfloat16_index ? 8 : 11,
    };
}

/* Small matrices of a stack beyond the second cache, each in one piece: no processor
 * foresees the next. */
static void prefetch_next(const struct tf_tiled_product *product, struct tf_tile *tile,
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

unsigned tf_multiply_tile(const void *context, ptrdiff_t task, struct tf_worker *worker)
{
    struct tf_workspace *work = tf_workspace_of(worker);
    const struct tf_tiled_product *product = context;
    const struct tf_tiling t = product->tiling;
    const ptrdiff_t number = task / (t.vertical * t.across);
    const ptrdiff_t i = task / t.across % t.vertical * t.rows;
    const ptrdiff_t j = task % t.across * t.columns;
    struct tf_matrix a = product->a, b = product->b, c = product->c;
    a.data += number * a.step;
    b.data += number * b.step;
    c.data += number * c.step + i * c.strides[0] + j * c.strides[1];
    struct tf_tile tile = {
        .a = tf_operand_of(product, a, 0),
        .b = tf_operand_of(product, b, 1),
        .rows = tf_min_size(t.rows, product->m - i),
        .columns = tf_min_size(t.columns, product->n - j),
        .singles = product->singles,
        .pairs = product->pairs,
        .quads = product->quads,
        .precision = product->precision,
        .swapped = product->swapped,
        .accumulators = product->precision->continues ? &c : NULL,
    };
    if (product->scales) {
        tile.a.scales = product->scales + number * (product->m + product->n);
        tile.b.scales = tile.a.scales + product->m;
    }
    tile.a = tf_operand_from(tile.a, i, 0);
    tile.b = tf_operand_from(tile.b, j, 0);
    prefetch_next(product, &tile, a, b, c);
    const struct tf_tile_path *path = compute_tile(
        work, &tile, product->alpha == 0 ? 0 : product->k, product->precision->saturates);

    unsigned flags = 0;
    for (size_t j0 = 0; j0 < tile.columns && !tf_stops(work); j0 += TF_NC) {
        struct tf_tile piece = tile;
        piece.b = tf_operand_from(tile.b, (ptrdiff_t)j0, 0);
        piece.columns = tf_min_size(TF_NC, tile.columns - j0);
        flags |= tf_store_tile(product, work, &piece, path, work->sums + j0, c);
        c.data += TF_NC * c.strides[1];
    }
    return flags;
}
