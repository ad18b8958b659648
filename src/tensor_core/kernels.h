/* Kernels of a tensor core's chains, of plain and of block-scaled operands. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_H

#include "matmul/kernels.h"
#include "tensor_core/mma_model.h"
#include "tensor_core/rounded_model.h"
#include "tensor_core/scaled_mma_model.h"

/* Chains of a tensor core's MMA groups. */
enum {
    TF_MMA_DEPTH = 64,      /* k that is multiplied at a time: at least an MMA group */
    TF_MMA_ZERO = -8000,    /* the exponent of zero, below that of any product */
    TF_MMA_SPECIAL = 16000, /* of Inf and NaN */
};

struct tf_mma_plan {
    struct tf_mma_model model;
    struct tf_rounded_model rounded; /* instead, if its depth is not 0 */
    struct tf_kernel pairs; /* an instruction for chains of pairs, or none */
    int *are_multiples; /* whether all accumulators are known to be so, of 2^-126 */
    const struct tf_split_product *terms; /* which parts of A and B are multiplied */
    size_t count;
    /* k whose MMA groups start from zero, and whose sum is added to the accumulator in its
     * own format: at most TF_MMA_DEPTH. 0: the accumulator goes through all groups. */
    size_t stretch;
    /* If not 0, what is multiplied by 2^scales_inside before a term is not rounded. */
    int scales_inside;
    uint32_t mask; /* bits that a float32 result has, or a float16 one at first */
    float zero;    /* added to a float16 result: the zero that a negative one becomes */
};

/* The least exponent of a format, and what stands for that of zero. */
struct tf_mma_exponents {
    int32_t least, of_zero;
};

/* Goes on with the accumulators c: rows, a multiple of TF_MR,
 * of A, `lda` words of one number apart, times a panel of `depth` rows of B: TF_MMA_DEPTH
 * at most, or TF_KC of units that round otherwise. */
typedef void tf_mma_chains(const struct tf_mma_plan *plan, const float *a,
                           const uint32_t *a_exponents, size_t lda, const float *b,
                           const uint32_t *b_exponents, size_t depth, size_t rows,
                           float *c, size_t ldc);

struct tf_mma_kernels {
    size_t columns; /* of a panel of B, TF_NR_MAX at most */
    tf_mma_chains *chains;
    /* Of n numbers of rows, biased, each twice in a word; of panels, n / columns rows of
     * them, two columns to a word. */
    void (*exponents_of_rows)(const float *in, size_t n,
                              struct tf_mma_exponents exponents, uint32_t *out);
    void (*exponents_of_columns)(const float *in, size_t n,
                                 struct tf_mma_exponents exponents, uint32_t *out);
};

/* Chains of units that round otherwise: see rounded.c. */
struct tf_rounded_kernels {
    tf_mma_chains *chains; /* notes are in place of exponents */
    /* Makes of packed rows, of panels, what the unit reads; and notes what the loops have
     * to know of them: rows and panels have theirs where exponents begin. */
    void (*read_rows)(const struct tf_rounded_model *model, float *a, size_t rows,
                      size_t depth, uint32_t *notes);
    void (*read_columns)(const struct tf_rounded_model *model, float *b, size_t columns,
                         size_t depth, uint32_t *notes);
};

/* Chains of float64 fused multiply-adds: see fma_chains.c. */
enum {
    TF_FMA_MC = 192, /* rows of A packed at a time, and of a tile of C */
    TF_FMA_NC = 512, /* columns of B, the same */
    TF_FMA_KC = 192, /* k */
    TF_FMA_LDC = TF_FMA_NC + 8, /* rows of sums lie apart by no power of two */
};

struct tf_fma_kernels {
    size_t rows, columns; /* of a micro-tile: those of a panel of A, and of B */
    /* Goes on with the accumulators c, of a micro-tile, `ldc` from row to row. `rows` of
     * them count, or all if there are more. */
    void (*chains)(const double *a, const double *b, size_t depth, size_t rows, double *c,
                   size_t ldc);
    /* `count` lines along k, `stride` bytes from line to line and `along` from k to k, to
     * panels, k after k. The last one is filled up with zeros. */
    void (*pack_rows)(const char *lines, ptrdiff_t stride, ptrdiff_t along, size_t count,
                      size_t depth, double *out);
    void (*pack_columns)(const char *lines, ptrdiff_t stride, ptrdiff_t along,
                         size_t count, size_t depth, double *out);
};

/* Chains of instructions whose operands have scales: see scaled_mma.c. */
enum {
    TF_SCALED_K = 256, /* that is multiplied at a time: whole instructions */
    TF_SCALED_TERMS = TF_SCALED_K / 16, /* scales along it, at most */
    TF_SCALED_ROWS = 516 /* of A that are packed at a time: whole sets of a kernel's */
};

/* What of a line along k the kernels see: `width` lines side by side, set after set; so
 * rows of A are one by one, and a panel of B is one set. Each is filled up to whole
 * instructions with zeros. */
struct tf_scaled_lines_packed {
    size_t width;
    /* Of elements, TF_SCALED_K a line. Group 1: numbers, and their exponents, that of
     * zero TF_MMA_ZERO; else twice the numbers alone. */
    float *singles;
    int16_t *integers; /* of columns of B; */
    uint32_t *twice;   /* of rows of A each twice in a word, and no integers */
    /* Of scales, TF_SCALED_TERMS a line: one for each group, or of group 1 for each
     * block. The exponent, TF_MMA_ZERO of zero; the value over 2; which of the group's
     * elements are not zero, a bit each. */
    int32_t *exponents;
    double *factors;
    int32_t *nonzero;
    uint8_t *codes;   /* of the scales of each block */
    uint8_t *special; /* of each instruction: an element is Inf or NaN, or a scale NaN */
};

/* Where the i-th of `length` things of a line lies. */
static inline size_t tf_scaled_place(size_t width, size_t line, size_t i, size_t length)
{
    return line / width * width * length + i * width + line % width;
}

struct tf_scaled_mma_kernels {
    size_t rows, columns; /* which rows of A are done at once; of a panel of B */
    /* Goes on with the accumulators c of rows and `columns` columns, over k elements. */
    void (*chains)(const struct tf_scaled_model *model,
                   const struct tf_scaled_lines_packed *a, size_t rows,
                   const struct tf_scaled_lines_packed *b, size_t columns, size_t k,
                   float *c, size_t ldc);
    /* sums = fma(scale * scales, block, sums), the first product rounded; NaN is the
     * tensor core's. */
    void (*promote)(const float *block, float scale, const float *scales, float *sums,
                    size_t n);
};

#endif
