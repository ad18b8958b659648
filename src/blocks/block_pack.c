/* Packs codes of blocks into panels of numbers and of scales, which the loops of
 * kernels/block_matmul.c read. */
#include "blocks/block_pack.h"

#include <math.h>

#include "blocks/code_tables.h"
#include "blocks/kernels.h"
#include "matmul/pack.h"
#include "matmul/specials.h"
#include "runtime/sizes.h"

struct tf_packed_block_operand
tf_block_operand_from(struct tf_packed_block_operand operand, ptrdiff_t number,
                      ptrdiff_t line)
{
    struct tf_block_operand *x = &operand.x;
    for (int i = 0; i < x->levels; i++) {
        x->level[i].codes += number * x->level[i].step + line * x->level[i].line;
    }
    if (x->levels) {
        x->scales += number * x->scales_step + line * x->scales_line;
    } else {
        x->numbers += number * x->step + line * x->stride;
    }
    return operand;
}

/* Returns whether every code's number is a bfloat16 number. */
static int fits_bf16(const struct tf_block_operand *x)
{
    int fits = 1;
    for (int i = 0; i < x->levels; i++) {
        fits &= tf_elements[x->level[i].element].width <= 8;
    }
    return fits;
}

struct tf_operand tf_numbers_of(const struct tf_block_operand *x, ptrdiff_t k)
{
    struct tf_operand numbers = {.parts = 1};
    if (x->levels) {
        numbers.kind = fits_bf16(x) ? tf_bfloat16_index : TF_FLOAT32;
    } else {
        numbers.kind = x->kind;
        numbers.data = x->numbers + k * x->along;
        numbers.stride = x->stride;
        numbers.along = x->along;
    }
    numbers.format = numbers.kind;
    return numbers;
}

struct tf_exponents tf_block_exponents(const struct tf_block_operand *x)
{
    /* All numbers are multiples of 2^-16, the smallest number of float8_e5m2, which is the
     * last of 8 bits of a number with the exponent LEAST. */
    enum { LEAST = -16 + 7, GREATEST = 16 };
    return (struct tf_exponents){x->levels ? LEAST : 0, GREATEST};
}

/* -- packed words ------------------------------------------------------------------ */

/* Decodes `count` lines of one level, one after the other. */
static void decode_lines(const struct tf_block_level *level, size_t count, ptrdiff_t k,
                         size_t depth, int pairs, float *out)
{
    const struct tf_code_table *table = &tf_code_tables[level->element];
    const struct tf_block_product *loops = tf_isa->blocks->product;
    tf_words_of_codes_fn *decode =
        pairs ? loops->pairs_of_codes : loops->singles_of_codes;
    const size_t words = tf_packed_words(depth, pairs);
    const size_t bytes = (depth * table->element.width + 7) / 8;
    const uint8_t *codes = level->codes + k * table->element.width / 8;
    for (size_t i = 0; i < count; i++, codes += level->line, out += words) {
        tf_prefetch((const char *)codes + TF_AHEAD * level->line, bytes);
        decode(table, codes, depth, out);
    }
}

/* -- scales ------------------------------------------------------------------------ */

/* Writes a line's scales of one level, `distance` apart. */
static void load_scales(const struct tf_packed_block_operand *lines, size_t line, int level,
                        size_t first, size_t count, float *out, size_t distance)
{
    const struct tf_block_operand *x = &lines->x;
    const size_t levels = (size_t)x->levels;
    if (!levels) {
        for (size_t q = 0; q < count; q++) {
            out[q * distance] = 1;
        }
        return;
    }
    const uint8_t *codes =
        x->scales + (ptrdiff_t)line * x->scales_line + first * levels;
    for (size_t q = 0; q < count; q++, codes += levels) {
        const float s = lines->values[codes[0]];
        out[q * distance] = level ? s * lines->residuals[codes[1]] : s;
    }
}

static size_t levels_of(const struct tf_packed_block_operand *lines)
{
    return lines->x.levels ? (size_t)lines->x.levels : 1;
}

/* -- words and scales ----------------------------------------------------------------- */

void tf_pack_block_rows(struct tf_workspace *work, const struct tf_packed_block_operand *a,
                        size_t rows, ptrdiff_t k, size_t depth, int pairs,
                        struct tf_magnitude_range *range)
{
    const size_t words = tf_packed_words(depth, pairs);
    const size_t first = (size_t)(k / a->block);
    const size_t blocks = tf_ceil_div(depth, a->block);
    const size_t filled = tf_ceil_div(rows, TF_MR);
    if (!a->x.levels) {
        tf_pack_a(work, tf_numbers_of(&a->x, k), rows, TF_MR, depth, pairs,
                  words, range);
    }
    for (size_t level = 0; level < levels_of(a); level++) {
        float *out = work->a + level * TF_PACKED_A;
        float *scales = work->a + TF_SCALES_OF_A + level * TF_LEVEL_OF_A;
        if (a->x.levels) {
            decode_lines(&a->x.level[level], rows, k, depth, pairs, out);
        }
        for (size_t i = 0; i < rows; i++) {
            load_scales(a, i, (int)level, first, blocks, scales + i * blocks, 1);
        }
        for (size_t i = rows; i < filled * TF_MR; i++) {
            memset(out + i * words, 0, words * sizeof *out);
            memset(scales + i * blocks, 0, blocks * sizeof *scales);
        }
    }
}

void tf_pack_block_columns(struct tf_workspace *work, const struct tf_packed_block_operand *b,
                           size_t columns, ptrdiff_t k, size_t depth, int pairs,
                           struct tf_magnitude_range *range)
{
    const size_t words = tf_packed_words(depth, pairs);
    const size_t width = tf_isa->blocks->product->columns;
    const size_t first = (size_t)(k / b->block);
    const size_t blocks = tf_ceil_div(depth, b->block);
    if (!b->x.levels) {
        tf_pack_b(work, tf_numbers_of(&b->x, k), columns, depth, pairs, width, range);
    }
    for (size_t j = 0; j < columns; j += width) {
        const size_t count = tf_min_size(columns - j, width);
        const struct tf_packed_block_operand panel = tf_block_operand_from(*b, 0, (ptrdiff_t)j);
        for (size_t level = 0; level < levels_of(b); level++) {
            float *out = work->b + level * TF_PACKED_B + j * words;
            float *scales =
                work->b + TF_SCALES_OF_B + level * TF_LEVEL_OF_B + j * blocks;
            if (b->x.levels) {
                if (count < width) {
                    memset(out, 0, width * words * sizeof *out);
                }
                decode_lines(&panel.x.level[level], count, k, depth, pairs,
                             work->lines);
                tf_isa->matmul->transpose(work->lines, words, count, words, out,
                                           width);
            }
            if (count < width) {
                memset(scales, 0, width * blocks * sizeof *scales);
            }
            for (size_t i = 0; i < count; i++) {
                load_scales(&panel, i, (int)level, first, blocks, scales + i, width);
            }
        }
    }
}

/* -- Inf and NaN ------------------------------------------------------------------- */

void tf_mark_block_lines(struct tf_workspace *work, const struct tf_packed_block_operand *lines,
                         size_t count, ptrdiff_t k, uint8_t *marks)
{
    const struct tf_block_operand *x = &lines->x;
    float numbers[TF_KC];
    if (!x->levels) {
        tf_flag_specials_rows(tf_numbers_of(x, 0), count, k, marks, work->watch, work->asks);
        return;
    }
    memset(marks, 0, count);
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_KC) {
        const size_t depth = tf_min_size(TF_KC, k - k0);
        const size_t blocks = tf_ceil_div(depth, lines->block);
        for (int level = 0; level < x->levels; level++) {
            struct tf_block_level line = x->level[level];
            for (size_t i = 0; i < count; i++, line.codes += line.line) {
                decode_lines(&line, 1, k0, depth, 0, numbers);
                tf_flag_specials(numbers, depth, i, 0, marks);
                load_scales(lines, i, level, (size_t)(k0 / lines->block), blocks,
                            numbers, 1);
                tf_flag_specials(numbers, blocks, i, 0, marks);
            }
        }
    }
}
