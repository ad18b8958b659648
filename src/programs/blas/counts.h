/* How many products were made, by whom, and what became of them; in memory that a
 * process shares with the children it forks. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_COUNTS_H
#define TF32DTYPE_PROGRAMS_BLAS_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "programs/blas/blas_call.h"

/* Whether a product obeyed a precision, and why not. */
enum tf_blas_fate {
    TF_OBEYED,
    TF_OBEYED_OTHER, /* one of the program's own, not the process's */
    TF_NO_PRECISION, /* none was set where it was made */
    TF_IS_FLOAT64,   /* and the precision is for float32 alone */
    TF_IS_COMPLEX,   /* and the precision is for real numbers alone */
    TF_IS_DOT,       /* one number is the result, and dots are left out */
    TF_IS_SHORT,     /* k is below min_size */
    TF_IS_OUTSIDE,   /* of the places that --only, --except and --plan leave */
    TF_NO_MEMORY,
    TF_FATES
};

struct tf_blas_count {
    _Atomic uint64_t calls, multiply_adds; /* written by one thread, read by any */
};

enum { TF_BLAS_TYPES = 4 }; /* in the order of "sdcz" */

/* A count, by fate, type and routine. */
struct tf_blas_counts {
    struct tf_blas_count of[TF_FATES][TF_BLAS_TYPES][TF_BLAS_ROUTINES];
};

/* Adds a call of this thread, once there is room for counts. */
void tf_blas_count(int fate, char type, int routine, double multiply_adds);

/* The sum over all threads, of forked children too. */
void tf_blas_total(struct tf_blas_counts *total);

/* What is counted by name: functions that no precision reaches. */
enum tf_named_kind { TF_LAPACK_CALL, TF_SOLVE_CALL, TF_LOOP_CALL, TF_NAMED_KINDS };

struct tf_named_count {
    char name[56];
    int kind; /* enum tf_named_kind */
    _Atomic int is_ready;
    _Atomic uint64_t calls, nanoseconds;
};

/* Returns the count of a name, new or not; NULL if there are no more (512). */
struct tf_named_count *tf_named_count(int kind, const char *name);

/* Adds a call of so many nanoseconds. */
void tf_named_call(struct tf_named_count *count, uint64_t nanoseconds);

/* Returns one after the other, by number; NULL at the end. */
const struct tf_named_count *tf_named_counts(int number);

/* To be called first; of many calls one prepares. If TF32DTYPE_BLAS_COUNTS is a path that
 * tf_counts_share has written, and its process still runs, the counts are that process's.
 * Returns -1 if memory is short. */
int tf_counts_prepare(void);

/* Moves the counts to memory that other processes can open, and writes the path for them.
 * Nothing stays of it after these processes, however they end. Returns -1, and goes on as
 * before, if that cannot be. */
int tf_counts_share(char *path, size_t size);

/* Whether other processes count too. */
int tf_counts_are_shared(void);

#endif
