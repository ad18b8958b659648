/* Functions of one byte, by tables of their 256 results. */
#ifndef TF32DTYPE_FORMATS_BYTE_LOOKUP_H
#define TF32DTYPE_FORMATS_BYTE_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

/* The result of each item, the exceptions that each raises, and the exceptions of all. */
struct tf_pair_line {
    uint8_t results[256], flags[256];
    unsigned all_flags;
};

/* Looks up n results, at most TF_CHUNK. Returns their exceptions, or 0 if `raised`
 * contains all exceptions of the table. */
unsigned tf_look_up_chunk(const struct tf_pair_line *line, const uint8_t *items,
                          uint8_t *out, size_t n, unsigned raised);

/* Looks up n results of strided items; returns their exceptions. */
unsigned tf_look_up_line(const struct tf_pair_line *line, const char *in,
                         ptrdiff_t in_stride, char *out, ptrdiff_t out_stride,
                         ptrdiff_t n);

#endif
