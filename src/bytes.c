#include "bytes.h"

#include <string.h>

#include "elements.h"

struct tf_byte_table tf_byte_tables[TF_FORMAT_COUNT];

void tf_byte_tables_fill(void)
{
    for (int format = 0; format < TF_FORMAT_COUNT; format++) {
        const struct tf_format f = *tf_format_rows[format];
        struct tf_byte_table *table = &tf_byte_tables[format];
        for (uint32_t item = 0; f.itemsize == 1 && item < 256; item++) {
            const char byte = (char)(unsigned char)item;
            const float x = (float)tf_double_from_code(f, tf_load_code(f, &byte));
            memcpy(&table->bits[item], &x, sizeof x);
            table->high[item] = (uint8_t)(table->bits[item] >> 24);
            table->low[item] = (uint8_t)(table->bits[item] >> 16);
        }
    }
}
