/* Kernels of block-scaled arrays: quantization, and products. */
#ifndef TF32DTYPE_BLOCKS_KERNELS_H
#define TF32DTYPE_BLOCKS_KERNELS_H

#include "matmul/kernels.h"

/* Blocks with a common scale, for one element: see quantize_block.h. All blocks are whole
 * and lie one after the other, `draws` like the numbers. */
struct tf_block_plan;

struct tf_block_loops {
    void (*quantize)(const struct tf_block_plan *plan, const float *x, size_t count,
                     const uint64_t *draws, uint8_t *codes, uint8_t *scales,
                     uint8_t *residuals);
    /* What dequantize makes of what quantize makes. */
    void (*round)(const struct tf_block_plan *plan, const float *x, size_t count,
                  const uint64_t *draws, float *out);
    /* To nearest, or to odd. */
    void (*dequantize)(const struct tf_block_plan *plan, const uint8_t *codes,
                       const uint8_t *scales, const uint8_t *residuals, size_t count,
                       int odd, float *out);
};

/* Kernels of products of block arrays: see block_matmul.c. */

/* One product of a block's elements: where those of A and B, and their scales, begin. */
struct tf_block_term {
    size_t a, b, a_scales, b_scales;
};

/* Words of a block, of which the last one may have fewer, and of all. */
struct tf_block_chain {
    const struct tf_block_term *terms;
    size_t count;
    size_t block, words, blocks;
};

/* Goes on with c, or from +0, for TF_MR x columns of C: block after block and
 * term after term, c + s t is rounded once, where s is the chain of the term's words
 * from +0, and t the product of the row's and the column's scales, rounded. Scales lie
 * as words do, one for each block. */
typedef void tf_block_product_fn(const struct tf_block_chain *chain, const float *a,
                                 const float *a_scales, const float *b,
                                 const float *b_scales, float *c, size_t ldc,
                                 int adds);

struct tf_code_table;

/* Words of n consecutive codes, TF_KC at most, of whole blocks. */
typedef void tf_words_of_codes_fn(const struct tf_code_table *table,
                                  const uint8_t *codes, size_t n, float *out);

struct tf_block_product {
    size_t columns; /* of a block of C */
    tf_block_product_fn *singles;
    tf_words_of_codes_fn *singles_of_codes;
    /* With an instruction for pairs alone; of codes of a byte or less. */
    tf_block_product_fn *pairs;
    tf_words_of_codes_fn *pairs_of_codes;
};

struct tf_block_kernels {
    const struct tf_block_loops *loops; /* by element */
    const struct tf_block_product *product;
};

#endif
