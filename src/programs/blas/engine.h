/* Every call of BLAS in the process: caught where it is made, counted, and computed in a
 * precision where one is set. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_ENGINE_H
#define TF32DTYPE_PROGRAMS_BLAS_ENGINE_H

#include "programs/blas/blas_call.h"
#include "programs/blas/blas_sizes.h"
#include "programs/blas/counts.h"
#include "programs/blas/entries.h"
#include "programs/blas/operand.h"
#include "programs/hooks/hooks.h"
#include "tensor_core/mma_matmul.h"

/* What is to become of products. Never changed, never freed, once it has been given. */
struct tf_blas_mode {
    struct tf_device device; /* the precision; without a device its first field alone */
    int float64, complex64;  /* which obey besides float32; both: complex128 too */
    int dots;                /* products with one number as their result obey */
    int lapack;              /* those that LAPACK makes obey */
    ptrdiff_t min_size;      /* those with a smaller k do not */
    const void *plan;        /* what the place function looks the place up in; or NULL */
    int outer;               /* it is meant for tf_blas_set_outer_mode */
};

/* Whether this platform has what it takes. */
int tf_blas_is_available(void);

/* Catches calls, as often as it was begun and not yet ended; libraries that are opened
 * later too. Returns -1 if memory is short. */
int tf_blas_begin(void);
void tf_blas_end(void);

/* Products of this process that should have been in a precision, and were left to the
 * library since memory was short: no result of theirs is what was asked for. */
uint64_t tf_blas_lost(void);

/* Has the products caught that a LAPACK makes inside its own library, without a slot:
 * before any thread calls it. Returns -1 if the system does not allow it. */
int tf_blas_enter_lapack(void);

/* Who knows the mode in force where a call is made (NULL: none). Asked in each call. */
typedef const struct tf_blas_mode *tf_blas_mode_fn(void);
void tf_blas_set_mode_finder(tf_blas_mode_fn *find);

/* The mode that a program was started with from outside, or NULL: what obeys others counts
 * as TF_OBEYED_OTHER, and places have no say in others but plans. */
void tf_blas_set_outer_mode(const struct tf_blas_mode *mode);
int tf_blas_is_outer(const struct tf_blas_mode *mode);
enum tf_blas_fate tf_blas_fate_of_obeying(const struct tf_blas_mode *mode);

/* The mode at this thread's place in the source where another is in force (NULL: none):
 * see --only, --except and --plan. `last` is a word of whoever calls, for threads that
 * have no place, or NULL. Without `seen` it is that of any operand that has one. Without a
 * function the one in force holds everywhere. */
typedef const struct tf_blas_mode *tf_blas_place_fn(const struct tf_blas_mode *mode,
                                                    const void *_Atomic *last,
                                                    const struct tf_operands_seen *seen);
void tf_blas_set_places(tf_blas_place_fn *find);
const struct tf_blas_mode *tf_blas_mode_here(const struct tf_blas_mode *mode,
                                             const void *_Atomic *last,
                                             const struct tf_operands_seen *seen);

/* Why a product does not obey a mode, or that it does: then the mode becomes that of the
 * place. */
enum tf_blas_fate tf_blas_fate_of(const struct tf_blas_mode **mode,
                                  const void *_Atomic *last,
                                  const struct tf_operands_seen *seen, char type,
                                  ptrdiff_t m, ptrdiff_t n, ptrdiff_t k);

/* An object that calls BLAS: its file, and two words of those who tell places, for threads
 * that have none. */
struct tf_blas_caller {
    const char *file;
    void *_Atomic last;             /* the watcher's */
    const void *_Atomic last_place; /* the place function's */
};

/* A call that is watched: by whom it was made, and what of. */
struct tf_blas_watched {
    const struct tf_blas_name *name;
    const struct tf_blas_arguments *arguments;
    struct tf_blas_caller *caller;
    struct tf_blas_sizes sizes; /* of the first product; multiply_adds of all */
};

/* Who watches products (NULL: nobody). */
struct tf_blas_watcher {
    int lapack; /* products that LAPACK makes are watched too */
    /* Returns what `after` is to be given, with the time that the call takes; NULL if that
     * is of no interest. */
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
    struct tf_entry *entry; /* of a function that is called without a slot; or NULL */
    int leads_to_entry;     /* the original is such a function */
};

/* The handlers of products, with a struct tf_blas_target as facts. A stub of an entry always has its handler,
 * also while no calls are caught. */
int tf_handle_product(struct tf_stub *stub, struct tf_call *call);
int tf_handle_entry(struct tf_stub *stub, struct tf_call *call);

/* The handlers of calls that are only counted, with a struct tf_named_count as facts. The
 * second leaves out calls in which BLAS makes a product. */
int tf_handle_named(struct tf_stub *stub, struct tf_call *call);
int tf_handle_without_blas(struct tf_stub *stub, struct tf_call *call);

/* Returns a function that stands before another, and counts its calls and their time
 * under a name while calls are caught, those that call BLAS too or not; NULL if there is
 * none. */
void *tf_blas_counting(void *original, int kind, const char *name, int with_blas);

#endif
