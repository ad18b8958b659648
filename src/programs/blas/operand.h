/* Recognizes matrix operands by their content, wherever their elements are stored. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_OPERAND_H
#define TF32DTYPE_PROGRAMS_BLAS_OPERAND_H

#include "programs/blas/blas_call.h"

/* Returns a digest of the shape and of a few elements, or 0 for a vector and for a matrix
 * that is not stored in full. The digest does not depend on the layout, and the transposed
 * matrix has the same digest. */
uint64_t tf_operand_digest(const struct tf_blas_matrix *x, char type);

/* The digests of both operands of a product. If only one operand has a digest, as in a
 * product with a vector, it comes first: it may be on either side of the call. */
struct tf_operands {
    uint64_t digests[2];
    const struct tf_blas_matrix *matrices[2];
};
struct tf_operands tf_operands_of(const struct tf_blas_product *product);

/* A product, or a call, which represents its first product. */
struct tf_operands_seen {
    const struct tf_blas_product *product; /* or NULL */
    const struct tf_blas_name *name;
    const struct tf_blas_arguments *arguments;
};

/* Copies the product to `product`, and returns its operands, with digests 0 if the call has
 * no product. */
struct tf_operands tf_operands_seen(const struct tf_operands_seen *seen,
                                    struct tf_blas_product *product);

#endif
