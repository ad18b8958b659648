#include "matmul.h"

#include <math.h>
#include <stdlib.h>

#include "binary.h"
#include "fpstatus.h"
#include "loops/isa.h"
#include "strided.h"

enum {
    DEPTH = 256,   /* of a chain of fused multiply-adds: part of the contract */
    ROWS = 64,     /* of C at a time */
    COLUMNS = 512, /* of C at a time */
};
_Static_assert((int)COLUMNS <= (int)TF_BLOCK && (int)DEPTH <= (int)TF_BLOCK,
               "rows are unpacked whole");

struct workspace {
    float panel[DEPTH * COLUMNS]; /* of B */
    float sums[ROWS * COLUMNS];   /* of C */
    float chain[COLUMNS];
    float row[DEPTH]; /* of A */
};

static void unpack_row(int format, const char *data, ptrdiff_t stride, float *out,
                       size_t n)
{
    TF_BUFFER(buffer);
    const size_t itemsize = tf_format_rows[format]->itemsize;
    tf_isa->formats[format].unpack(tf_gather(data, stride, itemsize, n, buffer), out, n);
}

static size_t least(ptrdiff_t a, ptrdiff_t b) { return (size_t)(a < b ? a : b); }

static const char *at(struct tf_matrix x, ptrdiff_t i, ptrdiff_t j)
{
    return x.data + i * x.strides[0] + j * x.strides[1];
}

/* Which of a row's or a column's k elements are not finite. */
enum { HAS_INFINITY = 1, HAS_NAN = 2 };

static uint8_t specials_of(int format, const char *data, ptrdiff_t stride, ptrdiff_t k)
{
    float numbers[DEPTH];
    int found = 0;
    for (ptrdiff_t p = 0; p < k; p += DEPTH) {
        const size_t count = least(DEPTH, k - p);
        unpack_row(format, data + p * stride, stride, numbers, count);
        for (size_t i = 0; i < count; i++) {
            found |= isnan(numbers[i]) ? HAS_NAN : isinf(numbers[i]) ? HAS_INFINITY : 0;
        }
    }
    return (uint8_t)found;
}

/* What the elements of a tile that are not finite raise: Inf from finite
 * operands is an overflow; a NaN that no operand had is an invalid operation. */
static unsigned flags_of_specials(int format, const float *sums, struct tf_matrix a,
                                  struct tf_matrix b, ptrdiff_t i0, size_t rows,
                                  ptrdiff_t j0, size_t columns, ptrdiff_t k)
{
    uint8_t in_column[COLUMNS];
    unsigned flags = 0;
    for (size_t j = 0; j < columns; j++) {
        in_column[j] = specials_of(format, at(b, 0, j0 + (ptrdiff_t)j), b.strides[0], k);
    }
    for (size_t i = 0; i < rows; i++) {
        const uint8_t in_row =
            specials_of(format, at(a, i0 + (ptrdiff_t)i, 0), a.strides[1], k);
        for (size_t j = 0; j < columns; j++) {
            const float sum = sums[i * COLUMNS + j];
            const int found = in_row | in_column[j];
            if (isnan(sum) && !(found & HAS_NAN)) {
                flags |= TF_INVALID;
            } else if (isinf(sum) && !found) {
                flags |= tf_overflow_flag(*tf_format_rows[format]);
            }
        }
    }
    return flags;
}

/* One tile of C, all of k. */
static void multiply_tile(int format, struct workspace *work, struct tf_matrix a,
                          struct tf_matrix b, ptrdiff_t i0, size_t rows, ptrdiff_t j0,
                          size_t columns, ptrdiff_t k)
{
    memset(work->sums, 0, sizeof work->sums);
    for (ptrdiff_t p0 = 0; p0 < k; p0 += DEPTH) {
        const size_t depth = least(DEPTH, k - p0);
        for (size_t p = 0; p < depth; p++) {
            unpack_row(format, at(b, p0 + (ptrdiff_t)p, j0), b.strides[1],
                       work->panel + p * COLUMNS, columns);
        }
        for (size_t i = 0; i < rows; i++) {
            float *sums = work->sums + i * COLUMNS;
            unpack_row(format, at(a, i0 + (ptrdiff_t)i, p0), a.strides[1], work->row,
                       depth);
            /* The first chain is the sum: 0 + (-0) would lose its sign. */
            float *chain = p0 == 0 ? sums : work->chain;
            memset(chain, 0, columns * sizeof *chain);
            tf_isa->row_times_panel(work->row, work->panel, COLUMNS, depth, chain,
                                    columns);
            if (p0 != 0) {
                tf_isa->binary_f32[TF_ADD](sums, chain, sums, columns);
            }
        }
    }
}

static int has_specials(const float *sums, size_t n)
{
    int found = 0;
    for (size_t j = 0; j < n; j++) {
        found |= !isfinite(sums[j]);
    }
    return found;
}

static unsigned store_row(int format, int into_float32, float *sums, char *out,
                          ptrdiff_t stride, size_t n)
{
    if (into_float32) {
        tf_scatter(sums, out, stride, sizeof *sums, n);
        return 0;
    }
    TF_BUFFER(buffer);
    const size_t itemsize = tf_format_rows[format]->itemsize;
    const struct tf_conversions *conversions = &tf_isa->formats[format];
    void *items = tf_target(out, stride, itemsize, buffer);
    const struct tf_suspects suspects = conversions->pack(sums, items, n);
    unsigned flags = 0;
    if (suspects.beyond || suspects.tiny) {
        flags = conversions->flags(sums, items, n);
    }
    tf_scatter(items, out, stride, itemsize, n);
    return flags;
}

int tf_matmul(int format, int into_float32, struct tf_matrix a, struct tf_matrix b,
              struct tf_matrix c, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    if (n == 1 && m > 1) { /* a column: columns are what is done side by side */
        const struct tf_matrix at_ = {a.data, {a.strides[1], a.strides[0]}};
        const struct tf_matrix bt = {b.data, {b.strides[1], b.strides[0]}};
        const struct tf_matrix ct = {c.data, {c.strides[1], c.strides[0]}};
        return tf_matmul(format, into_float32, bt, at_, ct, n, m, k);
    }
    struct workspace *work = malloc(sizeof *work);
    if (!work) {
        return -1;
    }
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    for (ptrdiff_t j0 = 0; j0 < n; j0 += COLUMNS) {
        const size_t columns = least(COLUMNS, n - j0);
        for (ptrdiff_t i0 = 0; i0 < m; i0 += ROWS) {
            const size_t rows = least(ROWS, m - i0);
            multiply_tile(format, work, a, b, i0, rows, j0, columns, k);
            int special = 0;
            for (size_t i = 0; i < rows; i++) {
                special |= has_specials(work->sums + i * COLUMNS, columns);
            }
            if (special) {
                flags |= flags_of_specials(format, work->sums, a, b, i0, rows, j0,
                                           columns, k);
            }
            for (size_t i = 0; i < rows; i++) {
                float *sums = work->sums + i * COLUMNS;
                if (special) {
                    tf_canonical_nans(sums, columns);
                }
                flags |= store_row(format, into_float32, sums,
                                   (char *)at(c, i0 + (ptrdiff_t)i, j0), c.strides[1],
                                   columns);
            }
        }
    }
    free(work);
    tf_fp_end(saved, flags);
    return 0;
}
