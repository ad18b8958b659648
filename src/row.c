/* One row times a matrix, which is read once, in the order of its memory. */
#include "bytes.h"
#include "casts.h"
#include "dots.h"
#include "tile.h"

/* -- as float32 -------------------------------------------------------------------- */

enum { SINGLE = sizeof(float), VECTOR = TF_DOT_CHAINS };

/* Whether the kernels read a matrix as it lies in memory: `near` and `far` are its
 * strides. */
static int is_plain(struct tf_lines b, ptrdiff_t near, ptrdiff_t far)
{
    return b.kind == b.format && tf_kind_size(b.kind) == SINGLE && near == SINGLE &&
           far % SINGLE == 0 && (uintptr_t)b.data % SINGLE == 0;
}

/* The sums of some columns over one depth. */
static void multiply_row_singles(struct tf_workspace *work, const struct tf_tile *tile,
                                 size_t depth, float *sums, int adds)
{
    enum { PANEL = 64 };
    float *x = work->a;
    const struct tf_row *row = tf_isa->product->row;
    const int across = is_plain(tile->b, tile->b.stride, tile->b.along);
    const int along = tf_runs_along(tile->b);
    const uint32_t used = tile->b.format < TF_FORMAT_COUNT
                              ? tf_used_bits(*tf_format_rows[tile->b.format])
                              : UINT32_MAX;
    float *part = work->sums + TF_WIDE_ROW;
    tf_pack_along(work, tile->a, 1, depth, 0, x, depth, 0, NULL);
    memset(x + depth, 0, TF_DOT_WHOLE * sizeof *x);
    for (size_t j = 0, width; j < tile->columns; j += width) {
        const struct tf_lines b = tf_lines_from(tile->b, (ptrdiff_t)j, 0);
        const size_t left = tile->columns - j;
        if (across && left >= VECTOR) {
            width = left / VECTOR * VECTOR;
            row->across_singles(x, b.data, b.along, used, depth, width, part);
        } else if (along && left >= VECTOR &&
                   tf_dot_vector(b, x, depth, (uint16_t *)work->lines, part)) {
            width = VECTOR;
        } else {
            width = left < PANEL ? left : PANEL;
            tf_pack_b(work, b, width, depth, 0, PANEL, NULL);
            row->across_singles(x, (const char *)work->b, PANEL * sizeof(float),
                                UINT32_MAX, depth,
                                (width + VECTOR - 1) / VECTOR * VECTOR, part);
        }
        tf_add_row(part, sums + j, width, adds);
    }
}

/* -- as slots --------------------------------------------------------------------- */

/* The row's slots, of as many k as there is room for, and what magnitudes it has. */
static struct tf_exponents pack_row(struct tf_workspace *work, struct tf_lines a,
                                    size_t k)
{
    struct tf_range range = tf_no_range();
    for (size_t k0 = 0; k0 < k; k0 += TF_DEPTH) {
        tf_pack_along(work, tf_lines_from(a, 0, (ptrdiff_t)k0), 1,
                      tf_lesser_size(TF_DEPTH, (ptrdiff_t)(k - k0)), 1,
                      work->row + k0 / 2, 0, 0, &range);
    }
    return tf_exponents_of(&range);
}

/* Whether the kernels read a matrix as it lies in memory: its numbers' distance is
 * `stride`. */
static int is_direct(struct tf_lines b, ptrdiff_t stride, int normal)
{
    return b.kind == b.format && stride == (ptrdiff_t)tf_kind_size(b.kind) &&
           (b.kind == tf_bfloat16_index || normal);
}

/* Columns side by side, over one depth; `exponents` are the row's. */
static void multiply_row_across(struct tf_workspace *work, const struct tf_tile *tile,
                                const float *slots, struct tf_exponents exponents,
                                size_t depth, float *sums, int adds)
{
    enum { PIECE = 512 }; /* of what has to be copied */
    const struct tf_row *row = tf_isa->product->row;
    const int normal = tf_always_normal(tile->a, tile->b);
    const int direct = is_direct(tile->b, tile->b.stride, normal);
    const int bytes = direct && tile->b.kind != tf_bfloat16_index;
    float *part = work->sums + 2 * TF_WIDE_ROW;
    for (size_t j = 0, width; j < tile->columns; j += width) {
        struct tf_tile piece = *tile;
        piece.b = tf_lines_from(tile->b, (ptrdiff_t)j, 0);
        piece.columns = tf_lesser_size(direct ? TF_WIDE_ROW : PIECE,
                                       (ptrdiff_t)(tile->columns - j));
        const size_t whole = piece.columns / TF_ROW_COLUMNS * TF_ROW_COLUMNS;
        piece.columns = width = whole ? whole : piece.columns;
        struct tf_range range = tf_no_range();
        if (whole && direct) {
            (bytes ? row->across_bytes : row->across_halves)(
                &tf_byte_tables[bytes ? tile->b.kind : 0], slots, piece.b.data,
                piece.b.along, depth, whole, part, &range);
        } else if (whole) {
            uint16_t *copy = (uint16_t *)work->lines;
            for (size_t k = 0; k < depth; k++, copy += whole) {
                const uint16_t *halves =
                    tf_load_halves(tf_lines_from(piece.b, 0, (ptrdiff_t)k),
                                   piece.b.stride, whole, 1, copy, 0, NULL);
                if (halves != copy) {
                    memcpy(copy, halves, whole * sizeof *copy);
                }
            }
            row->across_halves(NULL, slots, (const char *)work->lines,
                               (ptrdiff_t)(whole * sizeof *copy), depth, whole, part,
                               &range);
        }
        if (whole && (normal || tf_all_normal(exponents, tf_exponents_of(&range)))) {
            tf_add_row(part, sums + j, whole, adds);
        } else {
            multiply_row_singles(work, &piece, depth, sums + j, adds);
        }
    }
}

/* Columns along k: lanes of a group are depths of one column, or of as many as there
 * are lanes for. */
struct lanes {
    size_t depths, columns; /* of a group */
    size_t last;            /* k of the last depth */
};

static struct lanes lanes_for(size_t k)
{
    struct lanes lanes;
    lanes.depths = (k + TF_DEPTH - 1) / TF_DEPTH;
    lanes.columns = TF_ROW_GROUP / lanes.depths;
    lanes.last = k - (lanes.depths - 1) * TF_DEPTH;
    return lanes;
}

/* The row's slots for these lanes; 0 in those unused and behind the last depth. */
static void spread_row(struct tf_workspace *work, struct lanes lanes)
{
    enum { SLOTS = TF_DEPTH / 2 };
    float *rest = work->row + (lanes.depths - 1) * SLOTS + tf_slots_of(lanes.last, 1);
    memset(rest, 0, (SLOTS - tf_slots_of(lanes.last, 1)) * sizeof *rest);
    for (size_t slot = 0; slot < SLOTS; slot++) {
        float *out = work->lanes + slot * TF_ROW_GROUP;
        memset(out, 0, TF_ROW_GROUP * sizeof *out);
        for (size_t lane = 0; lane < lanes.columns * lanes.depths; lane++) {
            out[lane] = work->row[lane % lanes.depths * SLOTS + slot];
        }
    }
}

/* A line of one column and depth as the kernels read it. */
static const char *line_for(struct tf_lines b, size_t depth, int direct, int bytes,
                            uint16_t *copy)
{
    if (direct && depth == TF_DEPTH) {
        return b.data;
    }
    memset(copy, 0, TF_DEPTH * sizeof *copy);
    if (bytes) {
        memcpy(copy, b.data, depth);
        return (const char *)copy;
    }
    const uint16_t *halves = tf_load_halves(b, b.along, depth, 0, copy, 0, NULL);
    if (halves != copy) {
        memcpy(copy, halves, depth * sizeof *copy);
    }
    return (const char *)copy;
}

/* The lines of `count` columns from column j on; those of the group before it are known
 * if they are followed by these in equal steps. */
static void find_lines(struct tf_workspace *work, const struct tf_lines *b,
                       struct lanes lanes, size_t j, size_t count, int direct,
                       int bytes, const char *lines[TF_ROW_LINES])
{
    const size_t together = TF_ROW_GROUPS * lanes.columns;
    if (j > 0 && direct && lanes.last == TF_DEPTH && count == together) {
        for (size_t i = 0; i < TF_ROW_LINES; i++) {
            lines[i] += (ptrdiff_t)together * b->stride;
        }
        return;
    }
    for (size_t i = 0; i < TF_ROW_LINES; i++) {
        const size_t lane = i % TF_ROW_GROUP;
        const size_t column = i / TF_ROW_GROUP * lanes.columns + lane / lanes.depths;
        const size_t d = lane % lanes.depths;
        if (i > 0) {
            lines[i] = lines[0]; /* of what is not used */
        }
        if (column < count && lane < lanes.columns * lanes.depths) {
            lines[i] = line_for(
                tf_lines_from(*b, (ptrdiff_t)(j + column), (ptrdiff_t)(d * TF_DEPTH)),
                d + 1 < lanes.depths ? TF_DEPTH : lanes.last, direct, bytes,
                (uint16_t *)work->lines + i * TF_DEPTH);
        }
    }
}

static void multiply_row_along(struct tf_workspace *work, const struct tf_tile *tile,
                               struct tf_exponents exponents, size_t k, float *sums,
                               int adds)
{
    enum { AHEAD = 4 }; /* groups */
    const struct lanes lanes = lanes_for(k);
    const int normal = tf_always_normal(tile->a, tile->b);
    const int direct = is_direct(tile->b, tile->b.along, normal);
    const int bytes = direct && tile->b.kind != tf_bfloat16_index;
    const size_t together = TF_ROW_GROUPS * lanes.columns;
    const char *lines[TF_ROW_LINES], *ahead[TF_ROW_GROUPS];
    float part[TF_ROW_LINES];
    spread_row(work, lanes);
    for (size_t j = 0; j < tile->columns; j += together) {
        const size_t count =
            tf_lesser_size((ptrdiff_t)together, (ptrdiff_t)(tile->columns - j));
        find_lines(work, &tile->b, lanes, j, count, direct, bytes, lines);
        for (size_t g = 0; g < TF_ROW_GROUPS; g++) {
            ahead[g] =
                tf_lines_from(tile->b, (ptrdiff_t)(j + (g + AHEAD) * lanes.columns), 0)
                    .data;
        }
        struct tf_range range = tf_no_range();
        (bytes ? tf_isa->product->row->along_bytes
               : tf_isa->product->row->along_halves)(
            &tf_byte_tables[bytes ? tile->b.kind : 0], work->lanes, lines, ahead, part,
            &range);
        const int exact = normal || tf_all_normal(exponents, tf_exponents_of(&range));
        for (size_t column = 0; column < count; column++) {
            const float *from = part + column / lanes.columns * TF_ROW_GROUP +
                                column % lanes.columns * lanes.depths;
            float sum = adds ? sums[j + column] + from[0] : from[0];
            for (size_t d = 1; d < lanes.depths; d++) {
                sum += from[d];
            }
            sums[j + column] = exact ? sum : sums[j + column];
            work->failed[j + column] = !exact;
        }
    }
    /* Where that is not exact: as many columns together as there are. */
    for (size_t j = 0, count; j < tile->columns; j += count) {
        for (count = 1;
             j + count < tile->columns && work->failed[j + count] == work->failed[j];
             count++) {
        }
        struct tf_tile piece = *tile;
        piece.b = tf_lines_from(tile->b, (ptrdiff_t)j, 0);
        piece.columns = count;
        for (size_t k0 = 0; work->failed[j] && k0 < k; k0 += TF_DEPTH) {
            const struct tf_tile block = tf_tile_from(piece, (ptrdiff_t)k0);
            multiply_row_singles(work, &block,
                                 tf_lesser_size(TF_DEPTH, (ptrdiff_t)(k - k0)),
                                 sums + j, adds || k0);
        }
    }
}

/* -- rows of any length ------------------------------------------------------------ */

static void multiply_as_singles(struct tf_workspace *work, const struct tf_tile *tile,
                                ptrdiff_t k)
{
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_DEPTH) {
        const struct tf_tile here = tf_tile_from(*tile, k0);
        multiply_row_singles(work, &here, tf_lesser_size(TF_DEPTH, k - k0), work->sums,
                             k0 != 0);
    }
}

static void multiply_as_slots(struct tf_workspace *work, const struct tf_tile *tile,
                              ptrdiff_t k)
{
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_ROW) {
        const size_t count = tf_lesser_size(TF_ROW, k - k0);
        const struct tf_tile here = tf_tile_from(*tile, k0);
        const struct tf_exponents exponents = pack_row(work, here.a, count);
        if (tf_runs_along(tile->b)) {
            multiply_row_along(work, &here, exponents, count, work->sums, k0 != 0);
            continue;
        }
        for (size_t k1 = 0; k1 < count && !tf_stops(work); k1 += TF_DEPTH) {
            const struct tf_tile block = tf_tile_from(here, (ptrdiff_t)k1);
            multiply_row_across(work, &block, work->row + k1 / 2, exponents,
                                tf_lesser_size(TF_DEPTH, (ptrdiff_t)(count - k1)),
                                work->sums, k0 || k1);
        }
    }
}

int tf_is_row(struct tf_lines a, ptrdiff_t rows) { return rows == 1 && a.parts == 1; }

void tf_multiply_row(struct tf_workspace *work, const struct tf_tile *tile, ptrdiff_t k)
{
    /* Short lines would be filled up to a depth. */
    const int fits = k >= TF_DEPTH || !tf_runs_along(tile->b);
    if (fits && tf_isa->product->row->across_halves &&
        tf_can_have_pairs(tile->a, tile->b)) {
        multiply_as_slots(work, tile, k);
    } else {
        multiply_as_singles(work, tile, k);
    }
}
