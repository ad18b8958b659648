/* A product of matrices and its plan, which plan.c makes and other files carry out. */
#ifndef TF32DTYPE_MATMUL_PRODUCT_H
#define TF32DTYPE_MATMUL_PRODUCT_H

#include "matmul/tile_path.h"
#include "matmul/tiles.h"

/* `count` products C = alpha A @ B + beta C of m x k and k x n matrices. */
struct tf_product {
    const struct tf_precision *precision;
    struct tf_matrix a, b, c;
    ptrdiff_t m, n, k, count;
    float alpha, beta;
    float greatest[2]; /* largest magnitudes if A and B belong to larger matrices, or 0 */
};

enum tf_way {
    TF_NOTHING,
    TF_SHORT_DOTS,
    TF_SMALL_MATRICES,
    /* The ways below compute tiles. */
    TF_OWN_PATH,
    TF_ZEROS,
    TF_DOT,
    TF_DOT_OF_COPIES,
    TF_GEMV_ALONG_K,
    TF_GEMV_ACROSS_K,
    TF_MACRO_KERNEL
};

struct tf_plan_of_product {
    /* Transposed if `swapped`, since tiles of C are stored row by row. */
    struct tf_product product;
    int swapped;
    enum tf_way way; /* of the whole product, or of whole tiles */
    /* Rows of A and columns of B of the first matrices. */
    struct tf_operand a, b;
    /* The fastest packing for the operands, and the packing that is exact for all
     * numbers. */
    struct tf_packed_way fastest, singles;
    struct tf_split_schedule schedules[2]; /* for packings that do not use tf_one_term */
    /* The members below are set only if there are tiles. */
    struct tf_tiles tiles;
    float *scales; /* of rows of A and columns of B, matrix by matrix; or NULL */
};

#endif
