/* Counts of products by routine, type and fate, in memory that a process shares with the
 * children it forks. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_COUNTS_H
#define TF32DTYPE_PROGRAMS_BLAS_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "programs/blas/blas_call.h"

/* Whether a product ran in a precision, and if not, the reason. */
enum tf_blas_fate {
    TF_OBEYED,
    TF_OBEYED_OTHER, /* ran in another mode than that of tf_blas_set_outer_mode */
    TF_NO_PRECISION, /* no precision was set at the call */
    TF_IS_FLOAT64,   /* float64 or complex128, and the precision excludes float64 */
    TF_IS_COMPLEX,   /* and the precision excludes complex elements */
    TF_IS_DOT,       /* the result is one element, and the precision excludes dots */
    TF_IS_SHORT,     /* k is below min_size */
    TF_IS_OUTSIDE,   /* the call site is not among those of --only, --except and --plan */
    TF_IS_FOREIGN,   /* the thread cannot call the products of the mode */
    TF_NO_MEMORY,
    TF_FATES
};

struct tf_blas_count {
    _Atomic uint64_t calls, multiply_adds; /* one thread writes, all may read */
};

enum { TF_BLAS_TYPES = 4 }; /* in the order of "sdcz" */

/* Counts by fate, type and routine. */
struct tf_blas_counts {
    struct tf_blas_count of[TF_FATES][TF_BLAS_TYPES][TF_BLAS_ROUTINES];
};

/* Adds a call of this thread; does nothing before tf_counts_prepare. */
void tf_blas_count(int fate, char type, int routine, double multiply_adds);

/* Writes the sum of the counts of all threads, including those of forked children. */
void tf_blas_total(struct tf_blas_counts *total);

/* Functions that are counted by name, because no precision reaches them. */
enum tf_named_kind { TF_LAPACK_CALL, TF_SOLVE_CALL, TF_LOOP_CALL, TF_NAMED_KINDS };

struct tf_named_count {
    char name[56];
    int kind; /* enum tf_named_kind */
    _Atomic int is_ready;
    _Atomic uint64_t calls, nanoseconds;
};

/* Returns the count of a name, and makes it if necessary; NULL if all 512 are used. */
struct tf_named_count *tf_named_count(int kind, const char *name);

/* Adds a call, and its time. */
void tf_named_call(struct tf_named_count *count, uint64_t nanoseconds);

/* Returns the count of a number, from 0 on; NULL after the last. */
const struct tf_named_count *tf_named_counts(int number);

/* Allocates the counts, before any other function here; further calls do nothing. If
 * TF32DTYPE_BLAS_COUNTS is a path that tf_counts_share wrote in a process that still runs,
 * the counts are shared with that process. Returns -1 if memory is short. */
int tf_counts_prepare(void);

/* Moves the counts to memory that other processes can open, and writes its path. The memory
 * is freed when all these processes have ended, in whatever way. Returns -1, and changes
 * nothing, if this is not possible. */
int tf_counts_share(char *path, size_t size);

/* Returns whether the counts are those of another process (TF32DTYPE_BLAS_COUNTS). */
int tf_counts_are_shared(void);

#endif
