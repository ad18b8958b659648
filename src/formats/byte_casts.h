/* Casts between kinds of one byte, by tables of all 256 results and their exceptions. */
#ifndef TF32DTYPE_FORMATS_BYTE_CASTS_H
#define TF32DTYPE_FORMATS_BYTE_CASTS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/byte_lookup.h"
#include "formats/number_kinds.h"

/* Casts n bytes from one kind to another; returns the exceptions raised. */
typedef unsigned tf_cast_bytes(int from, int to, const uint8_t *in, uint8_t *out,
                               size_t n);

/* Returns the table of two kinds of one byte, before n more items are cast. `cast` makes
 * it when enough items were cast. Returns NULL before that, or if memory is short. */
const struct tf_pair_line *tf_byte_cast(int from, int to, ptrdiff_t n,
                                        tf_cast_bytes *cast);

#endif
