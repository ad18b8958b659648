/* The lines of an array whose statistics are wanted. */
#ifndef TF32DTYPE_UFUNCS_SUMMED_LINES_H
#define TF32DTYPE_UFUNCS_SUMMED_LINES_H

#include <stddef.h>
#include <stdint.h>

/* An array as repeats x outer x n x inner, in C order, whose first and third axes are
 * reduced. `stride` is the distance between numbers if there is only one line. */
struct tf_summed {
    int format;
    const char *items;
    const uint8_t *mask; /* elements that count, in C order; NULL: all */
    ptrdiff_t stride;
    ptrdiff_t repeats, outer, n, inner;
    int without_nans;
};

enum tf_statistic {
    TF_TOTAL,
    TF_MEAN,
    TF_VARIANCE,
    TF_DEVIATION,
    TF_NORM,
    TF_PRODUCT
};

#endif
