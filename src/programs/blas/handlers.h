/* What becomes of caught calls: the handlers of stubs, and what each needs to know. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_HANDLERS_H
#define TF32DTYPE_PROGRAMS_BLAS_HANDLERS_H

#include "programs/blas/engine.h"
#include "programs/blas/entries.h"
#include "programs/hooks/hooks.h"

/* What a stub before a function of BLAS leads to. */
struct tf_blas_target {
    struct tf_blas_name name;
    int inner;          /* the caller is LAPACK */
    struct tf_blas_caller *caller;
    struct tf_entry *entry; /* of a function that is called without a slot; or NULL */
    int leads_to_entry;     /* the original is such a function */
};

/* Of products; facts are a struct tf_blas_target. That of an entry serves for ever, also
 * while nobody catches calls. */
int tf_handle_product(struct tf_stub *stub, struct tf_call *call);
int tf_handle_entry(struct tf_stub *stub, struct tf_call *call);

/* Of what is only counted; facts are a struct tf_named_count. The second leaves out calls
 * that have BLAS make a product. */
int tf_handle_named(struct tf_stub *stub, struct tf_call *call);
int tf_handle_without_blas(struct tf_stub *stub, struct tf_call *call);

#endif
