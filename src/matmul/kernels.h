/* Kernels of matrix products: micro-kernels, GEMV, dot products, and packing. The files of
 * matmul/kernels/ list the preconditions above each function. A `step` is in bytes. All
 * other distances and lengths (`ld`, `distance`, `width`, `words`) are in elements of the
 * array. */
#ifndef TF32DTYPE_MATMUL_KERNELS_H
#define TF32DTYPE_MATMUL_KERNELS_H

#include "formats/kernels.h"

struct tf_byte_table; /* formats/byte_tables.h */

/* Sizes of matrix products: see src/README.md. */
enum {
    TF_KC = 256,          /* k of a chain of fused multiply-adds, by contract */
    TF_MR = 6,            /* rows of every micro-tile but the tall one's with AVX-512 */
    TF_TALL_MR = 14,      /* rows of the tallest micro-tile */
    TF_LANES = 32,        /* lanes of struct tf_magnitude_range */
    TF_GEMV_COLUMNS = 64, /* GEMV kernels of bfloat16 and of bytes take multiples of it */
};

/* The content of a packed word of 32 bits: a float32, two bfloat16 numbers, or four
 * integers of a byte. */
enum tf_packing { TF_SINGLES, TF_PAIRS, TF_QUADS };
enum { TF_QUAD = 4 };

/* One product of components: the distances in words from the first component of A and of B
 * to the two that are multiplied. The sums so far are multiplied by `scale` before it. */
struct tf_split_product {
    size_t a, b;
    float scale;
};

/* How a micro-kernel writes its sums to C: see tf_micro_kernel_fn. */
enum { TF_SUMS_WRITE, TF_SUMS_ADD, TF_SUMS_CONTINUE };

/* Computes a micro-tile: writes c = s, or c = c + s for TF_SUMS_ADD, to MR x NR of C. s is
 * one chain of fused multiply-adds that starts with +0, or with c for TF_SUMS_CONTINUE. The
 * kernel of integers has no TF_SUMS_CONTINUE. For each of the `count` terms, the kernel
 * multiplies the sums so far by the term's scale. Then it adds, in order, `depth` words of
 * each row of A times those of a panel of B (NR columns, k after k). Only the first `rows`
 * rows count. The preconditions are above multiply_rows in kernels/micro_kernel.c, and
 * above multiply_quads in kernels/int8_dot.c. */
typedef void tf_micro_kernel_fn(const float *a, size_t lda, const float *b, size_t depth,
                            const struct tf_split_product *terms, size_t count, size_t rows,
                            float *c, size_t ldc, int what);

/* A micro-kernel, and its MR and NR. */
struct tf_kernel {
    tf_micro_kernel_fn *multiply;
    size_t rows, columns;
};

/* The largest magnitude of some bfloat16 numbers, or of the upper halves of float32
 * numbers, and the smallest magnitude minus 1, as unsigned integers, in each lane. Minus 1
 * turns zero into 65535, so that zero is never the minimum. reduce_range combines the lanes
 * once at the end, because that takes longer than a short line. */
struct tf_magnitude_range {
    uint16_t min_minus_1[TF_LANES], greatest[TF_LANES];
};

/* The operands of GEMV, one row times a matrix that is read once: see kernels/gemv.c. */
struct tf_gemv_operands {
    const float *x;   /* the row: one number for each k */
    const char *rows; /* the matrix: a row for each k */
    ptrdiff_t step;   /* bytes from row to row */
    const struct tf_byte_table *table; /* if items have one byte */
    uint32_t used;                     /* bits of float32 items that count */
};

/* Writes the chain of each column over `depth` k to `sums`. `columns` is a multiple of
 * TF_GEMV_COLUMNS, or of 16 if items are float32. */
typedef void tf_gemv_fn(const struct tf_gemv_operands *in, size_t depth,
                        size_t columns, float *sums);

struct tf_gemv_kernels {
    tf_gemv_fn *across_singles;
    tf_gemv_fn *across_bf16, *across_bytes; /* NULL if the instruction set has none */
};

/* Products of vectors: TF_DOT_CHAINS chains at a time, or TF_DOT_LINES. */
enum { TF_DOT_CHAINS = 16, TF_DOT_LINES = 2 * TF_DOT_CHAINS, TF_DOT_WHOLE = 64 };

/* The operands of a dot product kernel: lines of contiguous items. */
struct tf_dot_operands {
    const char *const *a, *const *b; /* where TF_DOT_LINES lines begin */
    /* If not NULL, all lines of a are multiplied by these numbers, and b is not read. -0
     * follows the numbers up to a multiple of TF_DOT_WHOLE. */
    const float *numbers;
    const struct tf_byte_table *table; /* if items have one byte */
    float unit;                        /* the value of a product of 1 and 1 as integers */
    uint32_t used;                     /* bits of float32 items that count */
};

/* Writes the chains of the first `count` lines. May write up to TF_DOT_LINES sums. */
typedef void tf_dot_fn(const struct tf_dot_operands *in, size_t depth, size_t count,
                       float *sums);

struct tf_dot {
    /* Computes TF_DOT_CHAINS chains. The numbers of one k adjoin. */
    void (*lanes)(const float *a, const float *b, size_t depth, float *sums);
    /* For items of a byte, bfloat16, float32. If NULL, callers use `lanes`. */
    tf_dot_fn *bytes, *bf16, *singles;
};

/* Kernels for products of small integers: see kernels/int8_dot.c. All are NULL if the
 * instruction is missing. `integers` are the values of codes of up to six bits. The
 * instruction reads A's bytes as unsigned: `unsigned_side` adds 128 to the integers. */
struct tf_int8_kernels {
    struct tf_kernel kernel; /* the term's scale is the value of a product of 1 and 1 */
    /* Converts lines along k, `step` bytes apart, to words, with lines `ld` words apart. */
    void (*lay_lines)(const int8_t integers[64], int unsigned_side, const char *lines,
                      ptrdiff_t step, size_t count, size_t depth, float *out,
                      size_t ld);
    /* Converts rows, each the items of one k and `step` bytes apart, to panels of `width`
     * columns and `words` words in each column. */
    void (*lay_rows)(const int8_t integers[64], int unsigned_side, const char *rows,
                     ptrdiff_t step, size_t depth, size_t columns, size_t width,
                     size_t words, float *out);
    /* Writes the first words of the chains of B's panels. */
    void (*begin_chains)(float *panels, size_t columns, size_t width, size_t words);
    tf_dot_fn *dot; /* for items of a byte whose table has integers */
};

struct tf_matmul_kernels {
    /* The micro-kernels for words of one float32, in two shapes of micro-tiles. */
    struct tf_kernel singles, tall;
    /* Writes the chains of n pairs of lines of `depth` numbers, which adjoin. */
    void (*chains)(const float *a, const float *b, size_t depth,
                   const struct tf_split_product *terms, size_t count, size_t n, float *sums);
    /* Return the largest finite magnitude of n numbers; raise n magnitudes to those of n
     * numbers. */
    float (*greatest_of_all)(const float *in, size_t n);
    void (*greatest_of_each)(const float *in, size_t n, float *greatest);
    /* Copies adjoining rows of n words to panels of `width` columns, `distance` apart. */
    void (*lay_out)(const float *in, size_t rows, size_t n, float *out, size_t width,
                    size_t distance);
    /* Writes the bounds of all lanes to the first lane. */
    void (*reduce_range)(struct tf_magnitude_range *range);
    /* Splits numbers into components (see operand_split.h), `distance` apart. */
    void (*split_singles)(const float *in, size_t n, int p, int parts, float *out,
                          size_t distance, struct tf_magnitude_range *range);
    /* to[i] += from[i]. */
    void (*add)(const float *from, float *to, size_t n);
    void (*transpose)(const float *in, size_t ld_in, size_t rows, size_t columns,
                      float *out, size_t ld_out);

    /* The members below are NULL without an instruction for pairs of bfloat16. */
    struct tf_kernel pairs; /* for words of two bfloat16 numbers */
    /* Write words of two neighbors in a line, of two rows, and of all rows of a matrix. The
     * last function writes panels of `width` columns with `words` words in each column. */
    void (*pair_neighbors)(const uint16_t *in, float *out, size_t n);
    void (*pair_rows)(const uint16_t *first, const uint16_t *second, float *out,
                      size_t n);
    void (*pair_matrix)(const uint16_t *rows, ptrdiff_t step, size_t depth,
                        size_t columns, size_t width, size_t words, float *out,
                        struct tf_magnitude_range *range);
    void (*note_least)(const uint16_t *in, size_t n, struct tf_magnitude_range *range);
    /* Splits numbers into components without scales: x = x0 + x1 + x2, if this is exact. */
    void (*split_bf16)(const float *in, size_t n, int parts, uint16_t *out,
                       size_t distance, struct tf_magnitude_range *range);
};

#endif
