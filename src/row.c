/* One row times a matrix, which is read once, in the order of its memory. */
#include "bytes.h"
#include "casts.h"
#include "dots.h"
#include "tile.h"

/* -- as float32 -------------------------------------------------------------------- */

enum { SINGLE = sizeof(float), VECTOR = 16 };

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
    const uint32_t used = tile->b.format < TF_FORMAT_COUNT
                              ? tf_used_bits(*tf_format_rows[tile->b.format])
                              : UINT32_MAX;
    float *part = work->sums + TF_WIDE_ROW;
    tf_pack_along(work, tile->a, 1, depth, 0, x, depth, 0, NULL);
    for (size_t j = 0, width; j < tile->columns; j += width) {
        const struct tf_lines b = tf_lines_from(tile->b, (ptrdiff_t)j, 0);
        const size_t left = tile->columns - j;
        if (across && left >= VECTOR) {
            width = left / VECTOR * VECTOR;
            row->across_singles(x, b.data, b.along, used, depth, width, part);
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

/* -- columns along k --------------------------------------------------------------- */

/* Some of them side by side, over as many k as the row has room for; or 0. */
static int multiply_columns(struct tf_workspace *work, struct tf_lines b,
                            const float *x, size_t count, size_t k, float *sums,
                            int adds)
{
    float part[TF_DOT_LINES];
    for (size_t k0 = 0; k0 < k; k0 += TF_DEPTH) {
        const size_t depth = tf_lesser_size(TF_DEPTH, (ptrdiff_t)(k - k0));
        if (!tf_dot_vector(tf_lines_from(b, 0, (ptrdiff_t)k0), x + k0, count, depth,
                           tf_dot_room(work), part)) {
            return 0;
        }
        tf_add_row(part, sums, count, adds || k0);
    }
    return 1;
}

/* All of them; 0 where there is no kernel. */
static int multiply_row_along(struct tf_workspace *work, const struct tf_tile *tile,
                              size_t k, float *sums, int adds)
{
    float *x = work->a;
    tf_load_line(tile->a, k, x, 0);
    for (size_t i = k; i < k + TF_DOT_WHOLE; i++) {
        x[i] = -0.0f;
    }
    for (size_t j = 0, count; j < tile->columns; j += count) {
        count = tf_lesser_size(TF_DOT_LINES, (ptrdiff_t)(tile->columns - j));
        if (!multiply_columns(work, tf_lines_from(tile->b, (ptrdiff_t)j, 0), x, count,
                              k, sums + j, adds)) {
            return 0;
        }
    }
    return 1;
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
        for (size_t k1 = 0; k1 < count && !tf_stops(work); k1 += TF_DEPTH) {
            const struct tf_tile block = tf_tile_from(here, (ptrdiff_t)k1);
            multiply_row_across(work, &block, work->row + k1 / 2, exponents,
                                tf_lesser_size(TF_DEPTH, (ptrdiff_t)(count - k1)),
                                work->sums, k0 || k1);
        }
    }
}

static int multiply_as_lines(struct tf_workspace *work, const struct tf_tile *tile,
                             ptrdiff_t k)
{
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_ROW) {
        const struct tf_tile here = tf_tile_from(*tile, k0);
        if (!multiply_row_along(work, &here, tf_lesser_size(TF_ROW, k - k0), work->sums,
                                k0 != 0)) {
            return 0;
        }
    }
    return 1;
}

int tf_is_row(struct tf_lines a, ptrdiff_t rows) { return rows == 1 && a.parts == 1; }

void tf_multiply_row(struct tf_workspace *work, const struct tf_tile *tile, ptrdiff_t k)
{
    const int along = tf_runs_along(tile->b);
    if (along && multiply_as_lines(work, tile, k)) {
        return;
    }
    if (!along && tf_isa->product->row->across_halves &&
        tf_can_have_pairs(tile->a, tile->b)) {
        multiply_as_slots(work, tile, k);
    } else {
        multiply_as_singles(work, tile, k);
    }
}
