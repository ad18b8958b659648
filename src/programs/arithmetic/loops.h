/* Loops of NumPy's ufuncs that round: a handler of stubs.
 *
 * An inner loop is void(char **args, const npy_intp *dimensions, const npy_intp *steps,
 * void *data); its operands are float32 or float64, or other numbers, which stay. The
 * handler rounds the operands to the format, has the original compute, and rounds what
 * came out. Where NumPy reduces, an inner call is one operation, of all its operands: a
 * result in the middle of it is not rounded. Where it accumulates, each result is.
 */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_LOOPS_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_LOOPS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "programs/hooks/stubs.h"

enum { TF_LOOP_INPUTS = 3, TF_LOOP_OUTPUTS = 2, TF_LOOP_OPERANDS = 5 };

typedef void tf_loop_fn(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps,
                        void *data);

/* What a stub's `facts` are. */
struct tf_loop {
    const char *name; /* of the ufunc */
    int inputs, outputs;
    char type;                         /* 'f' or 'd' */
    char is_float[TF_LOOP_OPERANDS];   /* whether an operand is of that type */
    int adds;     /* whether bits cancel: sums and differences */
    int pairwise; /* whether NumPy reduces in pairs, as it does to add */
    tf_loop_fn *wide; /* the same in float64 */
    void *wide_data;
    _Atomic uint64_t calls, numbers; /* that were rounded */
};

struct tf_round_counts {
    uint64_t calls, numbers;
};

/* Returns settings, which are kept: what the handler rounds to (see arithmetic/rounding.h),
 * and whether it watches, with lines that have begun. */
const void *tf_arithmetic_settings(int format, int watches);

/* Sets the settings of all calls; with a plan `find` returns those of a call, or NULL: such
 * a call does not round. */
void tf_arithmetic_set(const void *settings);
void tf_arithmetic_set_plan(const void *plan, const void *(*find)(const void *plan));

/* Whether calls from this thread's call site round. */
int tf_arithmetic_is_here(void);

int tf_arithmetic_handler(struct tf_stub *stub, struct tf_call *call);

/* Rounds n numbers where they are, aligned and one after the other, and returns what that
 * raised: for what NumPy makes without a loop, where calls round. */
unsigned tf_arithmetic_round_all(char type, void *numbers, size_t n);

/* The same of one number, as whoever computes with scalars needs it. */
double tf_arithmetic_round(char type, double x, unsigned *flags);

/* Counts a call of a loop, or with scalars, that made so many numbers. */
void tf_arithmetic_count(const struct tf_loop *loop, size_t numbers);

/* Returns the counts of a loop, and sets them to 0. */
struct tf_round_counts tf_arithmetic_take_counts(struct tf_loop *loop);

/* Adds the figures of a call with scalars to this thread's line, if the handler watches:
 * a result for each output; the operands as they were given, and rounded. */
void tf_arithmetic_watch(const struct tf_loop *loop, const double *results,
                         const double *truths, const double *given,
                         const double *operands, int count);

#endif
