/* Finds the mode (src/programs/blas/engine.h) that is in force for a call of BLAS.
 *
 * A precision belongs to a Python context. BLAS is called with the GIL and without it, and
 * by threads that Python does not know. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_MODES_H
#define TF32DTYPE_PROGRAMS_BLAS_MODES_H

#include "programs/blas/engine.h"

/* Returns a permanent copy of a mode, the same one for equal modes; NULL if memory is
 * short. */
const struct tf_blas_mode *tf_mode_kept(const struct tf_blas_mode *mode);

/* Returns the mode of this thread's context: tf_no_mode in a scope without a mode, NULL if
 * no scope is open. It is called with the GIL, and with no error set. */
typedef const struct tf_blas_mode *tf_read_mode_fn(void);
extern const struct tf_blas_mode tf_no_mode;

/* Returns whether this thread runs Python code, and so can take the GIL: others may run
 * while a thread that has it waits for them. */
int tf_modes_has_python(void);

void tf_modes_prepare(tf_read_mode_fn *read);

/* Stops the catching of calls by a preloaded library (src/programs/blas/preload/preload.h),
 * because this library catches them from now on. */
void tf_modes_take_over(void);

/* Sets the mode of contexts in which no scope is open, or NULL. */
void tf_modes_set_process(const struct tf_blas_mode *mode);

/* Counts a scope that begins (`more` 1) or ends (-1). */
void tf_modes_count_scope(int more);

/* Reads the mode of this thread again after a change of its context, and publishes it for
 * threads that Python does not know. Needs the GIL. */
void tf_modes_publish(void);

#endif
