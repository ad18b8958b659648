/* Follows results of matrix products through NumPy's ufuncs to the sums where bits
 * cancel.
 *
 * A product may be accurate by itself, and yet its error be large compared with its
 * difference to nearly equal numbers. A result is recognized by its address and by some of
 * its elements, because its memory may have been freed and allocated again. It is followed
 * through sums, differences, scaling and changes of sign. Copies, reductions and all other
 * functions end the following. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_FOLLOWED_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_FOLLOWED_H

#include <stddef.h>
#include <stdint.h>

#include "programs/arithmetic/loops.h"
#include "programs/blas/blas_call.h"
#include "programs/call_sites/call_sites.h"
#include "programs/hooks/stubs.h"

/* The sums at one call site that the results of one product take part in. */
struct tf_followed_sum {
    struct tf_site site;
    const void *product;     /* the product's call site, as given to tf_follow_result */
    const char *function;    /* the name of the ufunc */
    struct tf_source source;
    uint64_t calls;
    double part, whole;      /* sums of squares: of the product's summand, of the sum */
};

/* Clears all earlier sums, and begins to follow results. `stubs` are the stubs before
 * NumPy's loops, with a struct tf_loop as facts; they have a handler only while a result is
 * followed. They must exist until tf_followed_end. Returns -1 if memory is short. */
int tf_followed_begin(const struct tf_source_finder *finder, struct tf_stub *const *stubs,
                      size_t count);

/* Adds the unfinished sums to the table, removes the handlers of all stubs, and follows no
 * more results. */
void tf_followed_end(void);

/* Returns whether results are followed through a loop, which then adds, subtracts, scales
 * or changes signs. The `stubs` of tf_followed_begin have only such loops. */
int tf_followed_is_for(const struct tf_loop *loop);

/* Follows the result of a product that was just computed. It is a tf_product_made_fn. */
void tf_follow_result(const void *site, const struct tf_blas_product *product);

/* Returns the sum of a number, from 0 on; NULL after the last. */
const struct tf_followed_sum *tf_followed_sums(size_t number);

#endif
