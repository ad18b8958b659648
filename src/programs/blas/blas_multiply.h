/* Sums of products whose operands are stored in full. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_MULTIPLY_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_MULTIPLY_H

#include "programs/blas/blas_matrix.h"
#include "matmul/complex.h"

/* Two operands of one type, stored in full. Each may be a copy of another shape, which its
 * member `shape` still names. */
struct tf_blas_pair {
    char type;
    struct tf_blas_matrix a, b;
    const struct tf_greatest *greatest; /* of whole, scaled matrices; or NULL */
    const struct tf_blas_products *products; /* as in struct tf_blas_product */
};

/* Returns a matrix for tf_matmul: for complex elements, of their real components. */
struct tf_matrix tf_blas_plain(const struct tf_blas_matrix *x, char type);

/* Returns the pair B^T, A^T, with both conjugated once more if `conjugates`. */
struct tf_blas_pair tf_blas_transposed_pair(struct tf_blas_pair x, int conjugates);

/* Returns the `rows` rows of A from `row` on, and the `columns` columns of B from `column`
 * on. */
struct tf_blas_pair tf_blas_part_of(struct tf_blas_pair x, ptrdiff_t row, ptrdiff_t rows,
                                    ptrdiff_t column, ptrdiff_t columns);

/* Return the number of real components of an element, the bytes of a component, and the
 * value of a component as products use it, in float32. */
int tf_blas_numbers_of(char type);
ptrdiff_t tf_blas_part_size(char type);
float tf_blas_number_at(const char *place, char type);

/* Raises `greatest` to the largest finite magnitude of an operand stored in full: of its
 * elements, or of the real components and of the imaginary ones. */
void tf_blas_find_greatest(const struct tf_blas_matrix *x, char type, float greatest[2]);

/* Writes the sums of a pair to C, by tf_matmul, tf_matmul_complex or the pair's products,
 * and ignores its shapes. The kind of a complex C is that of its components. Returns -1, with C unchanged,
 * if memory is short. */
int tf_blas_multiply_full(const struct tf_precision *precision, struct tf_blas_pair x,
                          struct tf_matrix c);

#endif
