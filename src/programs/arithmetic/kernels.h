/* Kernels that compare a chunk of results with their reference values. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_KERNELS_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_KERNELS_H

#include "programs/arithmetic/figures.h"
#include "runtime/kernel_table.h"

struct tf_arithmetic_kernels {
    /* Add the figures of n operands of a type, 'f' or 'd', before and after rounding. */
    void (*observe_operands)(const struct tf_grid *grid, char type, const void *before,
                             const void *after, size_t n, struct tf_figures *figures);
    void (*observe)(const struct tf_grid *grid, const struct tf_observed *seen,
                    struct tf_figures *figures);
};

#endif
