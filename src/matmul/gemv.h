/* Tiles of one row: GEMV, a vector times a matrix. */
#ifndef TF32DTYPE_MATMUL_GEMV_H
#define TF32DTYPE_MATMUL_GEMV_H

#include "matmul/tile_path.h"

/* The paths for tiles of one row, at most TF_GEMV_N columns, and operands that are not
 * split. tf_gemv_along_path needs columns that run along k and have a kernel
 * (tf_dot_kernel_of_lines); tf_gemv_across_path takes any. */
extern const struct tf_tile_path tf_gemv_along_path, tf_gemv_across_path;

#endif
