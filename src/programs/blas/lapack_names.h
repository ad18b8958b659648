/* Names of the routines, of LAPACK and of BLAS, whose arithmetic no precision reaches. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_LAPACK_NAMES_H
#define TF32DTYPE_PROGRAMS_BLAS_LAPACK_NAMES_H

#include <stddef.h>

/* Reads a symbol, in Fortran's form ("scipy_dgesdd_64_") or BLAS's C form
 * ("cblas_dtrsm"). Returns an enum tf_named_kind, and the plain name ("dgesdd"); or -1
 * for all others. LAPACK's are those that do the arithmetic of its drivers. */
int tf_lapack_read_name(const char *symbol, char *plain, size_t room);

#endif
