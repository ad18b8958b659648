/* The epilogue of sums before they are stored in C: scales, alpha, beta, and one
 * rounding. */
#include "matmul/epilogue.h"

#include <math.h>

#include "formats/casts.h"
#include "matmul/pack.h"
#include "matmul/specials.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"

/* Returns whether some NaN is negative, as x86 generates NaN: rounding keeps the sign. */
static int has_negative_nan(const float *sums, size_t n)
{
    const int32_t infinity = tf_total_order(TF_NEGATIVE_INF_BITS);
    int32_t least, greatest;
    tf_isa->formats->bounds(sums, n, INT32_MAX, &least, &greatest);
    return least < infinity;
}

int tf_store_sums(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                  unsigned *flags)
{
    TF_BUFFER(buffer);
    const int rounds = kind <= TF_FLOAT16;
    const struct tf_conversions *conversions =
        &tf_isa->formats->conversions[rounds ? kind : tf_bfloat16_index];
    const size_t itemsize = tf_kind_size(kind);
    void *items = kind == TF_FLOAT32 ? sums : tf_target(out, stride, itemsize, buffer);
    const struct tf_flag_hints suspects =
        rounds ? conversions->from_float32(sums, items, n) : conversions->suspect(sums, n);
    const int again = rounds && suspects.nan && has_negative_nan(sums, n);
    const int special =
        suspects.beyond == TF_NOT_FINITE && tf_isa->formats->canonical_nans(sums, n);
    if (kind == TF_FLOAT64) {
        tf_isa->formats->widen(sums, items, n);
    } else if (rounds) {
        if (again) {
            conversions->from_float32(sums, items, n);
        }
        if (flags) {
            *flags |= tf_rounding_flags(kind, suspects, sums, items, n, *flags);
        }
    }
    tf_scatter(items, out, stride, itemsize, n);
    return special;
}

/* The operations on sums before they are rounded. */
struct tf_epilogue {
    float alpha, beta;
    const float *row_scales, *column_scales; /* of a tile; or NULL */
    int columns_first;                       /* column scales are multiplied first */
};

static void times(float *sums, size_t n, float factor)
{
    for (size_t j = 0; j < n; j++) {
        sums[j] *= factor;
    }
}

/* Applies the epilogue to row i of a tile, of n sums. `c` is the row of C that is added. */
static void apply_epilogue(const struct tf_epilogue *update, float *sums, size_t i,
                           size_t n, int kind, const char *c, ptrdiff_t stride)
{
    float buffer[TF_CHUNK];
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

unsigned tf_store_tile(const struct tf_plan_of_product *plan, struct tf_workspace *work,
                       const struct tf_tile *tile, const struct tf_tile_path *path,
                       float *sums, struct tf_matrix c)
{
    const struct tf_product *product = &plan->product;
    const struct tf_epilogue update = {product->alpha, product->beta, tile->a.scales,
                                       tile->b.scales, plan->swapped};
    const ptrdiff_t itemsize = (ptrdiff_t)tf_kind_size(c.kind);
    const size_t columns = tile->columns;
    const int joined = work->ld == columns && c.strides[1] == itemsize &&
                       c.strides[0] == itemsize * (ptrdiff_t)columns;
    const size_t together = joined ? TF_CHUNK / columns : 1;
    const int updates = update.row_scales || update.alpha != 1 || update.beta != 0;
    const int silent = product->precision->silent;
    unsigned flags = 0;
    int special = 0;
    for (size_t i = 0; i < tile->rows; i += together) {
        const size_t rows = tf_min_size(tile->rows - i, together);
        char *data = c.data + (ptrdiff_t)i * c.strides[0];
        for (size_t r = i; updates && r < i + rows; r++) {
            apply_epilogue(&update, sums + r * work->ld, r, columns, c.kind,
                           c.data + (ptrdiff_t)r * c.strides[0], c.strides[1]);
        }
        special |= path->store(c.kind, sums + i * work->ld, data, c.strides[1],
                               rows * columns, silent ? NULL : &flags);
    }
    if (silent) {
        return 0;
    }
    const unsigned overflow = tf_overflow_of_sums(c.kind);
    const unsigned left = (overflow | TF_INVALID) & ~flags;
    if (special && left && product->alpha != 0 &&
        (tf_products_may_raise(tile->a) || tf_products_may_raise(tile->b))) {
        const struct tf_doubtful_sums doubtful = {
            .a = tile->a, .b = tile->b,
            .rows = tile->rows, .columns = columns, .k = product->k,
            .sums = sums, .ld = work->ld,
            .overflow = overflow, .wanted = left,
            .in_row = work->in_row, .in_column = work->in_column,
            .watch = work->watch, .asks = work->asks,
        };
        flags |= tf_flags_of_specials(&doubtful);
    }
    return flags;
}
