/* Casts between kinds of one byte: tables of all 256 results and what each raises. */
#ifndef TF32DTYPE_FORMATS_BYTE_CASTS_H
#define TF32DTYPE_FORMATS_BYTE_CASTS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/byte_lookup.h"
#include "formats/number_kinds.h"

/* Casts n bytes; what that raised. */
typedef unsigned tf_cast_bytes(int from, int to, const uint8_t *in, uint8_t *out,
                               size_t n);

/* The table of two kinds of one byte, between which n more items are cast; `cast` makes
 * it, once there were enough. NULL before that, and where there is no memory. */
const struct tf_pair_line *tf_byte_cast(int from, int to, ptrdiff_t n,
                                        tf_cast_bytes *cast);

#endif
