/* Tiles of C, and the functions that compute and store one. */
#ifndef TF32DTYPE_MATMUL_TILE_PATH_H
#define TF32DTYPE_MATMUL_TILE_PATH_H

#include "matmul/matrix.h"
#include "matmul/operand.h"
#include "matmul/precisions.h"
#include "matmul/split_schedule.h"
#include "matmul/workspace.h"

/* The words into which operands are packed, their micro-kernel, and the order of sums. */
struct tf_packed_way {
    enum tf_packing packing;
    struct tf_kernel kernel;
    const struct tf_split_schedule *schedule;
};

/* A tile's operands, and how they are multiplied. */
struct tf_tile {
    struct tf_operand a, b;
    size_t rows, columns;
    struct tf_packed_way fastest, singles; /* of the plan */
    /* Memory that is read or written soon, and is prefetched while the tile is
     * multiplied. */
    struct {
        const char *data;
        size_t cache_lines;
    } ahead[3];
    /* For paths of other subjects: the precision, whether A and B are swapped, and the
     * initial values of accumulators, or NULL for zeros. */
    const struct tf_precision *precision;
    int swapped;
    const struct tf_matrix *accumulators;
};

/* Returns the tile with operands that begin with another k. */
static inline struct tf_tile tf_tile_from(struct tf_tile tile, ptrdiff_t k)
{
    tile.a = tf_operand_from(tile.a, 0, k);
    tile.b = tf_operand_from(tile.b, 0, k);
    return tile;
}

/* The functions that compute a tile in one way, and store its sums in C. */
struct tf_tile_path {
    /* Writes the sums of a tile over all k to work->sums, with rows work->ld apart. */
    void (*compute)(struct tf_workspace *work, const struct tf_tile *tile, ptrdiff_t k);
    /* Writes n sums, at most TF_CHUNK, to C, rounded to its kind: see tf_store_sums. Finds
     * no flags if `flags` is NULL. */
    int (*store)(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                 unsigned *flags);
};

#endif
