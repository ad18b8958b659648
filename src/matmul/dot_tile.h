/* Tiles of one element: the product of two lines in memory, or of their converted
 * copies. */
#ifndef TF32DTYPE_MATMUL_DOT_TILE_H
#define TF32DTYPE_MATMUL_DOT_TILE_H

#include "matmul/tile_path.h"

extern const struct tf_tile_path tf_dot_path, tf_dot_of_copies_path;

#endif
