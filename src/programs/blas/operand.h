/* A matrix operand by its content: the same in each call, wherever its numbers are stored. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_OPERAND_H
#define TF32DTYPE_PROGRAMS_BLAS_OPERAND_H

#include "programs/blas/blas_call.h"

/* Returns a digest of the shape and of a few elements. It does not depend on the layout, and
 * a transposed matrix has the same. 0: a vector, or a matrix that is not stored in full. */
uint64_t tf_operand_digest(const struct tf_blas_matrix *x, char type);

/* The digests of both operands of a product. A single matrix, that of a product with a
 * vector, comes first: BLAS may be given it on either side. */
struct tf_operands {
    uint64_t digests[2];
    const struct tf_blas_matrix *matrices[2];
};
struct tf_operands tf_operands_of(const struct tf_blas_product *product);

/* A product, or a call whose first product is meant. */
struct tf_operands_seen {
    const struct tf_blas_product *product; /* or NULL */
    const struct tf_blas_name *name;
    const struct tf_blas_arguments *arguments;
};

/* Copies what is known of its operands to `product`, and finds them; no digests where there
 * are none. */
struct tf_operands tf_operands_seen(const struct tf_operands_seen *seen,
                                    struct tf_blas_product *product);

#endif
