/* Sums of products whose operands are stored in full. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_MULTIPLY_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_MULTIPLY_H

#include "programs/blas/blas_matrix.h"
#include "matmul/complex.h"

/* Operands in full, of numbers of one type. Either may have been copied, and may have
 * been a triangle then: what its shape says still. */
struct tf_blas_pair {
    char type;
    struct tf_blas_matrix a, b;
    const struct tf_greatest *greatest; /* of parts of matrices that have a scale; or NULL */
};

/* As tf_matmul has it; of complex numbers, the real ones. */
struct tf_matrix tf_blas_plain(const struct tf_blas_matrix *x, char type);

/* B^T and A^T; either conjugated once more if it `conjugates`. */
struct tf_blas_pair tf_blas_transposed_pair(struct tf_blas_pair x, int conjugates);

/* Rows and columns of a product's operands. */
struct tf_blas_pair tf_blas_part_of(struct tf_blas_pair x, ptrdiff_t row, ptrdiff_t rows,
                                    ptrdiff_t column, ptrdiff_t columns);

/* How many real numbers an element is, the bytes of one, and one as it counts: as float32. */
int tf_blas_numbers_of(char type);
ptrdiff_t tf_blas_part_size(char type);
float tf_blas_number_at(const char *place, char type);

/* Raises `greatest` to the greatest finite magnitude of an operand in full: of its numbers,
 * or of the real and the imaginary ones. */
void tf_blas_find_greatest(const struct tf_blas_matrix *x, char type, float greatest[2]);

/* Writes the sums of a pair, whatever its shapes were, to C: of complex numbers
 * tf_matmul_complex's; whose kind is that of their parts. Returns -1, with C untouched, if
 * memory is short. */
int tf_blas_multiply_full(const struct tf_precision *precision, struct tf_blas_pair x,
                          struct tf_matrix c);

#endif
