/* Sums and products of lines in the order of NumPy's calls, where that is known: moments.c
 * takes it for lines of which the bounds leave a result in doubt. */
#ifndef TF32DTYPE_UFUNCS_LINE_CALLS_H
#define TF32DTYPE_UFUNCS_LINE_CALLS_H

#include "ufuncs/summed_lines.h"

/* Whether NumPy calls the loop for each line, or for each run of elements that a mask
 * selects, so that the result follows from that. */
int tf_are_calls(const struct tf_summed *lines, enum tf_statistic statistic);

/* Writes the items of n lines, up to TF_CHUNK, and returns what such calls raise. */
unsigned tf_call_lines(const struct tf_summed *lines, enum tf_statistic statistic,
                       ptrdiff_t first, char *items, size_t n);

#endif
