/* Figures by the line of source and the function that computed there. */
#ifndef TF32DTYPE_PROGRAMS_ARITHMETIC_LINES_H
#define TF32DTYPE_PROGRAMS_ARITHMETIC_LINES_H

#include "programs/arithmetic/figures.h"
#include "programs/blas/places.h"

struct tf_line {
    _Atomic uint64_t key;
    const void *what; /* a loop of a function: arithmetic/loops.h */
    struct tf_source source;
    struct tf_figures figures;
    int lock;
};

/* Forgets what was found before. Returns -1 if memory is short. */
int tf_lines_begin(const struct tf_source_finder *finder);

/* Adds the figures of a call to those of the place where this thread is. */
void tf_lines_add(const void *what, const struct tf_figures *figures);

/* Returns one line after the other, from 0 on; NULL at the end. */
const struct tf_line *tf_lines(size_t number);

/* Returns a line's figures as they are now: other threads may be adding to them. */
struct tf_figures tf_figures_of(const struct tf_line *line);

/* How many calls have no line, since there are too many (16384). */
uint64_t tf_lines_left_out(void);

#endif
