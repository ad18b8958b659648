/* Minimum, maximum, counts of pieces. Arguments are not negative: a size_t will do, too. */
#ifndef TF32DTYPE_RUNTIME_SIZES_H
#define TF32DTYPE_RUNTIME_SIZES_H

#include <stddef.h>

#include "runtime/asserts.h"
#include "runtime/inline.h"

TF_INLINE size_t tf_min_size(ptrdiff_t a, ptrdiff_t b) { return (size_t)(a < b ? a : b); }

TF_INLINE size_t tf_max_size(ptrdiff_t a, ptrdiff_t b) { return (size_t)(a > b ? a : b); }

/* Returns the distance between items of a stride. C's labs takes a `long`, which is too
 * short for a stride on some systems. */
TF_INLINE ptrdiff_t tf_distance(ptrdiff_t stride) { return stride < 0 ? -stride : stride; }

/* Returns the number of pieces that cover the whole; the last one may be short. */
TF_INLINE ptrdiff_t tf_ceil_div(ptrdiff_t whole, ptrdiff_t piece)
{
    TF_ASSERT(whole >= 0 && piece > 0);
    return (whole + piece - 1) / piece;
}

/* Returns the size of the pieces that cover the whole, each in full size. */
TF_INLINE size_t tf_round_up(ptrdiff_t whole, ptrdiff_t piece)
{
    return (size_t)(tf_ceil_div(whole, piece) * piece);
}

#endif
