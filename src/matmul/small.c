/* Products of small matrices on the stack, without threads or tiles. */
#include "matmul/small.h"

#include <string.h>

#include "formats/casts.h"
#include "runtime/fp_environment.h"
#include "matmul/pack.h"
#include "matmul/bf16_dot.h"
#include "matmul/int8_dot.h"
#include "matmul/specials.h"
#include "matmul/epilogue.h"
#include "runtime/sizes.h"
#include "runtime/thread_pool.h"

enum {
    SIDE = 64,
    NUMBERS = SIDE * SIDE,           /* of a matrix, with what fills it up */
    PAIRED = SIDE * SIDE * SIDE / 8, /* multiply-adds beyond which pairs pay */
    BEHIND = TF_TALL_MR - 1,       /* rows that a kernel may read, and write */
    SUMS = NUMBERS + BEHIND * SIDE,
};

static struct tf_operand matrix_operand(struct tf_matrix x, int axis)
{
    return (struct tf_operand){.data = x.data,
                             .stride = x.strides[axis],
                             .along = x.strides[1 - axis],
                             .kind = x.kind,
                             .format = x.kind,
                             .parts = 1};
}

/* The numbers of n lines in the order of memory: of a line side by side (1), or of a k
 * (0). */
static int load(struct tf_operand x, size_t n, size_t k, float *out)
{
    const int along = tf_runs_along(x);
    if (along) {
        tf_load_lines(x, k, n, out);
    } else {
        const ptrdiff_t stride = x.stride;
        x.stride = x.along;
        x.along = stride;
        tf_load_lines(x, n, k, out);
    }
    return along;
}

/* Rows of A, one after the other, and rows of zeros that the kernel may read. */
static void pack_rows(struct tf_operand a, size_t rows, size_t depth, size_t whole,
                      float *buffer, float *out)
{
    if (!load(a, rows, depth, tf_runs_along(a) ? out : buffer)) {
        tf_isa->matmul->transpose(buffer, rows, depth, rows, out, depth);
    }
    if (rows % whole) {
        memset(out + rows * depth, 0, (whole - rows % whole) * depth * sizeof *out);
    }
}

/* Panels of B, filled up with zeros. */
static void pack_panels(struct tf_operand b, size_t columns, size_t depth,
                        struct tf_kernel kernel, float *buffer, float *more, float *out)
{
    const size_t width = kernel.columns;
    const int whole = columns == width;
    const int along = tf_runs_along(b);
    float *rows = whole ? out : more;
    load(b, columns, depth, along ? buffer : rows);
    if (along) {
        tf_isa->matmul->transpose(buffer, depth, columns, depth, rows, columns);
    }
    if (!whole) {
        if (columns % width) {
            memset(out, 0, tf_filled(columns, kernel) * depth * sizeof *out);
        }
        tf_isa->matmul->lay_out(rows, depth, columns, out, width, width * depth);
    }
}

/* Rows of sums to C, as many together as adjoin there; whether one is Inf or NaN. Moves
 * those that do to each other: *ld. */
static int store(struct tf_matrix c, size_t m, size_t n, float *sums, size_t *ld,
                 unsigned *flags)
{
    const ptrdiff_t size = (ptrdiff_t)tf_kind_size(c.kind);
    size_t together = 1;
    if (n <= TF_CHUNK && c.strides[1] == size && c.strides[0] == size * (ptrdiff_t)n) {
        together = m * n <= TF_CHUNK ? m : TF_CHUNK / n;
        for (size_t i = 1; i < m && *ld != n; i++) {
            memmove(sums + i * n, sums + i * *ld, n * sizeof *sums);
        }
        *ld = n;
    }
    int special = 0;
    for (size_t i = 0; i < m; i += together) {
        const size_t count = tf_min_size(m - i, together);
        special |= tf_store_sums(c.kind, sums + i * *ld,
                                 c.data + (ptrdiff_t)i * c.strides[0], c.strides[1],
                                 count * n, flags);
    }
    return special;
}

/* What sums that are not finite raise. */
static unsigned flags_of(struct tf_operand a, struct tf_operand b, size_t m, size_t n,
                         size_t k, const float *sums, size_t ld, unsigned overflow,
                         unsigned wanted)
{
    struct tf_watch watch = {0};
    uint8_t in_row[NUMBERS], in_column[NUMBERS];
    const struct tf_doubtful_sums product = {
        .a = a, .b = b,
        .rows = m, .columns = n, .k = (ptrdiff_t)k,
        .sums = sums, .ld = ld,
        .overflow = overflow, .wanted = wanted,
        .in_row = in_row, .in_column = in_column,
        .watch = &watch,
    };
    return tf_flags_of_specials(&product);
}

/* Whether there is room for all as such words: for sums of rows filled up to a kernel's,
 * in rows filled up to panels, too. */
static int fit(enum tf_packing packing, size_t m, size_t n, size_t k)
{
    const struct tf_kernel kernel = tf_kernel_of(packing, n);
    const size_t wide = tf_filled(n, kernel);
    const size_t high = tf_round_up(m, kernel.rows);
    return m * wide <= NUMBERS && high * wide <= SUMS &&
           wide * tf_packed_words(k, packing) <= NUMBERS;
}

/* Rows of quads are no more than SIDE: a panel is as wide. */
static unsigned multiply_matrix(enum tf_packing packing, struct tf_matrix a,
                                struct tf_matrix b, struct tf_matrix c, size_t m,
                                size_t n, size_t k, unsigned flags)
{
    _Alignas(64) float rows[NUMBERS + BEHIND * TF_KC], panels[NUMBERS];
    _Alignas(64) float sums[SUMS], more[NUMBERS];
    const struct tf_operand x = matrix_operand(a, 0), y = matrix_operand(b, 1);
    const struct tf_kernel kernel = tf_kernel_of(packing, n);
    const struct tf_split_product term = {0, 0,
                                          packing == TF_QUADS ? tf_quad_unit(x, y) : 1};
    const size_t words = tf_packed_words(k, packing);
    size_t ld = tf_filled(n, kernel);
    if (packing == TF_QUADS) {
        tf_pack_quads_a(x, m, k, SIDE, sums, rows, words);
        tf_pack_quads_b(y, n, k, kernel.columns, sums, panels);
    } else {
        pack_rows(x, m, k, kernel.rows, sums, rows);
        pack_panels(y, n, k, kernel, sums, more, panels);
    }
    for (size_t j = 0; j < n; j += kernel.columns) {
        for (size_t i = 0; i < m; i += kernel.rows) {
            kernel.multiply(rows + i * words, words, panels + j * words, words, &term, 1,
                            m - i, sums + i * ld + j, ld, TF_SUMS_WRITE);
        }
    }
    const int special = store(c, m, n, sums, &ld, &flags);
    const unsigned overflow =
        c.kind < TF_FORMAT_COUNT ? tf_overflow_flag(*tf_format_rows[c.kind]) : TF_OVER;
    const unsigned left = (overflow | TF_INVALID) & ~flags;
    if (special && left && (tf_products_may_raise(x) || tf_products_may_raise(y))) {
        flags |= flags_of(x, y, m, n, k, sums, ld, overflow, left);
    }
    return flags;
}

int tf_multiply_small(const struct tf_precision *precision, struct tf_matrix a,
                      struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                      ptrdiff_t k, ptrdiff_t count)
{
    if (precision->parts > 1 || precision->path || a.kind >= TF_FORMAT_COUNT ||
        b.kind >= TF_FORMAT_COUNT || k < 1 || k > TF_KC || m > NUMBERS ||
        n > NUMBERS || m * k > NUMBERS || n * k > NUMBERS || m == 1 || n == 1 ||
        m * n * k * count >= 2 * (ptrdiff_t)TF_SHARE) {
        return 0;
    }
    if (tf_should_transpose(c, m, n)) {
        const struct tf_matrix left = tf_transposed(b);
        const ptrdiff_t rows = n;
        b = tf_transposed(a);
        a = left;
        c = tf_transposed(c);
        n = m;
        m = rows;
    }
    const struct tf_operand x = matrix_operand(a, 0), y = matrix_operand(b, 1);
    const size_t height = (size_t)m, width = (size_t)n, depth = (size_t)k;
    const int paired = tf_can_use_bf16_dot(x, y) && m * n * k > PAIRED;
    enum tf_packing packing = TF_QUADS;
    if (!tf_has_quads(x, y) || !fit(TF_QUADS, height, width, depth)) {
        if (paired || !fit(TF_SINGLES, height, width, depth)) {
            return 0;
        }
        packing = TF_SINGLES;
    }
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    for (ptrdiff_t number = 0; number < count; number++) {
        flags = multiply_matrix(packing, a, b, c, height, width, depth, flags);
        a.data += a.step;
        b.data += b.step;
        c.data += c.step;
    }
    tf_fp_end(saved, flags);
    return 1;
}
