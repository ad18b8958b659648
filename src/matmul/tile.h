/* One tile of C: its operands, and what computes it. */
#ifndef TF32DTYPE_MATMUL_TILE_H
#define TF32DTYPE_MATMUL_TILE_H

#include <string.h>

#include "matmul/matmul.h"
#include "matmul/pack.h"
#include "matmul/split_schedule.h"

/* A tile's operands, and how they are multiplied. */
struct tf_tile {
    struct tf_operand a, b;
    size_t rows, columns;
    const struct tf_split_schedule *singles, *pairs, *quads;
    /* What will be read, or written, next: fetched bit by bit while this is multiplied. */
    struct {
        const char *data;
        size_t cache_lines;
    } ahead[3];
    /* Of a path of its own: the call's precision; whether A and B have changed places;
     * and where the accumulators begin, or NULL for zero. */
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

static inline void tf_add_row(const float *from, float *to, size_t n, int adds)
{
    if (adds) {
        tf_isa->matmul->add(from, to, n);
    } else {
        memcpy(to, from, n * sizeof *to);
    }
}

/* Where tiles of parts have a second set of sums. */
static inline float *tf_more_sums(struct tf_workspace *work)
{
    return work->sums + TF_TILE_M / 2 * TF_LDC;
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

/* A matrix of the product as lines along k: its rows (axis 0), or its columns (1). */
struct tf_operand tf_operand_of(const struct tf_tiled_product *product,
                                struct tf_matrix x, int axis);

/* As a tf_task_fn, of a struct tf_tiled_product: computes a tile by the path that suits
 * it, and stores it. Returns the flags that this raises. */
unsigned tf_multiply_tile(const void *context, ptrdiff_t task, struct tf_worker *worker);

#endif
