/* Figures of each call site and each function that computed there. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_UFUNC_SITES_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_UFUNC_SITES_H

#include "programs/arithmetic/figures.h"
#include "programs/call_sites/call_sites.h"

struct tf_ufunc_site {
    struct tf_site site;
    const void *what; /* the struct tf_loop (arithmetic/loops.h) of the function */
    struct tf_source source;
    struct tf_figures figures;
};

/* Clears all earlier figures. Returns -1 if memory is short. */
int tf_ufunc_sites_begin(const struct tf_source_finder *finder);

/* Adds the figures of a call of the loop `what` to those of this thread's call site. */
void tf_ufunc_sites_add(const void *what, const struct tf_figures *figures);

/* Returns the call site of a number, from 0 on; NULL after the last. */
const struct tf_ufunc_site *tf_ufunc_sites(size_t number);

/* Returns a copy of a call site's figures, to which other threads may be adding. */
struct tf_figures tf_figures_of(const struct tf_ufunc_site *site);

/* Returns the number of calls without a call site, because the table (16384) was full. */
uint64_t tf_ufunc_sites_left_out(void);

#endif
