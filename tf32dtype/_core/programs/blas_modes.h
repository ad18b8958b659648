/* Which mode of src/programs/blas/engine.h is in force where a call of BLAS is made.
 *
 * A precision belongs to a context of Python's; BLAS is called with the GIL and without,
 * and by threads that Python does not know. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_MODES_H
#define TF32DTYPE_PROGRAMS_BLAS_MODES_H

#include "programs/blas/engine.h"

/* Returns the same mode for equal ones, kept for ever; NULL if memory is short. */
const struct tf_blas_mode *tf_mode_kept(const struct tf_blas_mode *mode);

/* Reads the mode of this thread's context: tf_no_mode in a scope without one, NULL where
 * no scope is open. Called with the GIL, and no error set. */
typedef const struct tf_blas_mode *tf_read_mode_fn(void);
extern const struct tf_blas_mode tf_no_mode;

void tf_modes_prepare(tf_read_mode_fn *read);

/* Ends what a library that was preloaded does (src/programs/blas/preload/preload.h): this one
 * does it from here on. */
void tf_modes_take_over(void);

/* The mode where no scope is open, or NULL. */
void tf_modes_set_process(const struct tf_blas_mode *mode);

/* A scope has begun to live, or ended (-1). */
void tf_modes_count_scope(int more);

/* The context of this thread has changed. Needs the GIL. Threads that Python does not
 * know have the mode that was published last. */
void tf_modes_publish(void);

#endif
