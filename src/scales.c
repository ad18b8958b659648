#include "scales.h"

#include "elements.h"

/* The greatest finite magnitude of each line, read in the order of memory. */
static void find_greatest(struct tf_lines x, ptrdiff_t count, ptrdiff_t k,
                          float *greatest)
{
    float buffer[TF_BLOCK];
    const int along = tf_runs_along(x);
    const ptrdiff_t lines = along ? count : k;
    const ptrdiff_t length = along ? k : count;
    for (ptrdiff_t i = 0; i < lines; i++) {
        for (ptrdiff_t j = 0; j < length; j += TF_BLOCK) {
            const struct tf_lines from =
                along ? tf_lines_from(x, i, j) : tf_lines_from(x, j, i);
            const size_t n = (size_t)(length - j < TF_BLOCK ? length - j : TF_BLOCK);
            const float *numbers = tf_load_floats(
                x.kind, from.data, along ? x.along : x.stride, n, buffer);
            if (along) {
                const float found = tf_isa->product->greatest_of_all(numbers, n);
                greatest[i] = found > greatest[i] ? found : greatest[i];
            } else {
                tf_isa->product->greatest_of_each(numbers, n, greatest + j);
            }
        }
    }
}

void tf_find_scales(struct tf_lines x, ptrdiff_t count, ptrdiff_t k, int own,
                    float *scales)
{
    const int rounds = x.kind != x.format && x.format < TF_FORMAT_COUNT;
    memset(scales, 0, (size_t)count * sizeof *scales);
    float maximum = 1;
    if (rounds) {
        const struct tf_format f = *tf_format_rows[x.format];
        maximum = (float)tf_double_from_code(f, tf_maximum_magnitude(f));
        find_greatest(x, count, k, scales);
    }
    if (!own && count > 0) {
        const float all = tf_isa->product->greatest_of_all(scales, (size_t)count);
        for (ptrdiff_t i = 0; i < count; i++) {
            scales[i] = all;
        }
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        const float scale = scales[i] / maximum;
        scales[i] = scales[i] == 0 ? 1 : scale < 0x1p-126f ? 0x1p-126f : scale;
    }
}
