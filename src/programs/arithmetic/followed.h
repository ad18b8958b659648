/* Results of products, followed through NumPy's ufuncs to the sums where bits cancel.
 *
 * A product may be accurate by itself, and its error large compared with the difference to
 * nearly the same number. Results are found again by their addresses, and by some of
 * their numbers: memory may have been given back and taken again. They are followed through
 * sums, differences, scaling and signs. Copies, reductions and all other functions end
 * that. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_FOLLOWED_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_FOLLOWED_H

#include <stddef.h>
#include <stdint.h>

#include "programs/arithmetic/loops.h"
#include "programs/blas/blas_call.h"
#include "programs/call_sites/call_sites.h"
#include "programs/hooks/stubs.h"

/* Sums of a product's results at one call site. */
struct tf_followed_sum {
    struct tf_site site;
    const void *product;     /* the call site, as tf_follow_result was told */
    const char *function;    /* of NumPy */
    struct tf_source source;
    uint64_t calls;
    double part, whole;      /* sums of squares: of the product's part, of the sum */
};

/* Forgets what was found before. `stubs` stand before NumPy's loops, their facts are a
 * struct tf_loop; they have a handler only while results are followed. They must stay until
 * the end. Returns -1 if memory is short. */
int tf_followed_begin(const struct tf_source_finder *finder, struct tf_stub *const *stubs,
                      size_t count);

/* Takes in the sums that are not complete, and follows no more results. No stub has the
 * handler any more. */
void tf_followed_end(void);

/* Whether results are followed through a loop: it adds, subtracts, scales or changes signs.
 * `stubs` have only such loops. */
int tf_followed_is_for(const struct tf_loop *loop);

/* Follows the result of a product that has just been made: as a tf_product_made_fn. */
void tf_follow_result(const void *site, const struct tf_blas_product *product);

/* Returns one sum after the other, from 0 on; NULL at the end. */
const struct tf_followed_sum *tf_followed_sums(size_t number);

#endif
