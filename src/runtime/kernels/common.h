/* What kernel files share: the names of this build, and small inline functions. */
#ifndef TF32DTYPE_RUNTIME_KERNELS_COMMON_H
#define TF32DTYPE_RUNTIME_KERNELS_COMMON_H

#include <string.h>

#include "runtime/inline.h"
#include "runtime/kernel_table.h"

/* Stands before loops over what must stay in registers, such as accumulators. With the
 * address sanitizer they do not, and what it adds takes minutes to unroll. */
#if defined(__SANITIZE_ADDRESS__)
#define UNROLLED
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* -0 below +0 (IEEE 754-2019 maximum, minimum): a sum of two zeros has the sign
 * wanted, -0 + -0 is -0 and any other +0. A comparison with NaN is false, which
 * leaves x. */
#define TF_ZEROS(x, y) (((x) == 0) & ((y) == 0))
#define TF_GREATER_OF(x, y) (TF_ZEROS(x, y) ? (x) + (y) : (y) > (x) ? (y) : (x))
#define TF_LESSER_OF(x, y) (TF_ZEROS(x, y) ? -(-(x) - (y)) : (y) < (x) ? (y) : (x))

/* Lists the indices, from `first` on, of the marks that are not 0, and returns how many.
 * Few are: 8 are read at a time, for which there is room after the last one. */
TF_INLINE size_t tf_list_marked(uint8_t *marks, size_t n, size_t first, uint16_t *which)
{
    size_t count = 0;
    memset(marks + n, 0, 8);
    for (size_t start = 0; start < n; start += 8) {
        uint64_t eight;
        memcpy(&eight, marks + start, 8);
        if (eight) {
            for (size_t i = start; i < start + 8; i++) {
                which[count] = (uint16_t)(first + i);
                count += marks[i] != 0;
            }
        }
    }
    return count;
}

#endif
