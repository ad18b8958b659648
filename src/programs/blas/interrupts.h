/* Ctrl-C while a call of BLAS is computed here.
 *
 * The caller cannot be told of an exception, and no handler may run in the midst of its
 * code, which may hold locks. So a signal is only counted, before its handler gets it: a
 * product of the main thread that sees one ends at once, with its result undefined, and
 * Python raises KeyboardInterrupt as soon as the caller is back in its code. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_INTERRUPTS_H
#define TF32DTYPE_PROGRAMS_BLAS_INTERRUPTS_H

/* Counts from now on, if the handler of SIGINT is one that ends what runs: of the main
 * thread, as long as nobody sets another handler. `is_waiting` says whether a signal that
 * came before a product began is not handled yet: asked once a signal. */
void tf_interrupts_count(int (*is_waiting)(void));

/* Gives the signal back to its handler. */
void tf_interrupts_forget(void);

/* Whether products of this thread end, from here to tf_blas_end_stops, when a signal
 * comes; else they never do. */
void tf_blas_begin_stops(int can_stop);
void tf_blas_end_stops(void);
int tf_blas_is_stopped(void);

#endif
