/* How C is cut into tiles, and the threads that compute them: for all products. */
#ifndef TF32DTYPE_MATMUL_TILES_H
#define TF32DTYPE_MATMUL_TILES_H

#include <stddef.h>

#include "runtime/thread_pool.h"

/* How long one side of a tile may be. */
struct tf_tile_side {
    ptrdiff_t most;  /* for which there is memory */
    ptrdiff_t least; /* a side is not cut in two if it is no longer than this */
    ptrdiff_t unit;  /* sides are multiples of this, but the last one and `most` */
};

/* `count` matrices of m x n, in tiles of one size but for the last ones. */
struct tf_tiles {
    ptrdiff_t m, n, count;
    ptrdiff_t rows, columns;    /* of a tile */
    ptrdiff_t vertical, across; /* tiles of a matrix */
    ptrdiff_t threads;
};

/* Cuts C for as many threads as so many multiply-adds are worth. */
struct tf_tiles tf_cut_into_tiles(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count,
                                  double multiply_adds, struct tf_tile_side rows,
                                  struct tf_tile_side columns);

/* Where a tile begins, and its size. */
struct tf_tile_place {
    ptrdiff_t number; /* of the matrix */
    ptrdiff_t i, j;
    size_t rows, columns;
};

/* Computes a tile of a product and stores it. Returns the flags that this raises. */
typedef unsigned tf_tile_fn(const void *product, struct tf_tile_place place,
                            struct tf_worker *worker);

/* Computes all tiles, as tf_do_tasks does tasks. */
int tf_compute_tiles(const struct tf_tiles *tiles, tf_tile_fn *compute,
                     const void *product, unsigned *flags);

#endif
