/* Decoding tables of the one-byte formats, filled once when the package is
 * imported: all 256 items, as float32 bits and as their two upper bytes (the
 * two lower ones are zero: no format of a byte has more than 7 mantissa bits). */
#ifndef TF32DTYPE_BYTES_H
#define TF32DTYPE_BYTES_H

#include "formats.h"

struct tf_byte_table {
    uint32_t bits[256];
    uint8_t high[256];
    uint8_t low[256];
};

extern struct tf_byte_table tf_byte_tables[TF_FORMAT_COUNT];

void tf_byte_tables_fill(void);

#endif
