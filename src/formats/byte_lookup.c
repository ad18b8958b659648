/* Look-ups of strided bytes in tables, one chunk at a time. */
#include "formats/byte_lookup.h"

#include "formats/kernels.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"

unsigned tf_look_up_chunk(const struct tf_pair_line *line, const uint8_t *items,
                          uint8_t *out, size_t n, unsigned raised)
{
    const unsigned pending = line->all_flags & ~raised;
    const unsigned flags =
        pending ? tf_isa->formats->lookup_any(line->flags, pending, items, n) : 0;
    tf_isa->formats->lookup(line->results, items, out, n);
    return flags;
}

unsigned tf_look_up_line(const struct tf_pair_line *line, const char *in,
                         ptrdiff_t in_stride, char *out, ptrdiff_t out_stride,
                         ptrdiff_t n)
{
    TF_BUFFER(in_buffer);
    TF_BUFFER(out_buffer);
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        const uint8_t *items = tf_gather(in, in_stride, 1, count, in_buffer);
        void *target = tf_target(out, out_stride, 1, out_buffer);
        flags |= tf_look_up_chunk(line, items, target, count, flags);
        tf_scatter(target, out, out_stride, 1, count);
        in += (ptrdiff_t)count * in_stride;
        out += (ptrdiff_t)count * out_stride;
    }
    return flags;
}
