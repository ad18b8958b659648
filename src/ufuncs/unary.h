/* Unary operations from one format to itself: a table of all results. */
#ifndef TF32DTYPE_UFUNCS_UNARY_H
#define TF32DTYPE_UFUNCS_UNARY_H

#include <stddef.h>

#include "formats/formats.h"

/* Returns NumPy's name of an operation, by its index; NULL past the end. */
const char *tf_unary_name(int op);

enum { TF_UNARY_MAX = 48 };

/* Computes n results. Returns -1 if there is no memory for the table. */
int tf_unary(int format, int op, char *const data[2], const ptrdiff_t strides[2],
             ptrdiff_t n);

#endif
