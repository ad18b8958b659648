/* The names of this build, and small inline functions that kernel files share. */
#ifndef TF32DTYPE_RUNTIME_KERNELS_COMMON_H
#define TF32DTYPE_RUNTIME_KERNELS_COMMON_H

#include <string.h>

#include "runtime/inline.h"
#include "runtime/kernel_table.h"

/* Unrolls the next loop, over values that must stay in registers, such as accumulators.
 * They do not with the address sanitizer, whose additions take minutes to unroll. */
#if defined(__SANITIZE_ADDRESS__)
#define UNROLLED
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* Maximum and minimum with -0 below +0 (IEEE 754-2019). A sum of two zeros has the sign
 * wanted: -0 + -0 is -0 and any other sum +0. A comparison with NaN is false, which gives
 * x. */
#define TF_ZEROS(x, y) (((x) == 0) & ((y) == 0))
#define TF_GREATER_OF(x, y) (TF_ZEROS(x, y) ? (x) + (y) : (y) > (x) ? (y) : (x))
#define TF_LESSER_OF(x, y) (TF_ZEROS(x, y) ? -(-(x) - (y)) : (y) < (x) ? (y) : (x))

/* Lists the indices, counted from `first`, of marks that are not 0, and returns how many.
 * Few are set: 8 are read at a time, so there must be room for 8 after the last. */
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
