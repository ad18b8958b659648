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
    PANEL = LANES == 16 ? 2 * WIDTH : WIDTH, /* as kernels/plain/mma.c has it */
    NOTED = 16, /* k that a note is of, at least: see rounded_ranges.h */
    BIAS = 127
};

struct operands {
    const float *a, *b;
    size_t lda;
    const uint32_t *a_notes, *b_notes; /* for NOTED k each */
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
 * float64 rounds downward; and else. And sums of two bfloat16 products, rounded once, which
 * are added to the accumulator then. */
extern chain_fn TF_PLAIN_NAME(tf_pair_steps_any);
extern chain_fn TF_PLAIN_NAME(tf_fused_2_exact), TF_PLAIN_NAME(tf_fused_4_exact),
    TF_PLAIN_NAME(tf_fused_4_enclosed), TF_PLAIN_NAME(tf_fused_any);

#endif
