/* The number of a system call that Linux does not have. */
#ifndef TF32DTYPE_BENCHMARKS_MARK_H
#define TF32DTYPE_BENCHMARKS_MARK_H

enum { MARK = 100000 };

#endif
