/* ufunc.reduceat: each result is the reduction of a segment of a line. NumPy calls a loop
 * for each segment; these functions reduce all in one call. */
#ifndef TF32DTYPE_UFUNCS_SEGMENTS_H
#define TF32DTYPE_UFUNCS_SEGMENTS_H

#include "ufuncs/pages.h"

/* A segment ends where the next one starts, the last one with the items. A segment that
 * would be empty or end before its start is one item. */
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

/* Returns how many segments from i on follow each other within a chunk of items. Returns 0
 * if segment i is longer than a chunk. */
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

/* Does add or multiply, with the bits of tf_reduce: results side by side, flags in *flags.
 * Returns -1 if memory is short. */
int tf_reduce_segments(int format, enum tf_reduction op,
                       const struct tf_segments *segments, char *out, unsigned *flags);

/* Does maximum, minimum, fmax or fmin. */
void tf_extreme_segments(int format, enum tf_binary_op op,
                         const struct tf_segments *segments, char *out);

#endif
