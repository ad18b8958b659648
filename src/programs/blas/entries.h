/* Functions of BLAS that are called without a slot: a LAPACK calls its own BLAS by
 * addresses that were fixed when it was linked. A jump (hooks/jumps.h) replaces their first
 * instructions, so that the original is lost. The same library's C interface, which has
 * code of its own, does its work: "scipy_cblas_dgemm" for "scipy_dgemm_". */
#ifndef TF32DTYPE_PROGRAMS_BLAS_ENTRIES_H
#define TF32DTYPE_PROGRAMS_BLAS_ENTRIES_H

#include "programs/blas/blas_call.h"
#include "programs/hooks/stubs.h"

/* A function of Fortran's interface, and its twin: C's function that does its work. */
struct tf_entry {
    void *address;
    void *twin;
    struct tf_blas_name name;
};

/* Calls `each` for each entry of the library that contains `function`, if the library is a
 * LAPACK with a BLAS. */
void tf_find_entries(const void *function,
                     void (*each)(const struct tf_entry *entry, const char *library));

/* Makes a call by the twin, and writes its result to `call`. */
void tf_call_twin(const struct tf_entry *entry, struct tf_call *call);

#endif
