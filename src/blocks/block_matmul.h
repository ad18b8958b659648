/* Multiply block arrays. Codes are decoded while a tile is packed. */
#ifndef TF32DTYPE_BLOCKS_BLOCK_MATMUL_H
#define TF32DTYPE_BLOCKS_BLOCK_MATMUL_H

#include "blocks/block_operand.h"
#include "matmul/matrix.h"

/* Computes C = A @ B for `count` matrices of m lines by n lines, of k numbers in blocks of
 * `block`, 16 to 128.
 *
 * For each block of k, C adds up to `terms` products of levels, in the order hi*hi, hi*lo,
 * lo*hi, lo*lo (without the last if `terms` is 3). Each product computes c =
 * fma(RN32(s t), p, c), from +0 on. Let p be the block's chain of fused multiply-adds from
 * +0, and s and t the scales of both levels. Sums are rounded once to the kind of C. Runs
 * on as many threads as OpenMP offers; their number changes no bit. Adds floating-point
 * flags to *flags. Returns -1 if memory is short, with C unchanged, or if it was stopped
 * (stops.h), with C undefined. */
int tf_block_matmul(const struct tf_block_operand *a, const struct tf_block_operand *b,
                    struct tf_matrix c, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                    ptrdiff_t count, ptrdiff_t block, int terms, unsigned *flags);

#endif
