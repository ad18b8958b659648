/* Arrays of blocks with a common scale: convert float32 lines to codes and back.
 *
 * Lines are contiguous rows of `length` numbers. Each line is cut into blocks, and zeros
 * fill up a short last one. Codes, scales (S, or S and R by turns) and residuals of all
 * blocks are stored one after the other. Arguments are not checked. The bits depend neither
 * on threads nor on the instruction set. Functions return 0, or -1: if memory is short,
 * with nothing written, or if the call was stopped (stops.h).
 */
#ifndef TF32DTYPE_BLOCKS_BLOCK_ARRAYS_H
#define TF32DTYPE_BLOCKS_BLOCK_ARRAYS_H

#include <stddef.h>

#include "blocks/block_plan.h"

struct tf_block_lines {
    ptrdiff_t count, length;
};

/* The memory of an array's codes. `residuals` is only used if the format has residuals. */
struct tf_block_codes {
    uint8_t *codes, *scales, *residuals;
};

/* Quantizes x. `draws` has one entry per number for stochastic rounding, else is NULL. */
int tf_blocks_quantize(const struct tf_block_plan *plan, const float *x,
                       struct tf_block_lines lines, const uint64_t *draws,
                       struct tf_block_codes out);

/* Writes x quantized and dequantized. */
int tf_blocks_round(const struct tf_block_plan *plan, const float *x,
                    struct tf_block_lines lines, const uint64_t *draws, float *out);

/* Dequantize, rounded to nearest or to odd. A cast of an odd result to fewer bits gives the
 * correctly rounded number. */
int tf_blocks_dequantize(const struct tf_block_plan *plan, struct tf_block_codes in,
                         struct tf_block_lines lines, int odd, float *out);
int tf_blocks_dequantize_double(const struct tf_block_plan *plan, struct tf_block_codes in,
                                struct tf_block_lines lines, double *out);

/* Largest finite magnitudes of blocks: the largest, and the smallest that is not zero (Inf
 * if there is none). `special` is the index of the first Inf or NaN, or -1. */
struct tf_block_bounds {
    float greatest, least;
    ptrdiff_t special;
};

struct tf_block_bounds tf_blocks_bounds(const float *x, struct tf_block_lines lines,
                                        int block);

#endif
