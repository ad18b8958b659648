/* Functions that are called without a slot: their first instructions become a jump. */
#ifndef TF32DTYPE_PROGRAMS_HOOKS_JUMPS_H
#define TF32DTYPE_PROGRAMS_HOOKS_JUMPS_H

/* Bytes that a jump takes. */
#if defined(__aarch64__)
enum { TF_JUMP = 16 };
#else
enum { TF_JUMP = 14 };
#endif

/* Has a function of at least TF_JUMP bytes lead to another one, for good. Returns -1 if the
 * system does not allow that. No other thread may be calling it meanwhile. */
int tf_jump(void *function, const void *to);

#endif
