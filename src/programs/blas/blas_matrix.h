/* An operand of BLAS in full: what is not stored, or not read, of some. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_MATRIX_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_MATRIX_H

#include "programs/blas/blas_call.h"

ptrdiff_t tf_blas_item_size(char type);

struct tf_blas_matrix tf_blas_transposed(struct tf_blas_matrix x);

/* Room for so many items of so many bytes, for tf_room_free; NULL if memory is short. */
void *tf_blas_room(ptrdiff_t rows, ptrdiff_t columns, size_t size);

/* Copies `count` rows of an operand with all their elements, as they are, row after row, for
 * tf_room_free. NULL if memory is short. What is conjugated stays to be conjugated. */
char *tf_blas_copy_rows(const struct tf_blas_matrix *x, char type, ptrdiff_t first,
                        ptrdiff_t count);

#endif
