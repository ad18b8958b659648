/* Scales of operands that are rounded to a narrow format. */
#ifndef TF32DTYPE_MATMUL_OPERAND_SCALES_H
#define TF32DTYPE_MATMUL_OPERAND_SCALES_H

#include "matmul/operand.h"
#include "runtime/stops.h"

/* Writes the scales of `count` lines of k numbers: for each line its `own`, or the same for
 * all. A scale is the largest finite magnitude divided by the format's, rounded to float32,
 * and at least 2^-126. It is 1 if all finite numbers are 0 or numbers are not rounded. If
 * all lines have the same scale, `whole` is the largest magnitude of a matrix to which the
 * lines belong, or 0. Runs in the thread that made the call; once `watch` is stopped, the
 * scales do not count. */
void tf_find_scales(struct tf_operand x, ptrdiff_t count, ptrdiff_t k, int own,
                    float whole, float *scales, struct tf_watch *watch);

#endif
