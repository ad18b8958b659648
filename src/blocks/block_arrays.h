/* Arrays of blocks with a common scale: float32 lines to codes and back.
 *
 * Lines are contiguous rows of `length` numbers; each is cut into blocks, a short last
 * one filled up with zeros. Codes, scales (S, or S and R by turns) and residuals of all
 * blocks lie one after the other. Nothing is checked. The bits depend on neither threads
 * nor instruction set. Functions return 0; -1, with nothing written, if memory is short;
 * or -1 if the call was stopped (stops.h).
 */
#ifndef TF32DTYPE_BLOCKS_BLOCK_ARRAYS_H
#define TF32DTYPE_BLOCKS_BLOCK_ARRAYS_H

#include <stddef.h>

#include "blocks/block_plan.h"

struct tf_block_lines {
    ptrdiff_t count, length;
};

/* Where the parts of an array lie; `residuals` is not used without them. */
struct tf_block_codes {
    uint8_t *codes, *scales, *residuals;
};

/* `draws`, for stochastic rounding, lie like the numbers; else NULL. */
int tf_blocks_quantize(const struct tf_block_plan *plan, const float *x,
                       struct tf_block_lines lines, const uint64_t *draws,
                       struct tf_block_codes out);

/* Quantized and dequantized. */
int tf_blocks_round(const struct tf_block_plan *plan, const float *x,
                    struct tf_block_lines lines, const uint64_t *draws, float *out);

/* To nearest, or to odd, which a cast to fewer bits then takes for the number itself. */
int tf_blocks_dequantize(const struct tf_block_plan *plan, struct tf_block_codes in,
                         struct tf_block_lines lines, int odd, float *out);
int tf_blocks_dequantize_double(const struct tf_block_plan *plan, struct tf_block_codes in,
                                struct tf_block_lines lines, double *out);

/* The greatest finite magnitude, the least one that a block other than zero has, Inf if
 * there is none, and where the first number lies that is not finite; -1: nowhere. */
struct tf_block_bounds {
    float greatest, least;
    ptrdiff_t special;
};

struct tf_block_bounds tf_blocks_bounds(const float *x, struct tf_block_lines lines,
                                        int block);

#endif
