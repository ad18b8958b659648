/* A plan: what holds at which line of the source, a mode of products or settings of ufuncs. */
#ifndef TF32DTYPE_PROGRAMS_PLANS_H
#define TF32DTYPE_PROGRAMS_PLANS_H

#include "programs/blas/engine.h"

/* A place, and what holds there (NULL: nothing). It is one line of the user's, one of
 * a library that made the call, or both, which then have to be the innermost ones. A
 * library's file is NULL where any will do, and the user's likewise.
 *
 * It may be one operand of the place. That is the one with this digest; or, as long as no
 * operand of the place has had a digest of the plan, the one with this number in the order
 * of first use on this side, if its shape is the same. */
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

/* Returns a plan, which is never freed. `otherwise` holds at all other places (NULL:
 * nothing). Returns NULL if memory is short. */
const struct tf_plan *tf_plan_new(const struct tf_planned *places, size_t count,
                                  const void *otherwise);

/* Returns what a plan, a struct tf_plan, has for this thread's call site. */
const void *tf_plan_here(const void *plan);

/* Switches regions on or off (frames.h). They, and plans, are asked for a mode here. */
void tf_plans_obey_regions(int on);

#endif
