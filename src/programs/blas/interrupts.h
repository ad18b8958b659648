/* Stops a call of BLAS that is computed here at Ctrl-C.
 *
 * The caller of BLAS cannot receive an exception, and no Python handler may run
 * within its code, which may hold locks. A signal is therefore only counted, before
 * its handler gets it. A product of the main thread that notices a signal ends at
 * once, with its result undefined. Python raises KeyboardInterrupt as soon as the
 * caller returns to Python code. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_INTERRUPTS_H
#define TF32DTYPE_PROGRAMS_BLAS_INTERRUPTS_H

/* Counts signals from now on if SIGINT has a handler, until another handler is set. The
 * calling thread becomes the main thread. `is_waiting` returns whether a signal from before
 * a product is not handled yet; it is called once per signal. */
void tf_interrupts_count(int (*is_waiting)(void));

/* Restores the former handler of the signal. */
void tf_interrupts_forget(void);

/* tf_blas_begin_stops lets a signal stop the products of this thread until
 * tf_blas_end_stops, if `can_stop` and if it is the main thread. tf_blas_is_stopped returns
 * whether one did. */
void tf_blas_begin_stops(int can_stop);
void tf_blas_end_stops(void);
int tf_blas_is_stopped(void);

#endif
