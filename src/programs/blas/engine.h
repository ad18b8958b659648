/* Catches every call of BLAS in the process, counts it, and computes it in a precision if
 * one is set. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_ENGINE_H
#define TF32DTYPE_PROGRAMS_BLAS_ENGINE_H

#include "programs/blas/blas_call.h"
#include "programs/blas/blas_sizes.h"
#include "programs/blas/counts.h"
#include "programs/blas/entries.h"
#include "programs/blas/operand.h"
#include "programs/hooks/hooks.h"
#include "tensor_core/mma_matmul.h"

/* The settings of products. A mode is never changed or freed after it was given to the
 * functions here. */
struct tf_blas_mode {
    struct tf_device device; /* the precision; without a device only its first field */
    int float64, complex64;  /* types besides float32; complex128 needs both */
    int dots;                /* products with one element as their result run in it too */
    int lapack;              /* products that LAPACK makes run in it too */
    ptrdiff_t min_size;      /* products with a smaller k are unchanged */
    const struct tf_blas_products *products; /* these make the sums; NULL: `device` does */
    const void *plan;        /* the plan in which a tf_blas_place_fn looks; or NULL */
    int outer;               /* the mode is meant for tf_blas_set_outer_mode */
};

/* Returns whether this platform has stubs, without which no call is caught. */
int tf_blas_is_available(void);

/* tf_blas_begin catches calls until as many calls of tf_blas_end, also calls of libraries
 * that are opened later. Returns -1 if memory is short. */
int tf_blas_begin(void);
void tf_blas_end(void);

/* Returns the number of calls of this process that the library computed instead, without
 * the precision, because memory was short. */
uint64_t tf_blas_lost(void);

/* Catches the products that a LAPACK makes inside its own library, without a slot. Must be
 * called before any thread uses the library. Returns -1 if the system does not allow it. */
int tf_blas_enter_lapack(void);

/* Sets the function that returns the mode in force for this thread (NULL: none). It is
 * called in each call of BLAS. */
typedef const struct tf_blas_mode *tf_blas_mode_fn(void);
void tf_blas_set_mode_finder(tf_blas_mode_fn *find);

/* Sets the mode that a program was started with from outside, or NULL. Products in other
 * modes count as TF_OBEYED_OTHER. A tf_blas_place_fn is not called for other modes, except
 * for those with a plan. */
void tf_blas_set_outer_mode(const struct tf_blas_mode *mode);
int tf_blas_is_outer(const struct tf_blas_mode *mode);
enum tf_blas_fate tf_blas_fate_of_obeying(const struct tf_blas_mode *mode);

/* Returns the mode at this thread's call site (NULL: none) if `mode` is in force: see
 * --only, --except and --plan. `last` is a variable of the caller, for threads that have no
 * call site, or NULL. Without `seen`, it is the mode of any operand that has one. If no
 * such function is set, tf_blas_mode_here returns `mode`. */
typedef const struct tf_blas_mode *tf_blas_place_fn(const struct tf_blas_mode *mode,
                                                    const void *_Atomic *last,
                                                    const struct tf_operands_seen *seen);
void tf_blas_set_places(tf_blas_place_fn *find);
const struct tf_blas_mode *tf_blas_mode_here(const struct tf_blas_mode *mode,
                                             const void *_Atomic *last,
                                             const struct tf_operands_seen *seen);

/* Returns TF_OBEYED if a product runs in a mode, and replaces `mode` by that of the call
 * site; otherwise returns the reason why it does not. */
enum tf_blas_fate tf_blas_fate_of(const struct tf_blas_mode **mode,
                                  const void *_Atomic *last,
                                  const struct tf_operands_seen *seen, char type,
                                  ptrdiff_t m, ptrdiff_t n, ptrdiff_t k);

/* While a thread is aside, its calls of BLAS are unchanged and not counted: they compute a
 * product of this package. */
void tf_blas_step_aside(int aside);
int tf_blas_is_aside(void);

/* An object that calls BLAS: its file, and the last call site in it, for threads that have
 * no call site. */
struct tf_blas_caller {
    const char *file;
    void *_Atomic last;             /* for the watcher */
    const void *_Atomic last_place; /* for the tf_blas_place_fn */
};

/* A watched call: its function, its arguments, its caller, and its sizes. */
struct tf_blas_watched {
    const struct tf_blas_name *name;
    const struct tf_blas_arguments *arguments;
    struct tf_blas_caller *caller;
    struct tf_blas_sizes sizes; /* of the first product; multiply_adds of all */
};

/* A watcher of products; tf_blas_set_watcher(NULL) removes it. */
struct tf_blas_watcher {
    int lapack; /* watches products that LAPACK makes too */
    /* Returns the context for `after`, which also gets the time of the call; NULL if
     * `after` is not to be called. */
    void *(*before)(const struct tf_blas_watched *call);
    void (*after)(void *context, const struct tf_blas_watched *call, double seconds);
};
void tf_blas_set_watcher(const struct tf_blas_watcher *watcher);
int tf_blas_is_watched(void);

/* The facts of a stub before a function of BLAS. */
struct tf_blas_target {
    struct tf_blas_name name;
    int inner;          /* the caller is LAPACK */
    struct tf_blas_caller *caller;
    struct tf_entry *entry; /* the function, if it is called without a slot; or NULL */
    int leads_to_entry;     /* the original is a function that has an entry */
};

/* The handlers of products, with a struct tf_blas_target as facts. A stub of an entry
 * always has its handler, also while no calls are caught. */
int tf_handle_product(struct tf_stub *stub, struct tf_call *call);
int tf_handle_entry(struct tf_stub *stub, struct tf_call *call);

/* The handlers of calls that are only counted, with a struct tf_named_count as facts.
 * tf_handle_without_blas leaves out calls in which BLAS makes a product. */
int tf_handle_named(struct tf_stub *stub, struct tf_call *call);
int tf_handle_without_blas(struct tf_stub *stub, struct tf_call *call);

/* Returns a stub before a function, which counts its calls and their time under a name
 * while calls are caught. `with_blas` includes calls that call BLAS. Returns NULL if no
 * stub or count is left, or if memory is short. */
void *tf_blas_counting(void *original, int kind, const char *name, int with_blas);

#endif
