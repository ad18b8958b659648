/* One tile of C: its sums, in the contract's order. */
#ifndef TF32DTYPE_TILE_H
#define TF32DTYPE_TILE_H

#include <string.h>

#include "matmul/matmul.h"
#include "matmul/pack.h"
#include "matmul/bf16_dot.h"

/* What is multiplied and added one after the other: see matmul.h. */
struct tf_split_schedule {
    struct tf_split_product terms[TF_PARTS * TF_PARTS];
    size_t count;
    size_t depth; /* k of a chain */
};

struct tf_split_schedule tf_split_schedule_of(const struct tf_precision *precision, int p, int swapped,
                            int pairs);
struct tf_split_schedule tf_terms_of_quads(struct tf_operand a, struct tf_operand b);

/* A tile's operands, and how they are multiplied. */
struct tf_tile {
    struct tf_operand a, b;
    size_t rows, columns;
    const struct tf_split_schedule *singles, *pairs, *quads;
    /* What will be read, or written, next: fetched bit by bit while this is multiplied. */
    struct {
        const char *data;
        size_t lines;
    } ahead[3];
    /* On a device: its chains; where the accumulators begin, or NULL for zero; and
     * after how many k they are added to others, or 0. */
    const struct tf_mma_plan *plan;
    const struct tf_matrix *accumulators;
    ptrdiff_t promote;
};

static inline struct tf_tile tf_tile_from(struct tf_tile tile, ptrdiff_t k)
{
    tile.a = tf_operand_from(tile.a, 0, k);
    tile.b = tf_operand_from(tile.b, 0, k);
    return tile;
}

static inline size_t tf_lesser_size(ptrdiff_t a, ptrdiff_t b)
{
    return (size_t)(a < b ? a : b);
}

static inline void tf_add_row(const float *from, float *to, size_t n, int adds)
{
    if (adds) {
        tf_isa->binary_f32[TF_ADD](to, from, to, n);
    } else {
        memcpy(to, from, n * sizeof *to);
    }
}

/* Where tiles of parts have a second set of sums. */
static inline float *tf_more_sums(struct tf_workspace *work)
{
    return work->sums + TF_TILE_M / 2 * TF_LDC;
}

/* The sums of a tile over all of k, in work->sums. Inf in what is split counts as the
 * largest number if it `saturates`, else as itself. */
void tf_matmul_tile(struct tf_workspace *work, const struct tf_tile *tile,
                      ptrdiff_t k, int saturates);

/* Of k, in order, into `sums`, or added to them: not those of parts, unless k fits a
 * stretch of 4096 and `adds` is 0. */
void tf_multiply_blocks(struct tf_workspace *work, const struct tf_tile *tile,
                        ptrdiff_t k, float *sums, int adds);

/* Whether a tile is one row that has its own way (see gemv.c), and that. */
int tf_is_gemv(struct tf_operand a, ptrdiff_t rows);
void tf_gemv(struct tf_workspace *work, const struct tf_tile *tile,
                     ptrdiff_t k);

#endif
