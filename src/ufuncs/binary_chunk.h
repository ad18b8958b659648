/* Binary operations on a chunk of numbers. */
#ifndef TF32DTYPE_UFUNCS_BINARY_CHUNK_H
#define TF32DTYPE_UFUNCS_BINARY_CHUNK_H

#include <stddef.h>

#include "ufuncs/kernels.h"
#include "ufuncs/pair_tables.h"

/* Writes the items of n results, at most TF_CHUNK, each rounded once, and returns the flags
 * that they raise. Operands are numbers of the format as float32. */
unsigned tf_binary_chunk(int format, enum tf_binary_op op, const float *a,
                         const float *b, void *out, size_t n);

/* Returns the table of all pairs, or NULL: see tf_pair_table. */
const struct tf_pair_table *tf_binary_table(int format, enum tf_binary_op op,
                                            ptrdiff_t n);

#endif
