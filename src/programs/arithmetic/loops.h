/* A handler of stubs that makes the loops of NumPy's ufuncs round to a format.
 *
 * An inner loop is void(char **args, const npy_intp *dimensions, const npy_intp *steps,
 * void *data). Its operands are float32 or float64; operands of other types are not
 * rounded. The handler rounds the operands to the format, calls the original, and rounds
 * the results. In a reduction, one inner call is one operation of all its operands, and
 * intermediate results are not rounded. In an accumulation, each result is rounded.
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

/* The `facts` of a stub before a loop. */
struct tf_loop {
    const char *name; /* the name of the ufunc */
    int inputs, outputs;
    char type;                         /* 'f' or 'd' */
    char is_float[TF_LOOP_OPERANDS];   /* whether an operand is of that type */
    int adds;     /* bits may cancel: sums and differences */
    int pairwise; /* NumPy reduces in pairs, as it does for add */
    tf_loop_fn *wide; /* the same function's float64 loop */
    void *wide_data;
    _Atomic uint64_t calls, numbers; /* rounded calls, and their results */
};

struct tf_round_counts {
    uint64_t calls, numbers;
};

/* Returns settings, which are never freed: the format of results (see
 * arithmetic/rounding.h), and whether the handler watches, which requires
 * tf_ufunc_sites_begin. */
const void *tf_arithmetic_settings(int format, int watches);

/* Sets the settings of all calls. With a plan, `find` returns the settings of a call from
 * the call site of its thread, or NULL if the call does not round. */
void tf_arithmetic_set(const void *settings);
void tf_arithmetic_set_plan(const void *plan, const void *(*find)(const void *plan));

/* Returns whether calls from this thread's call site round. */
int tf_arithmetic_is_here(void);

int tf_arithmetic_handler(struct tf_stub *stub, struct tf_call *call);

/* Rounds n aligned, contiguous elements in place if calls from this call site round, and
 * returns the flags that this raised: for results that NumPy computes without a loop. */
unsigned tf_arithmetic_round_all(char type, void *numbers, size_t n);

/* Returns x, rounded as by tf_arithmetic_round_all, for computations with scalars. */
double tf_arithmetic_round(char type, double x, unsigned *flags);

/* Counts a call of a loop or with scalars, and the number of its results. */
void tf_arithmetic_count(const struct tf_loop *loop, size_t numbers);

/* Returns the counts of a loop, and resets them to 0. */
struct tf_round_counts tf_arithmetic_take_counts(struct tf_loop *loop);

/* Adds the figures of a call with scalars to this thread's call site if the handler
 * watches. `results` and `truths` have a value per output; `given` are the `count` operands
 * before rounding, `operands` after it. */
void tf_arithmetic_watch(const struct tf_loop *loop, const double *results,
                         const double *truths, const double *given,
                         const double *operands, int count);

#endif
