/* Fill the tables of values of codes with at most 8 bits. */
#include "blocks/code_tables.h"

#include <string.h>

struct tf_code_table tf_code_tables[TF_ELEMENT_COUNT];

void tf_code_tables_fill(void)
{
    for (int kind = 0; kind < TF_ELEMENT_COUNT; kind++) {
        struct tf_code_table *table = &tf_code_tables[kind];
        table->element = tf_elements[kind];
        const uint32_t count = UINT32_C(1) << table->element.width;
        for (uint32_t code = 0; count <= 256 && code < count; code++) {
            tf_set_value(&table->bytes, code, tf_element_value(table->element, code));
        }
    }
}

int tf_scale_values(const char *scale, const char *residual, float values[256])
{
    int i = 0, j = 0;
    while (i < TF_SCALE_COUNT && strcmp(tf_scales[i].name, scale)) {
        i++;
    }
    while (*residual && j < TF_ELEMENT_COUNT && strcmp(tf_elements[j].name, residual)) {
        j++;
    }
    if (i == TF_SCALE_COUNT || j == TF_ELEMENT_COUNT) {
        return -1;
    }
    for (uint32_t code = 0; code < 256; code++) {
        values[code] = *residual
                           ? tf_residual_scale(tf_scales[i], tf_elements[j], code)
                           : tf_scale_value(tf_scales[i], code);
    }
    return 0;
}
