/* Kernels of matrix products: micro-kernels, GEMV, dot products, and packing. */
#ifndef TF32DTYPE_MATMUL_KERNELS_H
#define TF32DTYPE_MATMUL_KERNELS_H

#include "formats/kernels.h"

struct tf_byte_table; /* formats/byte_tables.h */

/* Sizes of matrix products: see src/README.md. */
enum {
    TF_KC = 256,         /* k of a chain of fused multiply-adds: the contract's */
    TF_MR = 6,           /* rows of a micro-tile, if kernels do not say otherwise */
    TF_TALL_MR = 14,     /* of the tallest micro-tile */
    TF_LANES = 32,       /* of bounds of magnitudes */
    TF_GEMV_COLUMNS = 64, /* columns that GEMV takes at a time: side by side */
};

/* What a packed word, of 32 bits, holds: a float32, two bfloat16 numbers, or four
 * integers. */
enum tf_packing { TF_SINGLES, TF_PAIRS, TF_QUADS };
enum { TF_QUAD = 4 };

/* One product of a chain: which parts of A and B, as distances in words, and what the
 * sums so far are multiplied by before it. */
struct tf_split_product {
    size_t a, b;
    float scale;
};

/* What a micro-kernel makes of C. */
enum { TF_SUMS_WRITE, TF_SUMS_ADD, TF_SUMS_CONTINUE };

/* Micro-kernel: writes c = s, or c = c + s to `TF_SUMS_ADD`, for MR x NR of C, whose rows
 * lie `ldc` apart. s is one chain of fused multiply-adds from +0, or from c to
 * `TF_SUMS_CONTINUE`, which kernels of bytes do not: for each of `count` terms the sums so
 * far are multiplied by its scale, and then `depth` words of every row of A (`lda` words
 * apart) times those of a panel of B (NR wide, k after k) are added in order. No alignment
 * is needed. `rows` of the kernel's rows count; the others are there in A and C (the caller
 * masks edges), and may be left out. */
typedef void tf_micro_kernel_fn(const float *a, size_t lda, const float *b, size_t depth,
                            const struct tf_split_product *terms, size_t count, size_t rows,
                            float *c, size_t ldc, int what);

/* And the micro-tile that it multiplies: MR, and NR. */
struct tf_kernel {
    tf_micro_kernel_fn *multiply;
    size_t rows, columns;
};

/* Per lane the greatest magnitude of some bfloat16 numbers, or upper halves of float32,
 * and the least magnitude less one, both as unsigned integers: less one turns zero into
 * 65535, so that it is never the minimum. Lanes are brought together once at the end,
 * since that costs more than a short line. */
struct tf_magnitude_range {
    uint16_t min_minus_1[TF_LANES], greatest[TF_LANES];
};

/* One row times a matrix that is read once: see gemv.c. */
struct tf_gemv_operands {
    const float *x;   /* the row */
    const char *rows; /* of the matrix, which lie `step` bytes apart */
    ptrdiff_t step;
    const struct tf_byte_table *table; /* of items of a byte */
    uint32_t used;                     /* bits of float32 items that count */
};

/* The sums of columns side by side, a multiple of TF_GEMV_COLUMNS, or of 16 of
 * float32. */
typedef void tf_gemv_fn(const struct tf_gemv_operands *in, size_t depth,
                        size_t columns, float *sums);

struct tf_gemv_kernels {
    tf_gemv_fn *across_singles;
    tf_gemv_fn *across_bf16, *across_bytes; /* NULL where there is none */
};

/* Products of vectors: TF_DOT_CHAINS chains at a time, or TF_DOT_LINES. */
enum { TF_DOT_CHAINS = 16, TF_DOT_LINES = 2 * TF_DOT_CHAINS, TF_DOT_WHOLE = 64 };

/* Lines of contiguous items, and what they are multiplied with. */
struct tf_dot_operands {
    const char *const *a, *const *b; /* where TF_DOT_LINES lines begin */
    /* If given, the same numbers for all lines, with -0 behind up to a multiple of
     * TF_DOT_WHOLE; b is not read. */
    const float *numbers;
    const struct tf_byte_table *table; /* of items of a byte */
    float unit;                        /* of products of its integers */
    uint32_t used;                     /* bits of float32 items that count */
};

/* The chains of the first `count` lines; more sums may be written. */
typedef void tf_dot_fn(const struct tf_dot_operands *in, size_t depth, size_t count,
                       float *sums);

struct tf_dot {
    /* Numbers of the same k side by side, of TF_DOT_CHAINS chains. */
    void (*lanes)(const float *a, const float *b, size_t depth, float *sums);
    /* Of items of a byte, of bfloat16, of float32; NULL: see lanes. */
    tf_dot_fn *bytes, *bf16, *singles;
};

/* Kernels of products of small integers, where there is an instruction for them: see
 * int8_dot.c. The integers are those of codes of up to six bits; on the side of A none has a
 * sign. */
struct tf_int8_kernels {
    struct tf_kernel kernel; /* a term's scale is the unit of its products */
    /* Lines along k, `step` bytes apart, to words: `ld` from line to line. */
    void (*lay_lines)(const int8_t integers[64], int unsigned_side, const char *lines,
                      ptrdiff_t step, size_t count, size_t depth, float *out,
                      size_t ld);
    /* Rows of numbers of one k, `step` bytes apart, to panels of `width`, each `words`
     * long. */
    void (*lay_rows)(const int8_t integers[64], int unsigned_side, const char *rows,
                     ptrdiff_t step, size_t depth, size_t columns, size_t width,
                     size_t words, float *out);
    /* The first words of the chains of B's panels. */
    void (*begin_chains)(float *panels, size_t columns, size_t width, size_t words);
    tf_dot_fn *dot; /* of items of a byte whose table has integers */
};

struct tf_matmul_kernels {
    /* Words of one float32; the same in other micro-tiles. */
    struct tf_kernel singles, tall;
    /* The chains of n pairs of lines, of `depth` numbers each, one after the other. */
    void (*chains)(const float *a, const float *b, size_t depth,
                   const struct tf_split_product *terms, size_t count, size_t n, float *sums);
    /* The greatest finite magnitude: of n numbers; of what is in n places so far. */
    float (*greatest_of_all)(const float *in, size_t n);
    void (*greatest_of_each)(const float *in, size_t n, float *greatest);
    /* Rows of n words, one after the other, to panels of `width` columns, `distance`
     * apart. */
    void (*lay_out)(const float *in, size_t rows, size_t n, float *out, size_t width,
                    size_t distance);
    /* What all lanes have together, in the first of them. */
    void (*reduce_range)(struct tf_magnitude_range *range);
    /* Numbers to their parts (see operand_split.h), `distance` apart. */
    void (*split_singles)(const float *in, size_t n, int p, int parts, float *out,
                          size_t distance, struct tf_magnitude_range *range);
    /* to[i] += from[i]. */
    void (*add)(const float *from, float *to, size_t n);
    void (*transpose)(const float *in, size_t ld_in, size_t rows, size_t columns,
                      float *out, size_t ld_out);

    /* The rest is there with an instruction for pairs alone. */
    struct tf_kernel pairs; /* words of two bfloat16 */
    void (*pair_neighbors)(const uint16_t *in, float *out, size_t n);
    void (*pair_rows)(const uint16_t *first, const uint16_t *second, float *out,
                      size_t n);
    /* The same of many rows, `step` bytes apart, to panels of `width`, each `words`
     * long; after an odd number of rows follows a row of zeros. */
    void (*pair_matrix)(const uint16_t *rows, ptrdiff_t step, size_t depth,
                        size_t columns, size_t width, size_t words, float *out,
                        struct tf_magnitude_range *range);
    void (*note_least)(const uint16_t *in, size_t n, struct tf_magnitude_range *range);
    /* Parts that are not scaled: x = x0 + x1 + x2, where that is exact. */
    void (*split_bf16)(const float *in, size_t n, int parts, uint16_t *out,
                       size_t distance, struct tf_magnitude_range *range);
};

#endif
