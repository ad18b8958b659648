/* Sums and products of lines in the order of NumPy's calls, if that is known. moments.c
 * uses it for lines whose bounds leave a result in doubt. */
#ifndef TF32DTYPE_UFUNCS_LINE_CALLS_H
#define TF32DTYPE_UFUNCS_LINE_CALLS_H

#include "ufuncs/summed_lines.h"

/* Returns whether NumPy calls the loop for each line, or for each run of elements that a
 * mask selects: the result then follows from these calls. */
int tf_are_calls(const struct tf_summed *lines, enum tf_statistic statistic);

/* Writes the items of n lines, at most TF_CHUNK. Returns the flags of such calls. */
unsigned tf_call_lines(const struct tf_summed *lines, enum tf_statistic statistic,
                       ptrdiff_t first, char *items, size_t n);

#endif
