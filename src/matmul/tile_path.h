/* Tiles of C: a tile, the ways to compute one, and the product that is cut into tiles. */
#ifndef TF32DTYPE_MATMUL_TILE_PATH_H
#define TF32DTYPE_MATMUL_TILE_PATH_H

#include "matmul/matrix.h"
#include "matmul/operand.h"
#include "matmul/precisions.h"
#include "matmul/split_schedule.h"
#include "matmul/workspace.h"

/* A tile's operands, and how they are multiplied. */
struct tf_tile {
    struct tf_operand a, b;
    size_t rows, columns;
    const struct tf_split_schedule *singles, *pairs, *quads;
    /* Memory that is read or written next: prefetched while this tile is multiplied. */
    struct {
        const char *data;
        size_t cache_lines;
    } ahead[3];
    /* For paths of other files: the call's precision; whether A and B are swapped; and
     * where the accumulators begin, or NULL for zero. */
    const struct tf_precision *precision;
    int swapped;
    const struct tf_matrix *accumulators;
};

static inline struct tf_tile tf_tile_from(struct tf_tile tile, ptrdiff_t k)
{
    tile.a = tf_operand_from(tile.a, 0, k);
    tile.b = tf_operand_from(tile.b, 0, k);
    return tile;
}

/* One way to compute a tile, and to bring its sums to C. */
struct tf_tile_path {
    /* Writes the sums of a tile over all of k to work->sums, rows work->ld apart. */
    void (*compute)(struct tf_workspace *work, const struct tf_tile *tile, ptrdiff_t k);
    /* Writes n sums, TF_CHUNK at most, to C, rounded to its kind: see tf_store_sums. No
     * flags are wanted if `flags` is NULL. */
    int (*store)(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                 unsigned *flags);
};

/* Tiles of C, all of the same size but for the last ones. */
struct tf_tiling {
    ptrdiff_t rows, columns;    /* of a tile */
    ptrdiff_t vertical, across; /* tiles of a matrix */
};

/* A product that is computed in tiles. */
struct tf_tiled_product {
    const struct tf_precision *precision;
    struct tf_matrix a, b, c;
    ptrdiff_t m, n, k, count;
    struct tf_tiling tiling;
    const struct tf_split_schedule *singles, *pairs, *quads;
    float alpha, beta;
    float greatest[2]; /* of the matrices that A and B are parts of, or 0 */
    float *scales; /* of rows of A and columns of B, matrix after matrix; or NULL */
    int swapped;   /* A and B, and rows and columns of C, have changed places */
};

#endif
