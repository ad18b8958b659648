/* A plan: the settings for lines of source, either modes of products or settings of
 * ufuncs. */
#ifndef TF32DTYPE_PROGRAMS_PLANS_H
#define TF32DTYPE_PROGRAMS_PLANS_H

#include "programs/blas/engine.h"

/* An entry of a plan: a call site, and its settings (`what`; NULL: none). The call site is
 * a line of the user's code, a line of a library that made the call, or both, which then
 * must be the innermost lines. A file is NULL if every file of the user or of a library
 * fits.
 *
 * An entry may be for one operand of a call site: the operand with this digest; or, as long
 * as no operand of the call site has had a digest of the plan, the operand with this number
 * in the order of first use on this side, if it has the same shape. */
struct tf_planned {
    const char *file[2]; /* without links; of the user, and of the library */
    int line[2];
    uint64_t number; /* from 1 on; 0: all operands */
    int side;        /* of struct tf_operands */
    uint64_t digest; /* as of src/programs/blas/operand.h; 0: not known */
    ptrdiff_t rows, columns;
    const void *what;
};

struct tf_plan;

/* Returns a plan, which is never freed; NULL if memory is short. `otherwise` are the
 * settings at all other call sites (NULL: none). */
const struct tf_plan *tf_plan_new(const struct tf_planned *places, size_t count,
                                  const void *otherwise);

/* Returns the settings that a plan, a struct tf_plan, has for this thread's call site. */
const void *tf_plan_here(const void *plan);

/* Switches regions (where_am_i.h) on or off, and makes calls of BLAS use regions and
 * plans. */
void tf_plans_obey_regions(int on);

#endif
