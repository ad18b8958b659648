/* Scales that bring operands into the range of a narrow format. */
#include "matmul/operand_scales.h"

#include "formats/scalar_ops.h"
#include "matmul/pack.h"

/* As a tf_visit_fn: raises the largest finite magnitude of each line by these numbers. */
static void find_greatest(const float *numbers, size_t n, size_t line, size_t step,
                          void *context)
{
    float *greatest = (float *)context + line;
    if (step) {
        tf_isa->matmul->greatest_of_each(numbers, n, greatest);
    } else {
        const float found = tf_isa->matmul->greatest_of_all(numbers, n);
        *greatest = found > *greatest ? found : *greatest;
    }
}

void tf_find_scales(struct tf_operand x, ptrdiff_t count, ptrdiff_t k, int own,
                    float whole, float *scales, struct tf_watch *watch)
{
    const int rounds = x.kind != x.format && x.format < TF_FORMAT_COUNT;
    memset(scales, 0, (size_t)count * sizeof *scales);
    float maximum = 1;
    if (rounds) {
        const struct tf_format f = *tf_format_rows[x.format];
        maximum = (float)tf_double_from_code(f, tf_maximum_magnitude(f));
        tf_visit_lines(x, (size_t)count, k, find_greatest, scales, watch, 1);
    }
    if (!own && count > 0) {
        float all = tf_isa->matmul->greatest_of_all(scales, (size_t)count);
        all = rounds && whole > all ? whole : all;
        for (ptrdiff_t i = 0; i < count; i++) {
            scales[i] = all;
        }
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        const float scale = scales[i] / maximum;
        scales[i] = scales[i] == 0 ? 1 : scale < 0x1p-126f ? 0x1p-126f : scale;
    }
}
