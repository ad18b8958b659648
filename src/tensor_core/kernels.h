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
 * of A, `lda` words of one number apart, times a panel of `depth` rows of B. */
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
     * to know of them, in words that lie as those of exponents do. */
    void (*read_rows)(const struct tf_rounded_model *model, float *a, size_t rows,
                      size_t depth, uint32_t *notes);
    void (*read_columns)(const struct tf_rounded_model *model, float *b, size_t columns,
                         size_t depth, uint32_t *notes);
};

/* Chains of instructions whose operands have scales: see scaled_mma.c. */
enum {
    TF_SCALED_K = 512,     /* that is multiplied at a time: whole instructions */
    TF_SCALED_LONGEST = 64 /* instruction */
};

/* Elements of a row of A or a column of B, filled up to whole instructions with zeros, as
 * the kernels add them, by the group of the model's instruction. */
struct tf_scaled_line {
    union {
        struct { /* group 1: products are aligned one by one */
            int32_t significands[TF_SCALED_K]; /* signed, TF_SCALED_BITS fraction bits */
            int32_t exponents[TF_SCALED_K];    /* with those of the elements' scales */
        } single;
        struct { /* else: a group's products are added exactly, then its sum is aligned */
            int32_t twice[TF_SCALED_K]; /* the elements */
            int32_t exponents[TF_SCALED_K], factors[TF_SCALED_K]; /* the groups' scales */
        } grouped;
    } as;
    /* And as tf_scaled_instruction has them. */
    uint32_t bits[TF_SCALED_K];
    uint8_t scales[TF_SCALED_K];
    /* Of each instruction: whether an element is Inf or NaN, or a scale is NaN. */
    uint8_t special[TF_SCALED_K];
};

struct tf_scaled_mma_kernels {
    /* Goes on with the accumulators c of one row, and columns, over k elements. */
    void (*chains)(const struct tf_scaled_model *model, const struct tf_scaled_line *row,
                   const struct tf_scaled_line *columns, size_t count, size_t k,
                   float *c);
    /* sums = fma(scale * scales, block, sums), the first product rounded; NaN is the
     * tensor core's. */
    void (*promote)(const float *block, float scale, const float *scales, float *sums,
                    size_t n);
};

#endif
