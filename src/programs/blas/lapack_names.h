/* Recognizes the names of routines, of LAPACK and BLAS, whose arithmetic no precision
 * reaches. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_LAPACK_NAMES_H
#define TF32DTYPE_PROGRAMS_BLAS_LAPACK_NAMES_H

#include <stddef.h>

/* Reads a symbol, in Fortran's form ("scipy_dgesdd_64_") or BLAS's C form ("cblas_dtrsm").
 * Returns an enum tf_named_kind, and writes the plain name ("dgesdd") of less than `room`
 * characters; or returns -1. LAPACK's names are those of its drivers, and of the routines
 * that do their arithmetic. */
int tf_lapack_read_name(const char *symbol, char *plain, size_t room);

#endif
