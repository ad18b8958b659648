/* Tables of the values of element codes with at most 8 bits, for matrix multiplications. */
#ifndef TF32DTYPE_BLOCKS_CODE_TABLES_H
#define TF32DTYPE_BLOCKS_CODE_TABLES_H

#include "blocks/block_formats.h"
#include "formats/byte_tables.h"

struct tf_code_table {
    struct tf_element element;
    struct tf_byte_table bytes; /* by code; empty for wider elements */
};

/* One table for each kind of element. Filled once, when the package is imported. */
extern struct tf_code_table tf_code_tables[TF_ELEMENT_COUNT];

void tf_code_tables_fill(void);

/* Writes the values of all codes of a scale format: as scales of blocks, or of residuals of
 * elements of the name `residual` unless it is empty. Returns -1 for names that
 * blocks/block_formats.h does not have. */
int tf_scale_values(const char *scale, const char *residual, float values[256]);

#endif
