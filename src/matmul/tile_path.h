/* Tiles of C, and the ways to compute one. */
#ifndef TF32DTYPE_MATMUL_TILE_PATH_H
#define TF32DTYPE_MATMUL_TILE_PATH_H

#include "matmul/matrix.h"
#include "matmul/operand.h"
#include "matmul/precisions.h"
#include "matmul/split_schedule.h"
#include "matmul/workspace.h"

/* The words that operands are packed as, the kernel for them, and the order of sums. */
struct tf_packed_way {
    enum tf_packing packing;
    struct tf_kernel kernel;
    const struct tf_split_schedule *schedule;
};

/* A tile's operands, and how they are multiplied. */
struct tf_tile {
    struct tf_operand a, b;
    size_t rows, columns;
    struct tf_packed_way fastest, singles; /* of its plan */
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

#endif
