/* Cuts C into tiles, and has threads compute them, for all kinds of products. */
#ifndef TF32DTYPE_MATMUL_TILES_H
#define TF32DTYPE_MATMUL_TILES_H

#include <stddef.h>

#include "runtime/thread_pool.h"

/* Limits of the length of a side of a tile, in elements. */
struct tf_tile_side {
    ptrdiff_t most;  /* the workspace has memory for so many */
    ptrdiff_t least; /* a side that is not longer is not cut in two */
    ptrdiff_t unit;  /* sides are multiples of it, except the last, the only one, `most` */
};

/* `count` matrices of m x n in tiles of the same size; the last tiles may be smaller. */
struct tf_tiles {
    ptrdiff_t m, n, count;
    ptrdiff_t rows, columns;    /* of a tile */
    ptrdiff_t vertical, across; /* number of tiles in a column and in a row of a matrix */
    ptrdiff_t threads;
};

/* Cuts C for as many threads as a number of multiply-adds is worth. */
struct tf_tiles tf_cut_into_tiles(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count,
                                  double multiply_adds, struct tf_tile_side rows,
                                  struct tf_tile_side columns);

/* The first row and column of a tile, and its size. */
struct tf_tile_place {
    ptrdiff_t number; /* of the matrix */
    ptrdiff_t i, j;
    size_t rows, columns;
};

/* Computes a tile of a product and stores it. Returns the flags that this raises. */
typedef unsigned tf_tile_fn(const void *product, struct tf_tile_place place,
                            struct tf_worker *worker);

/* Computes all tiles as tasks of tf_do_tasks, and returns its result. */
int tf_compute_tiles(const struct tf_tiles *tiles, tf_tile_fn *compute,
                     const void *product, unsigned *flags);

#endif
