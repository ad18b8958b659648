/* Computes products of small matrices on the stack, without threads or tiles. */
#include "matmul/small.h"

#include <string.h>

#include "formats/casts.h"
#include "runtime/fp_environment.h"
#include "matmul/pack.h"
#include "matmul/int8_dot.h"
#include "matmul/specials.h"
#include "matmul/epilogue.h"
#include "runtime/sizes.h"
#include "runtime/thread_pool.h"

/* Writes the numbers of n lines in the order of memory. Returns 1 if the numbers of a line
 * adjoin in `out`, or 0 if those of a k do. */
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

/* Packs rows of A, without gaps, and rows of zeros up to a multiple of `whole`, which the
 * kernel may read. */
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

/* Packs B in panels, and fills the last one up with zeros. */
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

/* Stores sums in C, and returns whether one is Inf or NaN. If rows of C adjoin, moves the
 * rows of sums together, sets *ld to n, and stores many rows at once. */
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

/* Returns the flags of sums that are Inf or NaN: see tf_flags_of_specials. */
static unsigned flags_of(struct tf_operand a, struct tf_operand b, size_t m, size_t n,
                         size_t k, const float *sums, size_t ld, unsigned overflow,
                         unsigned wanted)
{
    struct tf_watch watch = {0};
    uint8_t in_row[TF_SMALL_NUMBERS], in_column[TF_SMALL_NUMBERS];
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

/* Computes a product, and returns `flags` with those that it raises. As quads, A has at
 * most TF_SMALL_SIDE rows: C, padded to whole panels, has at least TF_SMALL_SIDE
 * columns. */
static unsigned multiply_matrix(const struct tf_plan_of_product *plan,
                                struct tf_operand x, struct tf_operand y,
                                struct tf_matrix c, unsigned flags)
{
    _Alignas(64) float rows[TF_SMALL_NUMBERS + TF_ROWS_BEHIND * TF_KC];
    _Alignas(64) float panels[TF_SMALL_NUMBERS];
    _Alignas(64) float sums[TF_SMALL_SUMS], more[TF_SMALL_NUMBERS];
    const size_t m = (size_t)plan->product.m, n = (size_t)plan->product.n;
    const size_t k = (size_t)plan->product.k;
    const enum tf_packing packing = plan->fastest.packing;
    const struct tf_kernel kernel = plan->fastest.kernel;
    const struct tf_split_product term = {0, 0,
                                          packing == TF_QUADS ? tf_quad_unit(x, y) : 1};
    const size_t words = tf_packed_words(k, packing);
    size_t ld = tf_filled(n, kernel);
    if (packing == TF_QUADS) {
        tf_pack_quads_a(x, m, k, TF_SMALL_SIDE, sums, rows, words);
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
    const unsigned overflow = tf_overflow_of_sums(c.kind);
    const unsigned left = (overflow | TF_INVALID) & ~flags;
    if (special && left && (tf_products_may_raise(x) || tf_products_may_raise(y))) {
        flags |= flags_of(x, y, m, n, k, sums, ld, overflow, left);
    }
    return flags;
}

void tf_multiply_small(const struct tf_plan_of_product *plan)
{
    const struct tf_product *product = &plan->product;
    struct tf_operand a = plan->a, b = plan->b;
    struct tf_matrix c = product->c;
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    for (ptrdiff_t number = 0; number < product->count; number++) {
        flags = multiply_matrix(plan, a, b, c, flags);
        a.data += product->a.step;
        b.data += product->b.step;
        c.data += c.step;
    }
    tf_fp_end(saved, flags);
}
