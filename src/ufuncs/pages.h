/* Sums and products so far, which one ufunc call keeps in pages. */
#ifndef TF32DTYPE_UFUNCS_PAGES_H
#define TF32DTYPE_UFUNCS_PAGES_H

#include <stddef.h>

#include "ufuncs/kernels.h"

enum tf_reduction { TF_SUM, TF_PROD };

/* Powers of two of a page's elements: where results come one by one, in short rows and
 * in long ones. */
enum { TF_PAGE_FEW = 4, TF_PAGE_SOME = 7, TF_PAGE_MOST = 10 };

_Static_assert(1 << TF_PAGE_MOST <= TF_CHUNK, "a row of a page is a chunk");

/* Those of output elements that lie side by side. A result is value * 2^exponent; sums
 * have no exponents. One counts while its item still is what was stored there. */
struct tf_page {
    double *values;
    int64_t *exponents;
    unsigned char *items; /* as last stored, one after the other */
    uint8_t *live;
    uint8_t *overflows; /* the result stored was beyond the range */
    uint8_t finite;     /* all values are */
};

/* The partial results of one ufunc call.
 *
 * NumPy reduces an outer axis by calling the loop once a row, with the running
 * result in the output array, which has too few bits to hold it. So each
 * output element has a slot here, with a float64 sum (or a product and an
 * exponent), found by the element's distance from the first one
 * seen, in pages made when touched. */
struct tf_partials {
    const char *origin;
    struct tf_page **pages;
    int page_bits; /* elements of a page, as a power of two */
    ptrdiff_t first, count; /* page numbers of `pages` */
    ptrdiff_t overflowed;   /* elements whose last result was beyond the range */
    unsigned raised;
    uint8_t is_reduction;
    uint8_t is_elementwise;
};

/* `is_reduction`: NumPy asked for the initial value, so this is not an in-place
 * operation, which would otherwise look the same at first. */
struct tf_partials *tf_partials_new(int is_reduction);
void tf_partials_free(struct tf_partials *partials);

/* The page of a number, made when touched; NULL if memory is short. */
struct tf_page *tf_find_page(struct tf_partials *partials, ptrdiff_t number,
                             enum tf_reduction op);

#endif
