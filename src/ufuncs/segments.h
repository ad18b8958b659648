/* ufunc.reduceat: each result is the reduction of a segment of a line. NumPy calls a loop
 * for each of them; here all are one call. */
#ifndef TF32DTYPE_UFUNCS_SEGMENTS_H
#define TF32DTYPE_UFUNCS_SEGMENTS_H

#include "ufuncs/pages.h"

/* Each segment ends where the next one starts, the last one with the items; one that
 * starts after its end is one item. */
struct tf_segments {
    const char *items;
    ptrdiff_t stride, size; /* of the items */
    const ptrdiff_t *starts;
    ptrdiff_t count;
};

static inline ptrdiff_t tf_segment_end(const struct tf_segments *segments, ptrdiff_t i)
{
    const ptrdiff_t *start = &segments->starts[i];
    const ptrdiff_t end = i + 1 < segments->count ? start[1] : segments->size;
    return end > start[0] ? end : start[0] + 1;
}

/* How many segments from i on follow each other within a chunk of items; 0 if one alone
 * is longer. */
static inline size_t tf_segments_together(const struct tf_segments *segments, ptrdiff_t i)
{
    const ptrdiff_t first = segments->starts[i];
    ptrdiff_t last = i, end = first;
    while (last < segments->count && last - i < TF_CHUNK && segments->starts[last] == end) {
        end = tf_segment_end(segments, last);
        if (end - first > TF_CHUNK) {
            break;
        }
        last++;
    }
    return (size_t)(last - i);
}

/* add or multiply, with the bits of tf_reduce: results side by side. What they raise in
 * *flags; -1 if memory is short. */
int tf_reduce_segments(int format, enum tf_reduction op,
                       const struct tf_segments *segments, char *out, unsigned *flags);

/* maximum, minimum, fmax, fmin. */
void tf_extreme_segments(int format, enum tf_binary_op op,
                         const struct tf_segments *segments, char *out);

#endif
