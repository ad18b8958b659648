/* A plan: which mode holds at which line of the source. */
#ifndef TF32DTYPE_PROGRAMS_PLANS_H
#define TF32DTYPE_PROGRAMS_PLANS_H

#include "programs/blas/engine.h"

/* A place, and the mode that holds there (NULL: none). It is one line of the user's, one of
 * a library that made the call, or both, which then have to be the innermost ones. A
 * library's file is NULL where any will do, and the user's likewise. */
struct tf_planned {
    const char *file[2]; /* without links; of the user, and of the library */
    int line[2];
    const struct tf_blas_mode *mode;
};

struct tf_plan;

/* Returns a plan that is kept for ever, with a mode for all other places (NULL: none); NULL
 * if memory is short. */
const struct tf_plan *tf_plan_new(const struct tf_planned *places, size_t count,
                                  const struct tf_blas_mode *otherwise);

/* Switches regions on or off (frames.h). They, and plans, are asked for a mode here. */
void tf_plans_obey_regions(int on);

#endif
