/* Kernels of block-scaled arrays: quantization and matrix multiplication. */
#ifndef TF32DTYPE_BLOCKS_KERNELS_H
#define TF32DTYPE_BLOCKS_KERNELS_H

#include "matmul/kernels.h"

/* Loops over blocks with a common scale, for one element: see quantize_block.h. All blocks
 * are whole and stored one after the other. `draws` has one entry per number. */
struct tf_block_plan;

struct tf_block_loops {
    void (*quantize)(const struct tf_block_plan *plan, const float *x, size_t count,
                     const uint64_t *draws, uint8_t *codes, uint8_t *scales,
                     uint8_t *residuals);
    /* Writes the numbers that dequantize returns for the codes of quantize. */
    void (*round)(const struct tf_block_plan *plan, const float *x, size_t count,
                  const uint64_t *draws, float *out);
    /* Writes numbers rounded to nearest, or to odd. */
    void (*dequantize)(const struct tf_block_plan *plan, const uint8_t *codes,
                       const uint8_t *scales, const uint8_t *residuals, size_t count,
                       int odd, float *out);
};

/* -- matrix multiplication of block arrays: see kernels/block_matmul.c --------------- */

/* One product of a block's elements: offsets of levels of A and B, and of their scales. */
struct tf_block_term {
    size_t a, b, a_scales, b_scales;
};

/* `words` words in `blocks` blocks of `block` words, of which the last may have fewer. */
struct tf_block_chain {
    const struct tf_block_term *terms;
    size_t count;
    size_t block, words, blocks;
};

/* Adds to c, or to +0, for TF_MR x columns of C. Block after block and term after term, c +
 * s t is rounded once. s is the chain of the term's words from +0. t is the product of the
 * row's and the column's scales, rounded. Scales are stored as words are, one per block. */
typedef void tf_block_product_fn(const struct tf_block_chain *chain, const float *a,
                                 const float *a_scales, const float *b,
                                 const float *b_scales, float *c, size_t ldc,
                                 int adds);

struct tf_code_table;

/* Decodes n consecutive codes, at most TF_KC, of whole blocks to words. */
typedef void tf_words_of_codes_fn(const struct tf_code_table *table,
                                  const uint8_t *codes, size_t n, float *out);

struct tf_block_product {
    size_t columns; /* of a micro-tile of C */
    tf_block_product_fn *singles;
    tf_words_of_codes_fn *singles_of_codes;
    /* Only with an instruction for pairs, and for codes of at most 8 bits. */
    tf_block_product_fn *pairs;
    tf_words_of_codes_fn *pairs_of_codes;
};

struct tf_block_kernels {
    const struct tf_block_loops *loops; /* by element */
    const struct tf_block_product *product;
};

#endif
