/* Fills the tables of what codes of a byte or less are worth. */
#include "blocks/code_tables.h"

struct tf_code_table tf_code_tables[TF_ELEMENT_COUNT];

void tf_code_tables_fill(void)
{
    for (int kind = 0; kind < TF_ELEMENT_COUNT; kind++) {
        struct tf_code_table *table = &tf_code_tables[kind];
        table->element = tf_elements[kind];
        const uint32_t count = UINT32_C(1) << table->element.width;
        for (uint32_t code = 0; count <= 256 && code < count; code++) {
            const uint32_t bits = tf_bits_of(tf_element_value(table->element, code));
            table->bytes.bits[code] = bits;
            table->bytes.high[code] = (uint8_t)(bits >> 24);
            table->bytes.low[code] = (uint8_t)(bits >> 16);
        }
    }
}
