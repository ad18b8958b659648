/* Products of block arrays: codes are decoded on their way to a tile. */
#ifndef TF32DTYPE_BLOCKS_BLOCK_MATMUL_H
#define TF32DTYPE_BLOCKS_BLOCK_MATMUL_H

#include "blocks/block_operand.h"
#include "matmul/matrix.h"

/* C = A @ B for `count` times m and n lines of k numbers in blocks of `block`, 16 to
 * 128.
 *
 * For each block of k, and each of up to `terms` products hi*hi, hi*lo, lo*hi, lo*lo of
 * levels (without the last if `terms` is 3), c = fma(RN32(s t), p, c) from +0, where p
 * is the chain of fused multiply-adds from +0 and s, t are the scales of both levels.
 * One rounding to the kind of C. On as many threads as OpenMP offers, which change no
 * bit. What floating-point flags it raises is added to *flags. Returns -1, with C
 * untouched, if memory is short; or, with C undefined, if it was stopped (stops.h). */
int tf_block_matmul(const struct tf_block_operand *a, const struct tf_block_operand *b,
                    struct tf_matrix c, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                    ptrdiff_t count, ptrdiff_t block, int terms, unsigned *flags);

#endif
