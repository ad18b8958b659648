/* Figures by the line of source and the function that computed there. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_UFUNC_SITES_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_UFUNC_SITES_H

#include "programs/arithmetic/figures.h"
#include "programs/call_sites/call_sites.h"

struct tf_ufunc_site {
    struct tf_site site;
    const void *what; /* a loop of a function: arithmetic/loops.h */
    struct tf_source source;
    struct tf_figures figures;
};

/* Forgets what was found before. Returns -1 if memory is short. */
int tf_ufunc_sites_begin(const struct tf_source_finder *finder);

/* Adds the figures of a call to those of this thread's call site. */
void tf_ufunc_sites_add(const void *what, const struct tf_figures *figures);

/* Returns one call site after the other, from 0 on; NULL at the end. */
const struct tf_ufunc_site *tf_ufunc_sites(size_t number);

/* Returns a call site's figures as they are now: other threads may be adding to them. */
struct tf_figures tf_figures_of(const struct tf_ufunc_site *site);

/* How many calls have no call site, since there are too many (16384). */
uint64_t tf_ufunc_sites_left_out(void);

#endif
