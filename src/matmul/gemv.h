/* Tiles of one row: a vector times a matrix, GEMV. */
#ifndef TF32DTYPE_MATMUL_GEMV_H
#define TF32DTYPE_MATMUL_GEMV_H

#include "matmul/tile_path.h"

/* For tiles of at most TF_GEMV_N columns, of numbers that are not split: columns along
 * which k runs in memory and which have a kernel, or any. */
extern const struct tf_tile_path tf_gemv_along_path, tf_gemv_across_path;

#endif
