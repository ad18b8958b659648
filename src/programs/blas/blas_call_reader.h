/* The arguments of a call, one after the other, in either interface. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_CALL_READER_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_CALL_READER_H

#include "programs/blas/blas_matrix.h"

/* How far a call has been read. */
struct tf_blas_reader {
    const struct tf_blas_name *name;
    const struct tf_blas_arguments *arguments;
    int words, floats; /* that were read */
    int row_major;
    int wrong;         /* something was read that BLAS refuses */
};

/* Options: a letter in Fortran; in C a number, from `first` on in this order. */
struct tf_blas_option {
    int first;
    const char *letters;
    const char *fortran; /* those that Fortran's interface knows */
};
extern const struct tf_blas_option tf_blas_trans, tf_blas_uplo, tf_blas_diag,
    tf_blas_side;

/* A matrix or a vector as it is given: its first element, and how far apart columns (or
 * rows) or elements are. */
struct tf_blas_stored {
    char *data;
    ptrdiff_t ld;
};

/* The letter of an option's number, or small or capital letter; 0: wrong. */
char tf_blas_option_of(struct tf_blas_reader *reader, const struct tf_blas_option *option,
                       int32_t number);

/* Reads the first argument of C's interface. */
void tf_blas_read_order(struct tf_blas_reader *reader);
char tf_blas_read_option(struct tf_blas_reader *reader,
                         const struct tf_blas_option *option);
ptrdiff_t tf_blas_read_integer(struct tf_blas_reader *reader);
void *tf_blas_read_pointer(struct tf_blas_reader *reader);
struct tf_blas_stored tf_blas_read_stored(struct tf_blas_reader *reader);

/* alpha or beta; of complex routines, some are `real` nevertheless. */
void tf_blas_read_scalar(struct tf_blas_reader *reader, int real, double out[2]);

/* Element `index` of an array of integers, of the width of the call's; of numbers of a
 * type. */
ptrdiff_t tf_blas_integer_at(const struct tf_blas_reader *reader, const void *array,
                             ptrdiff_t index);
void tf_blas_scalar_at(char type, const void *array, ptrdiff_t index, double out[2]);

/* A matrix as it is stored, rows x columns; refused if columns (rows, if those lie one
 * after the other) would overlap. */
struct tf_blas_matrix tf_blas_matrix_of(struct tf_blas_reader *reader,
                                        struct tf_blas_stored stored, ptrdiff_t rows,
                                        ptrdiff_t columns);

/* A column. Of a negative increment the first element is the last one in memory. */
struct tf_blas_matrix tf_blas_vector_of(struct tf_blas_reader *reader,
                                        struct tf_blas_stored stored, ptrdiff_t n);

/* A matrix of which one triangle is read. */
struct tf_blas_matrix tf_blas_triangle_of(struct tf_blas_reader *reader,
                                          struct tf_blas_stored stored, ptrdiff_t n,
                                          int shape, char uplo);

/* op(x). */
struct tf_blas_matrix tf_blas_under(struct tf_blas_matrix x, char trans,
                                    const struct tf_blas_reader *reader);

/* op(x), m x n; what is stored is n x m if op transposes. */
struct tf_blas_matrix tf_blas_operand_of(struct tf_blas_reader *reader,
                                         struct tf_blas_stored stored, char trans,
                                         ptrdiff_t m, ptrdiff_t n);

#endif
