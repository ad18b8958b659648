/* Tiles of one row: a vector times a matrix, GEMV. */
#ifndef TF32DTYPE_MATMUL_GEMV_H
#define TF32DTYPE_MATMUL_GEMV_H

#include "matmul/tile_path.h"

/* Whether rows of A are one that is not split. */
int tf_is_gemv(struct tf_operand a, ptrdiff_t rows);

/* For such tiles, of TF_GEMV_N columns at most. */
extern const struct tf_tile_path tf_gemv_path;

#endif
