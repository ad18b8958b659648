/* Redirects functions that are called without a slot: their first instructions become a
 * jump. */
#ifndef TF32DTYPE_PROGRAMS_HOOKS_JUMPS_H
#define TF32DTYPE_PROGRAMS_HOOKS_JUMPS_H

/* The size of a jump in bytes. */
#if defined(__aarch64__)
enum { TF_JUMP = 16 };
#else
enum { TF_JUMP = 14 };
#endif

/* Makes a function of at least TF_JUMP bytes jump to `to` permanently. Returns -1 if the
 * system forbids to write code. No other thread may call the function meanwhile. */
int tf_jump(void *function, const void *to);

#endif
