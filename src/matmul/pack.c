/* Packs operands of products as words, in panels for the micro-kernels. */
#include "matmul/pack.h"

#include <stdlib.h>

#include "formats/byte_tables.h"
#include "formats/casts.h"
#include "formats/codec.h"
#include "matmul/int8_dot.h"
#include "runtime/asserts.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"

int tf_runs_along(struct tf_operand x) { return tf_distance(x.along) <= tf_distance(x.stride); }

size_t tf_packed_words(size_t depth, int packing)
{
    return packing == TF_QUADS   ? tf_quad_words(depth)
           : packing == TF_PAIRS ? (depth + 1) / 2
                              : depth;
}

/* -- conversion of numbers --------------------------------------------------------- */

const float *tf_load_floats(int kind, const char *data, ptrdiff_t stride, size_t n,
                            float *buffer)
{
    TF_BUFFER(gathered);
    if (kind == TF_FLOAT32) {
        return tf_gather(data, stride, sizeof(float), n, buffer);
    }
    const void *items = tf_gather(data, stride, tf_kind_size(kind), n, gathered);
    if (kind == TF_FLOAT64) {
        const double *numbers = items;
        for (size_t i = 0; i < n; i++) {
            buffer[i] = (float)numbers[i];
        }
    } else {
        tf_isa->formats->conversions[kind].to_float32(items, buffer, n);
    }
    return buffer;
}

void tf_load_lines(struct tf_operand x, size_t k, size_t count, float *out)
{
    const ptrdiff_t size = (ptrdiff_t)tf_kind_size(x.kind);
    const int adjoin = x.along == size && x.stride == size * (ptrdiff_t)k;
    const size_t joined = adjoin && k <= TF_CHUNK ? TF_CHUNK / k : 1;
    for (size_t i = 0; i < count; i += joined) {
        const size_t lines = tf_min_size(count - i, joined);
        float *to = out + i * k;
        const float *from = tf_load_floats(
            x.kind, tf_operand_from(x, (ptrdiff_t)i, 0).data, x.along, lines * k, to);
        if (from != to) {
            memcpy(to, from, lines * k * sizeof *to);
        }
    }
}

/* Rounds float32 numbers to tf32, to ties_to_away or toward_zero. The unused bits of the
 * items keep the rest, because they are not read. */
static void round_to_tf32(const float *in, uint32_t *out, size_t n, int rounding)
{
    const uint32_t half = rounding == TF_TIES_TO_AWAY ? UINT32_C(1) << 12 : 0;
    memcpy(out, in, n * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = out[i] & TF_MAGNITUDE_BITS;
        const uint32_t nan = TF_QUIET_NAN_BITS;
        out[i] = magnitude > TF_INF_BITS ? nan : out[i] + half;
    }
}

/* Returns n numbers as items of their format, in the buffer or where they are in memory.
 * x.scales has one scale for all numbers (step 0) or one for each (step 1). */
static const void *load_items(struct tf_operand x, ptrdiff_t stride, size_t n,
                              ptrdiff_t step, void *buffer)
{
    float numbers[TF_CHUNK], quotients[TF_CHUNK];
    if (x.kind == x.format) {
        return tf_gather(x.data, stride, tf_kind_size(x.kind), n, buffer);
    }
    const float *floats = tf_load_floats(x.kind, x.data, stride, n, numbers);
    if (x.scales) {
        for (size_t i = 0; i < n; i++) {
            quotients[i] = floats[i] / x.scales[(ptrdiff_t)i * step];
        }
        floats = quotients;
    }
    if (x.format == TF_FLOAT32) {
        memcpy(buffer, floats, n * sizeof *floats);
    } else if (x.rounding != TF_TIES_TO_EVEN) {
        round_to_tf32(floats, buffer, n, x.rounding);
    } else {
        tf_isa->formats->conversions[x.format].from_float32(floats, buffer, n);
    }
    return buffer;
}

/* Writes these numbers as float32, in components that are `distance` apart. */
static void load_singles(struct tf_operand x, ptrdiff_t stride, size_t n, ptrdiff_t step,
                         float *out, size_t distance, struct tf_magnitude_range *range)
{
    TF_BUFFER(buffer);
    const void *items = load_items(x, stride, n, step, buffer);
    if (x.parts > 1) {
        tf_isa->matmul->split_singles(items, n, x.p, x.parts, out, distance, range);
    } else if (x.format == TF_FLOAT32) {
        memcpy(out, items, n * sizeof *out);
    } else {
        tf_isa->formats->conversions[x.format].to_float32(items, out, n);
    }
}

int tf_load_line(struct tf_operand x, size_t n, float *out, size_t distance)
{
    struct tf_magnitude_range range = {{0}, {0}};
    for (size_t i = 0; i < n; i += TF_CHUNK) {
        const size_t count = tf_min_size(n - i, TF_CHUNK);
        load_singles(tf_operand_from(x, 0, (ptrdiff_t)i), x.along, count, 0, out + i,
                     distance, &range);
    }
    tf_isa->matmul->reduce_range(&range);
    return range.greatest[0] >= TF_BF16_INF_BITS;
}

void tf_visit_lines(struct tf_operand x, size_t count, ptrdiff_t k, tf_visit_fn *visit,
                    void *context, struct tf_watch *watch, int asks)
{
    enum { PIECES = 64 }; /* chunks between questions whether the call is stopped */
    unsigned visited = 0;
    float buffer[TF_CHUNK];
    /* The stride of a single line is arbitrary and may be 0. */
    const int along = count == 1 || tf_runs_along(x);
    const ptrdiff_t lines = along ? (ptrdiff_t)count : k;
    const ptrdiff_t length = along ? k : (ptrdiff_t)count;
    for (ptrdiff_t i = 0; i < lines; i++) {
        for (ptrdiff_t j = 0; j < length; j += TF_CHUNK) {
            const struct tf_operand from =
                along ? tf_operand_from(x, i, j) : tf_operand_from(x, j, i);
            const size_t n = tf_min_size(length - j, TF_CHUNK);
            const float *numbers = tf_load_floats(
                x.kind, from.data, along ? x.along : x.stride, n, buffer);
            visit(numbers, n, (size_t)(along ? i : j), !along, context);
            if (++visited % PIECES == 0 && tf_is_stopped(watch, asks)) {
                return;
            }
        }
    }
}

const uint16_t *tf_load_bf16(struct tf_operand x, ptrdiff_t stride, size_t n,
                               ptrdiff_t step, uint16_t *out, size_t distance,
                               struct tf_magnitude_range *range)
{
    const uint16_t *bf16 = out;
    if (x.parts == 1 && x.format == tf_bfloat16_index) {
        bf16 = load_items(x, stride, n, step, out);
    } else {
        TF_BUFFER(buffer);
        const void *items = load_items(x, stride, n, step, buffer);
        if (x.parts > 1) {
            tf_isa->matmul->split_bf16(items, n, x.parts, out, distance, range);
            return out;
        }
        tf_isa->formats->bf16_of_bytes(&tf_byte_tables[x.format], items, out, n);
    }
    if (range) {
        tf_isa->matmul->note_least(bf16, n, range);
    }
    return bf16;
}

/* -- packing ----------------------------------------------------------------------- */

/* Returns n numbers with zeros from n up to `whole`, in the buffer if n < whole. */
static const uint16_t *fill(const uint16_t *bf16, size_t n, size_t whole,
                            uint16_t *buffer)
{
    if (n == whole) {
        return bf16;
    }
    memmove(buffer, bf16, n * sizeof *bf16);
    memset(buffer + n, 0, (whole - n) * sizeof *bf16);
    return buffer;
}

void tf_pack_along(struct tf_workspace *work, struct tf_operand x, size_t count,
                   size_t depth, int pairs, float *out, size_t ld, size_t distance,
                   struct tf_magnitude_range *range)
{
    const size_t words = tf_packed_words(depth, pairs);
    uint16_t *buffer = work->bf16[0][0];
    /* Several short lines without gaps are converted as one line. */
    const int joined = x.stride == (ptrdiff_t)depth * x.along && !x.scales &&
                       ld == words && depth == (pairs + 1) * words &&
                       2 * depth <= TF_CHUNK;
    const size_t together = joined ? TF_CHUNK / depth : 1;
    for (size_t i = 0; i < count; i += together) {
        const struct tf_operand from = tf_operand_from(x, (ptrdiff_t)i, 0);
        const size_t lines = tf_min_size(count - i, together);
        const size_t n = lines * depth, whole = lines * words;
        float *line = out + i * ld;
        tf_prefetch(from.data + TF_AHEAD * x.stride, n * tf_kind_size(x.kind));
        if (!pairs) {
            load_singles(from, x.along, n, 0, line, distance, range);
            continue;
        }
        const uint16_t *bf16 =
            tf_load_bf16(from, x.along, n, 0, buffer, TF_CHUNK, range);
        for (int part = 0; part < x.parts; part++) {
            const uint16_t *filled =
                fill(bf16 + part * TF_CHUNK, n, 2 * whole, buffer + part * TF_CHUNK);
            tf_isa->matmul->pair_neighbors(filled, line + (size_t)part * distance,
                                             whole);
        }
    }
}

/* Packs pairs of numbers that are not split, with lines side by side. bfloat16 numbers are
 * paired where they are in memory; others are converted first, some rows at a time. */
static void pair_across(struct tf_workspace *work, struct tf_operand x, size_t count,
                        size_t depth, float *out, size_t width, struct tf_magnitude_range *range)
{
    const size_t words = tf_packed_words(depth, 1);
    struct tf_magnitude_range ignored = {0};
    range = range ? range : &ignored;
    if (x.kind == tf_bfloat16_index && x.stride == 2 && (uintptr_t)x.data % 2 == 0 &&
        x.along % 2 == 0) {
        tf_isa->matmul->pair_matrix((const uint16_t *)x.data, x.along, depth, count,
                                     width, words, out, range);
        return;
    }
    uint16_t *bf16 = work->bf16[0][0];
    const int joined =
        x.along == (ptrdiff_t)count * x.stride && !x.scales && 2 * count <= TF_CHUNK;
    const size_t rows = joined ? TF_CHUNK / count / 2 * 2 : 2;
    for (size_t k = 0; k < depth; k += rows) {
        const size_t here = tf_min_size(depth - k, rows);
        for (size_t i = 0; i < (joined ? 1 : here); i++) {
            const struct tf_operand from = tf_operand_from(x, 0, (ptrdiff_t)(k + i));
            const size_t n = joined ? here * count : count;
            uint16_t *place = bf16 + i * count;
            tf_prefetch(from.data + TF_AHEAD / 2 * x.along, n * tf_kind_size(x.kind));
            const uint16_t *found =
                tf_load_bf16(from, x.stride, n, 1, place, 0, NULL);
            if (found != place) {
                memcpy(place, found, n * sizeof *place);
            }
        }
        tf_isa->matmul->pair_matrix(bf16, (ptrdiff_t)(count * sizeof *bf16), here,
                                     count, width, words, out + k / 2 * width, range);
    }
}

/* Packs numbers as float32, with lines side by side. Converts as many rows at a time as fit
 * in a chunk, if rows adjoin and are short. */
static void lay_across(struct tf_workspace *work, struct tf_operand x, size_t count,
                       size_t depth, float *out, size_t distance, size_t width,
                       struct tf_magnitude_range *range)
{
    const int joined =
        x.along == (ptrdiff_t)count * x.stride && !x.scales && 2 * count <= TF_CHUNK;
    const size_t rows = joined ? TF_CHUNK / count : 1;
    const size_t bytes = rows * count * tf_kind_size(x.kind);
    for (size_t k = 0; k < depth; k += rows, out += rows * width) {
        const size_t here = tf_min_size(depth - k, rows);
        const struct tf_operand from = tf_operand_from(x, 0, (ptrdiff_t)k);
        tf_prefetch(from.data + TF_AHEAD / 2 * x.along, bytes);
        load_singles(from, x.stride, here * count, 1, work->singles[0], TF_CHUNK,
                     range);
        for (int part = 0; part < x.parts; part++) {
            tf_isa->matmul->lay_out(work->singles[part], here, count,
                                     out + (size_t)part * distance, width,
                                     width * depth);
        }
    }
}

/* Packs lines of x that do not run along k, side by side in panels of `width`. */
static void pack_across(struct tf_workspace *work, struct tf_operand x, size_t count,
                        size_t depth, int pairs, float *out, size_t distance,
                        size_t width, struct tf_magnitude_range *range)
{
    if (!pairs) {
        lay_across(work, x, count, depth, out, distance, width, range);
        return;
    }
    if (x.parts == 1) {
        pair_across(work, x, count, depth, out, width, range);
        return;
    }
    const size_t words = tf_packed_words(depth, 1);
    const size_t bytes = count * tf_kind_size(x.kind);
    for (size_t word = 0; word < words; word++) {
        const uint16_t *bf16[2];
        for (size_t which = 0; which < 2; which++, x.data += x.along) {
            tf_prefetch(x.data + TF_AHEAD / 2 * x.along, bytes);
            if (2 * word + which < depth) {
                bf16[which] = tf_load_bf16(x, x.stride, count, 1,
                                             work->bf16[which][0], TF_CHUNK, range);
            } else {
                bf16[which] = work->bf16[which][0];
                memset(work->bf16[which], 0, sizeof work->bf16[which]);
            }
        }
        for (int part = 0; part < x.parts; part++) {
            float *place = out + (size_t)part * distance + word * width;
            for (size_t j = 0; j < count; j += width, place += width * words) {
                const size_t from = (size_t)part * TF_CHUNK + j;
                tf_isa->matmul->pair_rows(bf16[0] + from, bf16[1] + from, place,
                                           count - j < width ? count - j : width);
            }
        }
    }
}

void tf_pack_a(struct tf_workspace *work, struct tf_operand a, size_t rows, size_t whole,
               size_t depth, int packing, size_t lda, struct tf_magnitude_range *range)
{
    const size_t words = tf_packed_words(depth, packing);
    TF_ASSERT(rows > 0 && rows <= TF_MC && whole > 0 && lda >= words);
    TF_ASSERT(tf_round_up(rows, whole) * lda <=
              (size_t)(a.parts > 1 ? 1 : TF_PARTS) * TF_PACKED_A);
    if (packing == TF_QUADS) {
        tf_pack_quads_a(a, rows, depth, TF_MC_FILLED, work->lines, work->a, lda);
        return;
    }
    if (tf_runs_along(a)) {
        tf_pack_along(work, a, rows, depth, packing, work->a, lda, TF_PACKED_A, range);
    } else {
        pack_across(work, a, rows, depth, packing, work->lines, TF_OPERAND_PART,
                    TF_MC_FILLED, range);
    }
    for (int part = 0; part < a.parts; part++) {
        float *lines = work->a + part * TF_PACKED_A;
        if (!tf_runs_along(a)) {
            tf_isa->matmul->transpose(work->lines + part * TF_OPERAND_PART, TF_MC_FILLED,
                                       words, rows, lines, lda);
        }
        for (size_t i = rows; i % whole; i++) {
            memset(lines + i * lda, 0, words * sizeof(float));
        }
    }
}

size_t tf_pack_b(struct tf_workspace *work, struct tf_operand b, size_t columns,
                 size_t depth, int packing, size_t width,
                 struct tf_magnitude_range *range)
{
    const size_t words = tf_packed_words(depth, packing);
    TF_ASSERT(columns > 0 && width > 0 && width <= TF_NR_MAX);
    TF_ASSERT(tf_round_up(columns, width) * words <=
              (size_t)(b.parts > 1 ? 1 : TF_PARTS) * TF_PACKED_B);
    if (packing == TF_QUADS) {
        tf_pack_quads_b(b, columns, depth, width, work->lines, work->b);
        return words;
    }
    for (int part = 0; columns % width && part < b.parts; part++) {
        memset(work->b + part * TF_PACKED_B + columns / width * width * words, 0,
               width * words * sizeof(float));
    }
    if (!tf_runs_along(b)) {
        pack_across(work, b, columns, depth, packing, work->b, TF_PACKED_B, width,
                    range);
        return words;
    }
    for (size_t j = 0; j < columns; j += width) {
        const size_t count = tf_min_size(columns - j, width);
        const struct tf_operand panel = tf_operand_from(b, (ptrdiff_t)j, 0);
        tf_pack_along(work, panel, count, depth, packing, work->lines, words,
                      TF_OPERAND_PART, range);
        for (int part = 0; part < b.parts; part++) {
            tf_isa->matmul->transpose(
                work->lines + part * TF_OPERAND_PART, words, count, words,
                work->b + part * TF_PACKED_B + j * words, width);
        }
    }
    return words;
}
