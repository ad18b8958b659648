/* Packs numbers of narrow formats as small integers, for the int8 dot product. */
#include "matmul/int8_dot.h"

#include <math.h>

#include "formats/byte_tables.h"
#include "matmul/kernels.h"
#include "runtime/sizes.h"

static int is_readable(struct tf_operand x)
{
    return x.kind < TF_FORMAT_COUNT && x.kind == x.format && x.parts == 1 &&
           tf_byte_tables[x.kind].has_integers && (x.along == 1 || x.stride == 1);
}

int tf_has_quads(struct tf_operand a, struct tf_operand b)
{
    return tf_isa->quads->kernel.multiply && is_readable(a) && is_readable(b);
}

float tf_quad_unit(struct tf_operand a, struct tf_operand b)
{
    return ldexpf(1, tf_least_exponent(*tf_format_rows[a.kind]) +
                         tf_least_exponent(*tf_format_rows[b.kind]));
}

size_t tf_quad_words(size_t depth)
{
    return tf_ceil_div(depth, TF_QUAD) + tf_ceil_div(depth, TF_KC);
}

void tf_pack_quads_a(struct tf_operand a, size_t rows, size_t depth, size_t width,
                     float *lines, float *out, size_t lda)
{
    const int8_t *integers = tf_byte_tables[a.kind].integers;
    const size_t words = tf_quad_words(depth);
    if (a.along == 1) {
        tf_isa->quads->lay_lines(integers, 1, a.data, a.stride, rows, depth, out,
                                         lda);
        return;
    }
    tf_isa->quads->lay_rows(integers, 1, a.data, a.along, depth, rows, width,
                                    words,
                            lines);
    tf_isa->matmul->transpose(lines, width, words, rows, out, lda);
}

void tf_pack_quads_b(struct tf_operand b, size_t columns, size_t depth, size_t width,
                     float *lines, float *out)
{
    const int8_t *integers = tf_byte_tables[b.kind].integers;
    const size_t words = tf_quad_words(depth);
    if (b.along != 1) {
        tf_isa->quads->lay_rows(integers, 0, b.data, b.along, depth, columns, width,
                                words, out);
    }
    for (size_t j = 0; b.along == 1 && j < columns; j += width) {
        const size_t count = tf_min_size(columns - j, width);
        const struct tf_operand panel = tf_operand_from(b, (ptrdiff_t)j, 0);
        tf_isa->quads->lay_lines(integers, 0, panel.data, panel.stride, count, depth,
                                 lines, words);
        tf_isa->matmul->transpose(lines, words, count, words, out + j * words, width);
    }
    tf_isa->quads->begin_chains(out, columns, width, words);
}
