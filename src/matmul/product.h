/* A product of matrices, and the plan for it: what plan.c decides and other files do. */
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
    float greatest[2]; /* of the matrices that A and B are parts of, or 0 */
};

enum tf_way {
    TF_NOTHING,
    TF_SHORT_DOTS,
    TF_SMALL_MATRICES,
    /* The others are ways to compute a tile. */
    TF_OWN_PATH,
    TF_ZEROS,
    TF_DOT,
    TF_DOT_OF_COPIES,
    TF_GEMV_ALONG_K,
    TF_GEMV_ACROSS_K,
    TF_MACRO_KERNEL
};

struct tf_plan_of_product {
    /* As it is computed: transposed if `swapped`, since tiles of C are stored row by row. */
    struct tf_product product;
    int swapped;
    enum tf_way way; /* of whole tiles, if there are tiles */
    /* Rows of A and columns of B of the first matrices. */
    struct tf_operand a, b;
    /* The fastest way for the operands, and the one that is exact for all numbers. */
    struct tf_packed_way fastest, singles;
    struct tf_split_schedule schedules[2]; /* to which they point, if it is not one term */
    /* Only if there are tiles: */
    struct tf_tiles tiles;
    float *scales; /* of rows of A and columns of B, matrix after matrix; or NULL */
};

#endif
