/* Scales of operands that are rounded to a narrow format. */
#ifndef TF32DTYPE_MATMUL_OPERAND_SCALES_H
#define TF32DTYPE_MATMUL_OPERAND_SCALES_H

#include "matmul/operand.h"
#include "runtime/stops.h"

/* Of `count` lines of k numbers, each its own scale or all the same one: the greatest
 * finite magnitude over the format's, rounded to float32; 2^-126 if it is less, 1 if
 * there is none, and of numbers that are not rounded. Where the scale is the same, `whole`
 * is the greatest magnitude of a matrix of which the lines are a part, or 0. For
 * the thread that made the call: nothing counts once `watch` says that it is stopped. */
void tf_find_scales(struct tf_operand x, ptrdiff_t count, ptrdiff_t k, int own,
                    float whole, float *scales, struct tf_watch *watch);

#endif
