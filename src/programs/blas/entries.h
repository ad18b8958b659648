/* Functions that are called without a slot: inside one library, where a LAPACK calls its
 * BLAS by an address that was fixed when it was linked. Their first instructions are
 * replaced by a jump. What they did before, the same library does by its C interface
 * ("scipy_dgemm_" by "scipy_cblas_dgemm"), which has code of its own. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_ENTRIES_H
#define TF32DTYPE_PROGRAMS_BLAS_ENTRIES_H

#include "programs/blas/blas_call.h"
#include "programs/hooks/stubs.h"

/* A function of Fortran's interface, and the C one that stands for it. */
struct tf_entry {
    void *address;
    void *twin;
    struct tf_blas_name name;
};

/* Gives the entries of the library that a function lies in, if that is a LAPACK with its
 * BLAS: one after the other to `each`. */
void tf_find_entries(const void *function,
                     void (*each)(const struct tf_entry *entry, const char *library));

/* Has an entry lead to another function. Returns -1 if the system does not allow that.
 * No other thread may be calling it meanwhile. */
int tf_redirect_entry(const struct tf_entry *entry, void *to);

/* Makes the call that was brought, by the twin; its result goes into `call`. */
void tf_call_twin(const struct tf_entry *entry, struct tf_call *call);

#endif
