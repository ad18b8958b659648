/* Tiles of C for units of rounded_model.h, shared by rounded.c and rounded_doubles.c. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_TILE_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_TILE_H

#include "runtime/kernels/simd.h"
#include "tensor_core/kernels.h"
#include "tensor_core/elements.h"

enum {
    ROWS = TF_MR, /* rows of C computed at once */
    SIDES = 2,    /* vectors across a tile */
    WIDTH = SIDES * LANES,
    PANEL = LANES == 16 ? 2 * WIDTH : WIDTH, /* as COLUMNS of panels.h */
    NOTED = 16, /* smallest k per note: see rounded_ranges.h */
    BIAS = 127
};

struct operands {
    const float *a, *b;
    size_t lda;
    const uint32_t *a_notes, *b_notes; /* one note per NOTED k */
    /* Only for loops in float64: rows of A TF_MMA_DEPTH apart, and panels as in b. */
    const double *wide_a, *wide_b;
};

struct tile {
    floats c[ROWS][SIDES];
};

/* Adds the products of whole instructions to the accumulators c of a tile. */
typedef void chain_fn(const struct tf_rounded_model *model, const struct operands *x,
                      size_t depth, float *c, size_t ldc);

/* The loops of rounded_doubles.c. tf_pair_steps_any adds sums of two bfloat16 products,
 * each rounded once, to the accumulators. The others compute fused groups of two or four
 * products: _exact if sums are exact except for the unit's rounding; _enclosed if no result
 * is subnormal or overflows, while float64 rounds downward; _any in all cases. */
extern chain_fn TF_PLAIN_NAME(tf_pair_steps_any);
extern chain_fn TF_PLAIN_NAME(tf_fused_2_exact), TF_PLAIN_NAME(tf_fused_4_exact),
    TF_PLAIN_NAME(tf_fused_4_enclosed), TF_PLAIN_NAME(tf_fused_any);

#endif
