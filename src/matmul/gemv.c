/* Multiplies one row by a matrix, which is read once, in the order of memory. */
#include "formats/byte_tables.h"
#include "formats/casts.h"
#include "matmul/dot.h"
#include "matmul/epilogue.h"
#include "matmul/gemv.h"
#include "matmul/pack.h"
#include "runtime/sizes.h"

/* -- columns side by side ---------------------------------------------------------- */

enum { VECTOR = 16 }; /* across_singles takes a multiple of so many columns */

/* Returns the kernel for rows of a matrix where they are in memory, or NULL. Writes how
 * many columns it takes at a time. */
static tf_gemv_fn *kernel_of(struct tf_operand b, size_t *columns)
{
    const struct tf_gemv_kernels *gemv = tf_isa->gemv;
    const size_t size = tf_kind_size(b.kind);
    if (b.kind != b.format || b.stride != (ptrdiff_t)size) {
        return NULL;
    }
    *columns = size == sizeof(float) ? VECTOR : TF_GEMV_COLUMNS;
    if (size == sizeof(float)) {
        const int aligned = ((uintptr_t)b.data | (uintptr_t)b.along) % size == 0;
        return aligned ? gemv->across_singles : NULL;
    }
    return size == 1                      ? gemv->across_bytes
           : b.kind == tf_bfloat16_index ? gemv->across_bf16
                                          : NULL;
}

/* Computes the sums of all columns over one k-step. Columns that the kernel does not take
 * are packed, 64 at a time. */
static void gemv_across(struct tf_workspace *work, const struct tf_tile *tile,
                        size_t depth, float *sums, int adds)
{
    enum { PANEL = 64 };
    const int format = tile->b.format < TF_FORMAT_COUNT ? tile->b.format : -1;
    float *x = work->a, *part = work->sums + TF_GEMV_N;
    size_t columns = 0;
    tf_gemv_fn *kernel = kernel_of(tile->b, &columns);
    tf_pack_along(work, tile->a, 1, depth, 0, x, depth, 0, NULL);
    for (size_t j = 0, width; j < tile->columns; j += width) {
        const struct tf_operand b = tf_operand_from(tile->b, (ptrdiff_t)j, 0);
        const size_t left = tile->columns - j;
        if (kernel && left >= columns) {
            const struct tf_gemv_operands in = {
                .x = x,
                .rows = b.data,
                .step = b.along,
                .table = format < 0 ? NULL : &tf_byte_tables[format],
                .used = format < 0 ? UINT32_MAX : tf_used_bits(*tf_format_rows[format]),
            };
            width = left / columns * columns;
            kernel(&in, depth, width, part);
        } else {
            const struct tf_gemv_operands in = {
                .x = x,
                .rows = (const char *)work->b,
                .step = PANEL * sizeof(float),
                .used = UINT32_MAX,
            };
            width = left < PANEL ? left : PANEL;
            tf_pack_b(work, b, width, depth, 0, PANEL, NULL);
            tf_isa->gemv->across_singles(&in, depth, tf_round_up(width, VECTOR),
                                                 part);
        }
        tf_add_row(part, sums + j, width, adds);
    }
}

/* -- columns along k --------------------------------------------------------------- */

/* Computes `count` columns at the same time, over as many k as the row has room for.
 * Integers are multiplied by the row in memory (`numbers` is NULL), others by its
 * `numbers`. */
static void multiply_columns(struct tf_workspace *work, tf_dot_fn *kernel,
                             struct tf_operand b, struct tf_operand row,
                             const float *numbers, size_t count, size_t k, float *sums,
                             int adds)
{
    float part[TF_DOT_LINES];
    struct tf_dot_room *room = tf_dot_room(work);
    for (size_t k0 = 0; k0 < k; k0 += TF_KC) {
        const size_t depth = tf_min_size(TF_KC, k - k0);
        const struct tf_operand lines = tf_operand_from(b, 0, (ptrdiff_t)k0);
        const struct tf_operand here = tf_operand_from(row, 0, (ptrdiff_t)k0);
        if (numbers) {
            tf_dot_vector(kernel, lines, numbers + k0, count, depth, room, part);
        } else {
            tf_dot_of_operands(kernel, lines, here, count, depth, room, part);
        }
        tf_add_row(part, sums, count, adds || k0);
    }
}

static void gemv_along(struct tf_workspace *work, const struct tf_tile *tile, size_t k,
                       float *sums, int adds)
{
    struct tf_operand row = tile->a;
    row.stride = 0; /* the same for all columns */
    const int integers = row.along == 1 && tf_have_integers(tile->b, row);
    tf_dot_fn *kernel =
        integers ? tf_isa->quads->dot : tf_dot_kernel_of_lines(tile->b);
    float *numbers = integers ? NULL : work->a;
    if (numbers) {
        tf_load_line(row, k, numbers, 0);
        for (size_t i = k; i < k + TF_DOT_WHOLE; i++) {
            numbers[i] = -0.0f;
        }
    }
    for (size_t j = 0, count; j < tile->columns; j += count) {
        count = tf_min_size(TF_DOT_LINES, tile->columns - j);
        multiply_columns(work, kernel, tf_operand_from(tile->b, (ptrdiff_t)j, 0), row,
                         numbers, count, k, sums + j, adds);
    }
}

/* -- rows of any length ------------------------------------------------------------ */

static void compute_along(struct tf_workspace *work, const struct tf_tile *tile,
                          ptrdiff_t k)
{
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_GEMV_K) {
        const struct tf_tile here = tf_tile_from(*tile, k0);
        gemv_along(work, &here, tf_min_size(TF_GEMV_K, k - k0), work->sums, k0 != 0);
    }
}

static void compute_across(struct tf_workspace *work, const struct tf_tile *tile,
                           ptrdiff_t k)
{
    for (ptrdiff_t k0 = 0; k0 < k && !tf_stops(work); k0 += TF_KC) {
        const struct tf_tile here = tf_tile_from(*tile, k0);
        gemv_across(work, &here, tf_min_size(TF_KC, k - k0), work->sums, k0 != 0);
    }
}

const struct tf_tile_path tf_gemv_along_path = {compute_along, tf_store_sums};
const struct tf_tile_path tf_gemv_across_path = {compute_across, tf_store_sums};
