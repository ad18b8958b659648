/* Cuts C into tiles, and has threads compute them. */
#include "matmul/tiles.h"

#include "runtime/asserts.h"
#include "runtime/sizes.h"

static ptrdiff_t pieces_of(ptrdiff_t length, ptrdiff_t most)
{
    return length > most ? tf_ceil_div(length, most) : 1;
}

/* Returns the side of a tile, at least 1, if a length is cut into about *pieces tiles.
 * Updates *pieces. */
static ptrdiff_t side_of(ptrdiff_t length, ptrdiff_t *pieces, struct tf_tile_side limits)
{
    if (*pieces == 1) {
        return length ? length : 1;
    }
    const size_t even = tf_round_up(tf_ceil_div(length, *pieces), limits.unit);
    const ptrdiff_t side = (ptrdiff_t)tf_min_size((ptrdiff_t)even, limits.most);
    *pieces = tf_ceil_div(length, side);
    return side;
}

/* Returns whether each thread can have a strip of as many columns. Then all threads have
 * the same work, and no column is packed twice; n is at least m, so that columns are the
 * larger part of packing. */
static int has_strips(const struct tf_tiles *t, struct tf_tile_side rows,
                      struct tf_tile_side columns)
{
    const ptrdiff_t strip = t->n / t->threads;
    return t->count == 1 && t->m <= rows.most && t->m <= t->n && t->n % t->threads == 0 &&
           strip <= columns.most && strip >= columns.least && strip % columns.unit == 0;
}

struct tf_tiles tf_cut_into_tiles(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count,
                                  double multiply_adds, struct tf_tile_side rows,
                                  struct tf_tile_side columns)
{
    struct tf_tiles t = {
        .m = m,
        .n = n,
        .count = count,
        .vertical = pieces_of(m, rows.most),
        .across = pieces_of(n, columns.most),
        .threads = tf_threads_for(multiply_adds / TF_SHARE),
    };
    ptrdiff_t least_tiles = t.threads > 1 ? 2 * t.threads : 1;
    if (t.threads > 1 && has_strips(&t, rows, columns)) {
        t.across = least_tiles = t.threads;
    }
    /* Cuts until each thread has two tiles or more, if sides are long enough. */
    while (t.vertical * t.across * count < least_tiles) {
        const ptrdiff_t height = m / t.vertical, width = n / t.across;
        const int tall = height > rows.least, wide = width > columns.least;
        if (tall && (height >= width || !wide)) {
            t.vertical *= 2;
        } else if (wide) {
            t.across *= 2;
        } else {
            break;
        }
    }
    t.rows = side_of(m, &t.vertical, rows);
    t.columns = side_of(n, &t.across, columns);
    TF_ASSERT(t.rows <= rows.most && t.columns <= columns.most);
    return t;
}

struct tiled_product {
    const struct tf_tiles *tiles;
    tf_tile_fn *compute;
    const void *product;
};

/* As a tf_task_fn, for a struct tiled_product: computes tile number `task`. */
static unsigned compute_tile(const void *context, ptrdiff_t task,
                             struct tf_worker *worker)
{
    const struct tiled_product *tiled = context;
    const struct tf_tiles *t = tiled->tiles;
    const ptrdiff_t i = task / t->across % t->vertical * t->rows;
    const ptrdiff_t j = task % t->across * t->columns;
    const struct tf_tile_place place = {
        .number = task / (t->vertical * t->across),
        .i = i,
        .j = j,
        .rows = tf_min_size((size_t)t->rows, t->m - i),
        .columns = tf_min_size((size_t)t->columns, t->n - j),
    };
    return tiled->compute(tiled->product, place, worker);
}

int tf_compute_tiles(const struct tf_tiles *tiles, tf_tile_fn *compute,
                     const void *product, unsigned *flags)
{
    const struct tiled_product tiled = {tiles, compute, product};
    const ptrdiff_t of_matrix =
        tiles->m && tiles->n ? tiles->vertical * tiles->across : 0;
    return tf_do_tasks(compute_tile, &tiled, of_matrix * tiles->count, tiles->threads,
                       flags);
}
