/* The table of precisions, and the search for a name. */
#define _POSIX_C_SOURCE 200809L /* strcasecmp */

#include "matmul/precisions.h"

#include <stddef.h>
#include <strings.h>

#include "formats/formats.h"
#include "formats/number_kinds.h"

const struct tf_precision_row tf_precisions[] = {
    {"F32_F32_F32", "f32", TF_FLOAT32, 1, 1},
    {"TF32_TF32_F32", "tf32", tf_tf32_index, 1, 1},
    {"TF32_TF32_F32_X3", "tf32x3", tf_tf32_index, 2, 2},
    {"BF16_BF16_F32", "bf16", tf_bfloat16_index, 1, 1},
    {"BF16_BF16_F32_X3", "bf16x3", tf_bfloat16_index, 2, 2},
    {"BF16_BF16_F32_X6", "bf16x6", tf_bfloat16_index, 3, 3},
    {"BF16_BF16_F32_X9", "bf16x9", tf_bfloat16_index, 3, 5},
    {"F16_F16_F32", "f16", TF_FLOAT16, 1, 1},
    {"F8E4M3FN_F8E4M3FN_F32", "fp8_e4m3", tf_float8_e4m3fn_index, 1, 1},
    {"F8E5M2_F8E5M2_F32", "fp8_e5m2", tf_float8_e5m2_index, 1, 1},
    {NULL, NULL, 0, 0, 0},
};

const struct tf_precision_row *tf_find_precision(const char *name)
{
    for (const struct tf_precision_row *row = tf_precisions; row->name; row++) {
        if (strcasecmp(name, row->name) == 0 || strcasecmp(name, row->preset) == 0) {
            return row;
        }
    }
    return NULL;
}
