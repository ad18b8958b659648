/* Sums and products so far, which a ufunc call keeps in pages. */
#ifndef TF32DTYPE_UFUNCS_PAGES_H
#define TF32DTYPE_UFUNCS_PAGES_H

#include <stddef.h>

#include "ufuncs/kernels.h"

enum tf_reduction { TF_SUM, TF_PROD };

/* Elements of a page, as powers of two: for results that come one by one, in short rows,
 * and in long rows. */
enum { TF_PAGE_FEW = 4, TF_PAGE_SOME = 7, TF_PAGE_MOST = 10 };

_Static_assert(1 << TF_PAGE_MOST <= TF_CHUNK, "a row of a page is a chunk");

/* Results of output elements that are side by side: value * 2^exponent, without exponents
 * for sums. A live element counts while its item is still the one stored last. */
struct tf_page {
    double *values;
    int64_t *exponents;
    unsigned char *items; /* as last stored, one after the other */
    uint8_t *live;
    uint8_t *overflows; /* the stored result was out of range */
    uint8_t finite;     /* all values are finite */
};

/* The partial results of one ufunc call.
 *
 * NumPy reduces an outer axis by calling the loop once per row, with the running result in
 * the output array, which has too few bits for it. Each output element therefore has a slot
 * with a float64 sum (or a product and an exponent). The slot's position is the element's
 * distance from the first element seen. Slots are in pages that are made on first use. */
struct tf_partials {
    const char *origin;
    struct tf_page **pages;
    int page_bits; /* elements of a page, as a power of two */
    ptrdiff_t first, count; /* page numbers of `pages` */
    ptrdiff_t overflowed;   /* elements whose last result was out of range */
    unsigned raised;
    uint8_t is_reduction;
};

/* Returns empty results. `is_reduction`: NumPy asked for the initial value. */
struct tf_partials *tf_partials_new(int is_reduction);
void tf_partials_free(struct tf_partials *partials);

/* Returns the page of a number, made on first use; NULL if memory is short. */
struct tf_page *tf_find_page(struct tf_partials *partials, ptrdiff_t number,
                             enum tf_reduction op);

#endif
