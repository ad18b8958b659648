/* The call sites of products: number, sizes and time of calls, samples of operands. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_PRODUCT_SITES_H
#define TF32DTYPE_PROGRAMS_BLAS_PRODUCT_SITES_H

#include <stddef.h>
#include <stdint.h>

#include "programs/blas/engine.h"
#include "programs/call_sites/call_sites.h"

/* Rows of A and columns of B, each k numbers as float64; of complex numbers the imaginary
 * ones too. The first row and the first column hold the largest magnitudes. */
struct tf_sample {
    struct tf_sample *next;
    ptrdiff_t m, n, k, rows, columns;
    double *a, *b, *imaginary_a, *imaginary_b;
    uint64_t digests[2]; /* of the operands, as of struct tf_operands */
};

enum { TF_SHAPES = 16, TF_OPERAND_SHAPES = 8, TF_MOST_OPERANDS = 1024 };

struct tf_shape {
    ptrdiff_t m, n, k;
    uint64_t calls;
};

struct tf_product_site {
    struct tf_site site;
    int session; /* of which it is */
    struct tf_source source;
    const char *object; /* the file of the caller */
    char type;
    int routine;
    uint64_t calls, multiply_adds;
    uint64_t timed; /* calls that `seconds` is of */
    double seconds;
    struct tf_shape shapes[TF_SHAPES]; /* the last one counts all others: its m is -1 */
    struct tf_sample *samples;
    _Atomic int is_named;   /* names of operands were looked for */
    uint64_t operands[2];   /* how many were seen on each side */
    _Atomic int is_many[2]; /* more than are told apart, or a call without a digest */
};

/* The calls of a call site with one of its operands. */
struct tf_product_operand {
    struct tf_site site;
    const struct tf_product_site *of;
    int side; /* of struct tf_operands */
    ptrdiff_t rows, columns;
    uint64_t digest, number; /* from 1 on, in the order of their first use */
    const char *name;        /* or NULL */
    const char *data;        /* where it was first */
    int has_moved;           /* it was elsewhere later */
    int is_named_buffer;     /* the name is that of this place in memory too */
    uint64_t calls, multiply_adds;
    struct tf_shape shapes[TF_OPERAND_SHAPES];
};

/* Is given a product of a call site after it has been made. */
typedef void tf_product_made_fn(const void *site, const struct tf_blas_product *product);

/* Which calls are watched. At each call site the 1st, 2nd, 4th, 8th, ... call is sampled:
 * `lines` rows of A and columns of B (0: none). If `whole`, every call is sampled, with all
 * rows and columns. Samples take `bytes` at most. With `operands`, those of gemm and gemv are
 * told apart by their digests, and some more calls are sampled. */
struct tf_product_sites_wanted {
    ptrdiff_t lines;
    int whole;
    size_t bytes;
    int dots, lapack; /* products that are one number, those inside LAPACK: too */
    int (*is_inside)(void); /* whether this call site is watched; NULL: all are */
    tf_product_made_fn *made; /* for sampled products; or NULL */
    int operands;
    /* Calls tf_product_name for each matrix that the thread's program has a name of. Called
     * without a lock; or NULL. */
    void (*name_operands)(void);
};

/* Returns -1 if memory is short. */
int tf_product_sites_begin(const struct tf_source_finder *finder,
                    const struct tf_product_sites_wanted *wanted);
void tf_product_sites_end(void);

/* Returns one call site after the other, from 0 on; NULL at the end. */
const struct tf_product_site *tf_product_sites(size_t number);

/* Returns the first operand from a position on, which becomes that of the next one; NULL at
 * the end. Its counts change while calls are watched. */
const struct tf_product_operand *tf_product_operands(size_t *position);

/* Gives a name to a matrix with this content. The first name stays. */
void tf_product_name(const struct tf_blas_matrix *matrix, char type, const char *name);

/* Copies a call site as it is now: other threads may be counting there. */
void tf_product_site_copy(const struct tf_product_site *site, struct tf_product_site *copy);

/* Takes the samples away from a call site; free each with tf_free_sample. */
struct tf_sample *tf_take_samples(const struct tf_product_site *site);
void tf_free_sample(struct tf_sample *sample);

/* How many calls could not be sampled, since memory was used up. */
uint64_t tf_samples_left_out(void);

/* How many calls have no call site, since the table is full. */
uint64_t tf_calls_without_site(void);

#endif
