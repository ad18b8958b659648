/* Records the call sites of products: number, sizes and time of calls, samples of
 * operands. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_PRODUCT_SITES_H
#define TF32DTYPE_PROGRAMS_BLAS_PRODUCT_SITES_H

#include <stddef.h>
#include <stdint.h>

#include "programs/blas/engine.h"
#include "programs/call_sites/call_sites.h"

/* Sampled rows of A and columns of B, each k values as float64; for complex elements
 * also the imaginary components. The first row and the first column have the largest
 * magnitudes. */
struct tf_sample {
    struct tf_sample *next;
    ptrdiff_t m, n, k, rows, columns;
    double *a, *b, *imaginary_a, *imaginary_b;
    uint64_t digests[2]; /* of the operands, as in struct tf_operands */
};

enum { TF_SHAPES = 16, TF_OPERAND_SHAPES = 8, TF_MOST_OPERANDS = 1024 };

struct tf_shape {
    ptrdiff_t m, n, k;
    uint64_t calls;
};

struct tf_product_site {
    struct tf_site site;
    int session; /* the number of the tf_product_sites_begin before */
    struct tf_source source;
    const char *object; /* the file of the caller */
    char type;
    int routine;
    uint64_t calls, multiply_adds;
    uint64_t timed; /* number of timed calls, which take `seconds` together */
    double seconds;
    struct tf_shape shapes[TF_SHAPES]; /* the last counts all other shapes: its m is -1 */
    struct tf_sample *samples;
    _Atomic int is_named;   /* names of operands were looked up */
    uint64_t operands[2];   /* number of operands on each side */
    _Atomic int is_many[2]; /* more than TF_MOST_OPERANDS, or a call without a digest */
};

/* The calls of a call site with one of its operands. */
struct tf_product_operand {
    struct tf_site site;
    const struct tf_product_site *of;
    int side; /* the index in struct tf_operands */
    ptrdiff_t rows, columns;
    uint64_t digest, number; /* from 1 on, in the order of their first use */
    const char *name;        /* or NULL */
    const char *data;        /* its address at the first use */
    int has_moved;           /* a later call had it at another address */
    int is_named_buffer;     /* the name was given for this address */
    uint64_t calls, multiply_adds;
    struct tf_shape shapes[TF_OPERAND_SHAPES];
};

/* A function that gets a product of a call site after it was computed. */
typedef void tf_product_made_fn(const void *site, const struct tf_blas_product *product);

/* The settings of the watcher. At each call site the 1st, 2nd, 4th, 8th, ... call is
 * sampled: `lines` rows of A and columns of B (0: none). If `whole`, every call is sampled,
 * with all rows and columns. Samples take `bytes` at most. With `operands`, operands of
 * gemm and gemv are distinguished by their digests, and some more calls are sampled. */
struct tf_product_sites_wanted {
    ptrdiff_t lines;
    int whole;
    size_t bytes;
    int dots, lapack; /* watch also products of one element, and products inside LAPACK */
    int (*is_inside)(void); /* returns whether this call site is watched; NULL: all are */
    tf_product_made_fn *made; /* for sampled products; or NULL */
    int operands;
    /* Calls tf_product_name for each matrix that has a name in the program of this thread.
     * It is called without a lock; or NULL. */
    void (*name_operands)(void);
};

/* tf_product_sites_begin clears all call sites, and watches calls until
 * tf_product_sites_end. Returns -1 if memory is short. */
int tf_product_sites_begin(const struct tf_source_finder *finder,
                    const struct tf_product_sites_wanted *wanted);
void tf_product_sites_end(void);

/* Returns the call site of a number, from 0 on; NULL after the last. */
const struct tf_product_site *tf_product_sites(size_t number);

/* Returns the first operand from `position` on, and advances `position` past it; NULL at
 * the end. Its counts change while calls are watched. */
const struct tf_product_operand *tf_product_operands(size_t *position);

/* Names matrices with the content of `matrix`. The first name of a content stays. */
void tf_product_name(const struct tf_blas_matrix *matrix, char type, const char *name);

/* Copies a call site under its lock, because other threads may change it. */
void tf_product_site_copy(const struct tf_product_site *site, struct tf_product_site *copy);

/* Removes the samples of a call site and returns them; free each with tf_free_sample. */
struct tf_sample *tf_take_samples(const struct tf_product_site *site);
void tf_free_sample(struct tf_sample *sample);

/* Returns the number of calls that could not be sampled, because memory was used up. */
uint64_t tf_samples_left_out(void);

/* Returns the number of calls without a call site, because the table was full. */
uint64_t tf_calls_without_site(void);

#endif
