/* Tiles of C, of units that round otherwise: what rounded.c and rounded_doubles.c share. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_TILE_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_TILE_H

#include "runtime/kernels/simd.h"
#include "tensor_core/kernels.h"
#include "tensor_core/elements.h"

enum {
    ROWS = TF_MR, /* of C that are done at once */
    SIDES = 2,    /* vectors across */
    WIDTH = SIDES * LANES,
    PANEL = LANES == 16 ? 2 * WIDTH : WIDTH, /* as kernels/mma.c has it */
    NOTED = 16, /* k that have a note */
    BIAS = 127
};

struct operands {
    const float *a, *b;
    size_t lda;
    /* For loops in float64, TF_MMA_DEPTH from row to row of A; of panels as b. */
    const double *wide_a, *wide_b;
};

struct tile {
    floats c[ROWS][SIDES];
};

/* Goes on with the accumulators c of a tile over whole instructions. */
typedef void chain_fn(const struct tf_rounded_model *model, const struct operands *x,
                      size_t depth, float *c, size_t ldc);

/* Those of rounded_doubles.c: fused groups of two and four products. Where all sums are
 * exact but for what the unit rounds; where no result is subnormal or overflows, while
 * float64 rounds downward; and else. */
extern chain_fn TF_PLAIN_NAME(tf_fused_2_exact), TF_PLAIN_NAME(tf_fused_2_any),
    TF_PLAIN_NAME(tf_fused_4_exact), TF_PLAIN_NAME(tf_fused_4_enclosed),
    TF_PLAIN_NAME(tf_fused_4_any);

/* Computes by integers those elements that are in doubt. */
__attribute__((noinline)) static void
redo_with_integers(const struct tf_rounded_model *model, const struct operands *x,
                   size_t depth, const struct tile *doubt, const float *c, size_t ldc,
                   struct tile *sums)
{
    words some = words_of(0);
    for (size_t i = 0; i < ROWS * SIDES; i++) {
        some |= (words)doubt->c[i / SIDES][i % SIDES];
    }
    for (size_t r = 0; any(some) && r < ROWS; r++) {
        for (size_t j = 0; j < WIDTH; j++) {
            const size_t s = j / LANES, lane = j % LANES;
            if (((words)doubt->c[r][s])[lane]) {
                sums->c[r][s][lane] = tf_rounded_element(
                    model, x->a + r * x->lda, x->b + j, PANEL, depth, c[r * ldc + j]);
            }
        }
    }
}

#endif
