/* Reads the arguments of a call, one after the other, in C's or Fortran's interface. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_CALL_READER_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_CALL_READER_H

#include "programs/blas/blas_matrix.h"

/* How far a call has been read. */
struct tf_blas_reader {
    const struct tf_blas_name *name;
    const struct tf_blas_arguments *arguments;
    int words, floats; /* number of integers and pointers, and of reals, read so far */
    int row_major;
    int wrong;         /* an argument was read that BLAS refuses */
};

/* An option: one of `letters` in Fortran; in C a number from `first` on, in their order. */
struct tf_blas_option {
    int first;
    const char *letters;
    const char *fortran; /* the letters that Fortran's interface knows */
};
extern const struct tf_blas_option tf_blas_trans, tf_blas_uplo, tf_blas_diag,
    tf_blas_side;

/* A matrix or a vector as arguments give it: its data, and the distance of columns (of rows
 * in row-major order) or of elements of a vector, in elements. */
struct tf_blas_stored {
    char *data;
    ptrdiff_t ld;
};

/* Returns the letter of an option, given as C's number, or as Fortran's letter of either
 * case. Returns 0 and sets reader->wrong if it is not valid. */
char tf_blas_option_of(struct tf_blas_reader *reader, const struct tf_blas_option *option,
                       int32_t number);

/* Reads the order of rows, the first argument of C's interface. */
void tf_blas_read_order(struct tf_blas_reader *reader);
char tf_blas_read_option(struct tf_blas_reader *reader,
                         const struct tf_blas_option *option);
ptrdiff_t tf_blas_read_integer(struct tf_blas_reader *reader);
void *tf_blas_read_pointer(struct tf_blas_reader *reader);
struct tf_blas_stored tf_blas_read_stored(struct tf_blas_reader *reader);

/* Reads alpha or beta, which is `real` also in some complex routines. */
void tf_blas_read_scalar(struct tf_blas_reader *reader, int real, double out[2]);

/* Read element `index` of an array: an integer of the call's width, or a scalar of a
 * type. */
ptrdiff_t tf_blas_integer_at(const struct tf_blas_reader *reader, const void *array,
                             ptrdiff_t index);
void tf_blas_scalar_at(char type, const void *array, ptrdiff_t index, double out[2]);

/* Returns a matrix as it is stored, rows x columns. Sets reader->wrong if its columns (rows
 * in row-major order) would overlap. */
struct tf_blas_matrix tf_blas_matrix_of(struct tf_blas_reader *reader,
                                        struct tf_blas_stored stored, ptrdiff_t rows,
                                        ptrdiff_t columns);

/* Returns a vector as a column. With a negative increment, its first element is the last in
 * memory. */
struct tf_blas_matrix tf_blas_vector_of(struct tf_blas_reader *reader,
                                        struct tf_blas_stored stored, ptrdiff_t n);

/* Returns a matrix of which only one triangle is read. */
struct tf_blas_matrix tf_blas_triangle_of(struct tf_blas_reader *reader,
                                          struct tf_blas_stored stored, ptrdiff_t n,
                                          int shape, char uplo);

/* Returns op(x). */
struct tf_blas_matrix tf_blas_under(struct tf_blas_matrix x, char trans,
                                    const struct tf_blas_reader *reader);

/* Returns op(x), m x n, of a stored matrix, which is n x m if op transposes. */
struct tf_blas_matrix tf_blas_operand_of(struct tf_blas_reader *reader,
                                         struct tf_blas_stored stored, char trans,
                                         ptrdiff_t m, ptrdiff_t n);

#endif
