/* Full operands of BLAS, with the elements that a shape does not store or read. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_MATRIX_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_MATRIX_H

#include "programs/blas/blas_call.h"

ptrdiff_t tf_blas_item_size(char type);

struct tf_blas_matrix tf_blas_transposed(struct tf_blas_matrix x);

/* Returns memory for rows x columns items of `size` bytes, for tf_room_free; NULL if memory
 * is short. */
void *tf_blas_room(ptrdiff_t rows, ptrdiff_t columns, size_t size);

/* Returns a contiguous copy of `count` full rows of an operand, for tf_room_free; NULL if
 * memory is short. Does not apply x->conjugate. */
char *tf_blas_copy_rows(const struct tf_blas_matrix *x, char type, ptrdiff_t first,
                        ptrdiff_t count);

#endif
