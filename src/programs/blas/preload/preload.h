/* What the library that is preloaded offers to tf32dtype, in a Python program that was
 * started with it and imports tf32dtype. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_PRELOAD_PRELOAD_H
#define TF32DTYPE_PROGRAMS_BLAS_PRELOAD_PRELOAD_H

#include "programs/blas/counts.h"
#include "programs/blas/engine.h"

typedef void tf32dtype_total_fn(struct tf_blas_counts *total);

/* From here on calls are tf32dtype's to catch. `total` says what it has counted: the line
 * at the end of the process tells of both. */
__attribute__((visibility("default"))) void
tf32dtype_preload_end(tf32dtype_total_fn *total);

#endif
