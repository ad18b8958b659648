/* Kernels for chains of tensor cores, with plain and with block-scaled operands. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_H

#include "matmul/kernels.h"
#include "tensor_core/mma_model.h"
#include "tensor_core/rounded_model.h"
#include "tensor_core/scaled_mma_model.h"

/* Chains of a tensor core's MMA groups. */
enum {
    TF_MMA_DEPTH = 64,      /* k per call of a kernel: at least one MMA group */
    TF_MMA_ZERO = -8000,    /* stands for the exponent of zero, below any product's */
    TF_MMA_SPECIAL = 16000, /* stands for the exponent of Inf and NaN */
};

struct tf_mma_plan {
    struct tf_mma_model model;
    struct tf_rounded_model rounded; /* replaces `model` if its depth is not 0 */
    struct tf_kernel pairs; /* micro-kernel for pairs of bfloat16 numbers, or none */
    int *are_multiples; /* whether all accumulators are known to be multiples of 2^-126 */
    const struct tf_split_product *terms; /* which components of A and B are multiplied */
    size_t count;
    /* Number of k, at most TF_MMA_DEPTH, whose MMA groups start from zero. Their sum is
     * added to the accumulator in its format. 0: accumulators go through all groups. */
    size_t stretch;
    /* If not 0, a scaled term takes accumulators as c * 2^scales_inside, unrounded. */
    int scales_inside;
    uint32_t mask; /* bits that a truncated result keeps, float16 or float32 */
    float zero;    /* added to float16 results: +0.0 makes -0 positive, -0.0 keeps it */
};

/* The smallest exponent of a format, and the exponent that zero counts as. */
struct tf_mma_exponents {
    int32_t least, of_zero;
};

/* Adds products to the accumulators c. `rows` rows of A, a multiple of TF_MR and `lda`
 * words apart, are multiplied by a panel of B with `depth` rows. `depth` is at most
 * TF_MMA_DEPTH, or TF_KC for the units of rounded_model.h. */
typedef void tf_mma_chains(const struct tf_mma_plan *plan, const float *a,
                           const uint32_t *a_exponents, size_t lda, const float *b,
                           const uint32_t *b_exponents, size_t depth, size_t rows,
                           float *c, size_t ldc);

struct tf_mma_kernels {
    size_t columns; /* of a panel of B, at most TF_NR_MAX */
    tf_mma_chains *chains;
    /* Write the exponents of n packed elements: of rows biased and twice per 32-bit word,
     * of panels (n / columns rows) unbiased and two columns per word. */
    void (*exponents_of_rows)(const float *in, size_t n,
                              struct tf_mma_exponents exponents, uint32_t *out);
    void (*exponents_of_columns)(const float *in, size_t n,
                                 struct tf_mma_exponents exponents, uint32_t *out);
};

/* Chains of the units of rounded_model.h: see rounded.c. */
struct tf_rounded_kernels {
    tf_mma_chains *chains; /* takes notes instead of exponents */
    /* Replace packed elements by the values that the unit reads, and write notes for the
     * loops: those of a set of rows, or of a panel, begin where its exponents would. */
    void (*read_rows)(const struct tf_rounded_model *model, float *a, size_t rows,
                      size_t depth, uint32_t *notes);
    void (*read_columns)(const struct tf_rounded_model *model, float *b, size_t columns,
                         size_t depth, uint32_t *notes);
};

/* Chains of float64 fused multiply-adds: see fma_chains.c. */
enum {
    TF_FMA_MC = 192, /* rows of A packed at a time */
    TF_FMA_TILE_M = 6 * TF_FMA_MC, /* rows of a tile of C */
    TF_FMA_NC = 512, /* columns of B packed at a time, and columns of a tile of C */
    TF_FMA_KC = 192, /* k packed at a time */
    TF_FMA_LDC = TF_FMA_NC + 8, /* distance of rows of sums: not a power of two */
};

/* Whether a chain continues from the accumulators, or starts from zero and is added to them
 * or written. */
enum tf_chain_start { TF_CHAIN_CONTINUES, TF_CHAIN_IS_ADDED, TF_CHAIN_IS_WRITTEN };

struct tf_fma_kernels {
    size_t rows, columns; /* of a micro-tile, and so of panels of A and B */
    int beats_blas;       /* whether products take less time than usual BLAS libraries' */
    /* Adds products to the accumulators c of a micro-tile, whose rows are `ldc` apart. Only
     * `rows` of its rows are used, or all if `rows` is larger. */
    void (*chains)(const double *a, const double *b, size_t depth, size_t rows, double *c,
                   size_t ldc, enum tf_chain_start start);
    /* Pack `count` lines of float32 (if `is_float`) or float64 along k into panels, k after
     * k. Lines are `stride` bytes apart, and the elements of a line `along` bytes. Zeros
     * fill the last panel. */
    void (*pack_rows)(const char *lines, ptrdiff_t stride, ptrdiff_t along, size_t count,
                      size_t depth, double *out, int is_float);
    void (*pack_columns)(const char *lines, ptrdiff_t stride, ptrdiff_t along,
                         size_t count, size_t depth, double *out, int is_float);
};

/* Chains of instructions whose operands have scales: see scaled_mma.c. */
enum {
    TF_SCALED_K = 256, /* k multiplied at a time: whole instructions */
    TF_SCALED_TERMS = TF_SCALED_K / 16, /* most scales of a line of TF_SCALED_K */
    TF_SCALED_ROWS = 516 /* rows of A packed at a time: whole sets of a kernel's rows */
};

/* Packed lines along k, in sets of `width` lines side by side. Rows of A have a width of 1,
 * and a panel of B is one set. Zeros fill each line up to whole instructions. */
struct tf_scaled_lines_packed {
    size_t width;
    /* TF_SCALED_K elements per line. With groups of 1, `singles` has their values, and the
     * integers are their exponents (TF_MMA_ZERO for zero). With other groups there are only
     * integers, which are twice the values. */
    float *singles;
    int16_t *integers; /* only for columns of B */
    uint32_t *twice;   /* only for rows of A: each of the integers twice in a word */
    /* TF_SCALED_TERMS scales per line: one per group, or one per block with groups of 1.
     * `exponents` has TF_MMA_ZERO for zero, `factors` half the scale's value. Bit j of
     * `nonzero` says that element j of the group is not zero. */
    int32_t *exponents;
    double *factors;
    int32_t *nonzero;
    uint8_t *codes;   /* of the scales, one per block */
    uint8_t *special; /* per instruction: whether elements are Inf or NaN, or a scale NaN */
};

/* Returns where the i-th of `length` entries of a line is stored. */
static inline size_t tf_scaled_place(size_t width, size_t line, size_t i, size_t length)
{
    return line / width * width * length + i * width + line % width;
}

struct tf_scaled_mma_kernels {
    size_t rows, columns; /* rows of A multiplied at once, columns of a panel of B */
    /* Adds the products of k elements to the accumulators c, `rows` x `columns`. */
    void (*chains)(const struct tf_scaled_model *model,
                   const struct tf_scaled_lines_packed *a, size_t rows,
                   const struct tf_scaled_lines_packed *b, size_t columns, size_t k,
                   float *c, size_t ldc);
    /* Computes sums = fma(scale * scales[i], block, sums) for n sums. The product of the
     * scales is rounded, and a NaN is the tensor core's. */
    void (*promote)(const float *block, float scale, const float *scales, float *sums,
                    size_t n);
};

#endif
