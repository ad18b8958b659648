/* The interface of the preloaded library for tf32dtype, in a Python program that was
 * started with the library and imports tf32dtype. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_PRELOAD_PRELOAD_H
#define TF32DTYPE_PROGRAMS_BLAS_PRELOAD_PRELOAD_H

#include "programs/blas/counts.h"
#include "programs/blas/engine.h"

typedef void tf32dtype_total_fn(struct tf_blas_counts *total);

/* Ends catching here, because tf32dtype catches the calls from now on. `total` returns the
 * counts of tf32dtype; the line at the end of the process reports the counts of both. */
__attribute__((visibility("default"))) void
tf32dtype_preload_end(tf32dtype_total_fn *total);

#endif
