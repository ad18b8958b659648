/* Codes of elements on their way to products: tables of those of a byte or less. */
#ifndef TF32DTYPE_BLOCKS_CODE_TABLES_H
#define TF32DTYPE_BLOCKS_CODE_TABLES_H

#include "blocks/block_formats.h"
#include "formats/byte_tables.h"

struct tf_code_table {
    struct tf_element element;
    struct tf_byte_table bytes; /* by code; of wider elements: nothing */
};

/* A table for each kind of elements, filled once when the package is imported. */
extern struct tf_code_table tf_code_tables[TF_ELEMENT_COUNT];

void tf_code_tables_fill(void);

/* Writes what the codes of a scale format are worth: by themselves or, unless `residual`
 * is empty, as scales of such elements. Returns -1 for names that blocks/block_formats.h
 * does not have. */
int tf_scale_values(const char *scale, const char *residual, float values[256]);

#endif
